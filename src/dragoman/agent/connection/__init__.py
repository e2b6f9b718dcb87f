"""The connection of an agent to one client: it receives requests and sends updates."""
