"""The client: driving any ACP agent."""

from dragoman.client.launch import launch

__all__ = ["launch"]
