"""`guide`, the model that needs no key and no network: fixed rules, not a language model."""

from dragoman.assistant.models.guide.guide import GuideModel

__all__ = ["GuideModel"]
