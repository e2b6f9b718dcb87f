"""ACP: its types, its methods, and typed connections."""
