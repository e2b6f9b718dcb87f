"""Embedding: texts as vectors that lie close together when they mean the same.

The vectors of 32,000 word pieces are in the wheel of `wordllama`; a text's vector is the mean of its pieces'. The
files are read here, and the package is not imported: importing it turns on logging for the whole process, loads
an HTTP client and takes 0.3 s, which is more than all the rest. So nothing here can reach the network either.
"""

import threading
from collections.abc import Sequence
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"
_BATCH = 256
"""Texts at a time: few enough to let other threads run in between."""
_MAX_CHARACTERS = 8_000
"""Of one text: the mean of more says nothing."""


class Embedder(Protocol):
    """Makes vectors of texts; the same name makes the same vectors."""

    @property
    def name(self) -> str:
        """Its name and version."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of its vectors."""
        ...

    def embed(self, texts: Sequence[str]) -> "Matrix":
        """Give a row of length one for each text; of zeros, for a text without words."""
        ...


class EmbedderUnavailable(Exception):
    """There is no embedder here; the message says why, in words for the user."""


class WordPieces:
    """Embeds by the mean of the word pieces' vectors."""

    def __init__(self, name: str, tokenizer: Any, vectors: "Matrix") -> None:
        self.name = name
        self._tokenizer = tokenizer
        self._vectors = vectors

    @property
    def dimensions(self) -> int:
        """The length of its vectors."""
        return self._vectors.shape[1]

    def embed(self, texts: Sequence[str]) -> "Matrix":
        """Give a row of length one for each text; of zeros, for a text without words."""
        import numpy as np

        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), _BATCH):
            self._add_up(texts[start : start + _BATCH], rows[start : start + _BATCH])
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=rows, where=lengths > 0)

    def _add_up(self, texts: Sequence[str], rows: "Matrix") -> None:
        import numpy as np

        # JSON may bring half of a surrogate pair, which the tokenizer refuses.
        cut = [text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        encoded = [found.ids for found in self._tokenizer.encode_batch_fast(cut, add_special_tokens=False)]
        filled = [place for place, ids in enumerate(encoded) if ids]
        if not filled:
            return
        counts = [len(encoded[place]) for place in filled]
        ids = np.fromiter((piece for place in filled for piece in encoded[place]), np.int64, sum(counts))
        rows[filled] = np.add.reduceat(self._vectors[ids], np.cumsum([0, *counts[:-1]]), axis=0)


_loading = threading.Lock()
_loaded: list[WordPieces] = []


def load_embedder() -> WordPieces:
    """Give the embedder of this process, loaded on first use; raises EmbedderUnavailable."""
    with _loading:
        if not _loaded:
            _loaded.append(_load())
        return _loaded[0]


def _load() -> WordPieces:
    spec = util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise EmbedderUnavailable("wordllama is not installed")
    folder = Path(spec.origin).parent
    try:
        import numpy as np
        import safetensors.numpy
        from tokenizers import Tokenizer

        tokenizer: Any = Tokenizer.from_file(str(folder / _TOKENIZER))
        tensors: dict[str, Any] = safetensors.numpy.load((folder / _WEIGHTS).read_bytes())
        vectors = np.ascontiguousarray(tensors[_TENSOR], np.float32)
    except Exception as error:  # the libraries raise errors of many kinds; the search by words works without them
        raise EmbedderUnavailable(
            f"wordllama is installed, but cannot be read ({type(error).__name__}: {error})"
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return WordPieces(f"{_PACKAGE} {metadata.version(_PACKAGE)} l2_supercat_256", tokenizer, vectors)
