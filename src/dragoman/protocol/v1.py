"""The types of ACP version 1: `from dragoman.protocol import v1`, then `v1.PromptRequest(…)`."""

from dragoman.protocol.generated.v1 import *  # noqa: F403 -- every generated name is public, and only those
