"""ACP: its types, its methods, and a typed conversation on top of the wire."""
