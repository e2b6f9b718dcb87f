"""`local:FILE.gguf`: a model in a file, run by llama.cpp inside this process."""

from dragoman.assistant.models.local.local import LocalModel, LocalOptions, local_model

__all__ = ["LocalModel", "LocalOptions", "local_model"]
