"""The session layer of the Agent Client Protocol: an agent, a client, a bridge and a checker on one wire."""

__version__ = "0.1.0"
