"""Attaching an editor, which starts programs and speaks ACP on their stdio, to a bridge somewhere else."""

from dragoman.attach.attachment import Attachment
from dragoman.attach.relay import RelayLimits

__all__ = ["Attachment", "RelayLimits"]
