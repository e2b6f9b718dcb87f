"""`guide`, the model that works with no key and no network: fixed rules, and no language model."""

from dragoman.assistant.models.guide.guide import GuideConversation, GuideModel

__all__ = ["GuideConversation", "GuideModel"]
