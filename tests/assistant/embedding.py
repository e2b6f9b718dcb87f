"""The search without vectors, as where `dragoman[search]` is not installed."""

from dragoman.assistant.search.embedder import EmbedderUnavailable


def no_embedder():
    raise EmbedderUnavailable("wordllama is not installed")
