"""The connection to one agent: the handshake, the link and the capability checks."""
