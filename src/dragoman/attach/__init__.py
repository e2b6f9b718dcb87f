"""Attachment of an editor, which speaks ACP to a child process on stdio, to a bridge at a URL."""

from dragoman.attach.attachment import Attachment
from dragoman.attach.relay import RelayLimits

__all__ = ["Attachment", "RelayLimits"]
