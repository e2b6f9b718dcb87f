"""The types of ACP version 2, a draft: `from dragoman.protocol import v2`, then `v2.PromptRequest(…)`."""

from dragoman.protocol.generated.v2 import *  # noqa: F403 -- every generated name is public, and only those
