"""The sessions of an agent: their settings, history, memory and permissions."""
