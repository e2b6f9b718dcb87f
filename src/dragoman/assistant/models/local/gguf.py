"""The head of a GGUF file, and the check whether its model fits into the memory of this machine before it is loaded.

The file is `GGUF`, a version, the number of tensors and of fields, then the fields: a key, a type, a value. The
model's own fields come before the tokenizer's, which are large; reading stops there.
"""

import os
import struct
from pathlib import Path
from typing import BinaryIO

import msgspec

from dragoman.errors import ModelFailure

MAGIC = b"GGUF"
VERSIONS = (2, 3)
MAX_FIELDS = 10_000
MAX_STRING_BYTES = 1 << 20
MAX_ARRAY_ITEMS = 1 << 20
"""Far above the counts of real files, and low enough that a damaged or hostile one is refused at once."""

BYTES_PER_VALUE = 2
"""llama.cpp keeps keys and values as 16-bit floats."""

_STRING, _ARRAY = 8, 9
_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


class GgufHead(msgspec.Struct, frozen=True):
    """A model file before it is loaded; a value that the file does not have is None."""

    size_bytes: int
    architecture: str = ""
    context_length: int | None = None
    layers: int | None = None
    values_per_token: int | None = None
    """Numbers that are kept for one token in one layer."""

    def cache_bytes(self, context_size: int) -> int:
        """Return the memory for a conversation of that many tokens, beside the file's."""
        return context_size * (self.layers or 0) * (self.values_per_token or 0) * BYTES_PER_VALUE


def read_head(path: Path) -> GgufHead:
    """Read the head of a model file; raises ModelFailure when there is none, or it is something else."""
    try:
        with path.open("rb") as file:
            return _head(_Reader(file, path), path.stat().st_size)
    except FileNotFoundError:
        raise ModelFailure(f"there is no file {path}; give the path of a .gguf file after local:") from None
    except OSError as error:
        raise ModelFailure(f"{path} cannot be read: {error.strerror}; give the path of a .gguf file") from None


def _head(reader: "_Reader", size_bytes: int) -> GgufHead:
    if reader.take(4) != MAGIC:
        raise reader.failure("is not a GGUF file; models in this format are named .gguf")
    if reader.number("<I") not in VERSIONS:
        raise reader.failure("is a GGUF file of a version that cannot be read; fetch it anew")
    reader.number("<Q")
    fields = reader.fields(int(reader.number("<Q")))
    kind = fields.get("general.architecture")
    if not isinstance(kind, str):
        raise reader.failure("does not say what kind of model it is; fetch it anew")
    return GgufHead(
        size_bytes,
        kind,
        _whole(fields.get(f"{kind}.context_length")),
        _whole(fields.get(f"{kind}.block_count")),
        _values_per_token(fields, kind),
    )


def _values_per_token(fields: dict[str, object], kind: str) -> int | None:
    width, heads = _whole(fields.get(f"{kind}.embedding_length")), _whole(fields.get(f"{kind}.attention.head_count"))
    if not width or not heads:
        return None
    shared = _whole(fields.get(f"{kind}.attention.head_count_kv")) or heads
    key = _whole(fields.get(f"{kind}.attention.key_length")) or width // heads
    value = _whole(fields.get(f"{kind}.attention.value_length")) or width // heads
    return shared * (key + value)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


class _Reader:
    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path

    def failure(self, problem: str) -> ModelFailure:
        return ModelFailure(f"{self._path} {problem}")

    def take(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise self.failure("ends too early or is no GGUF file; fetch it anew")
        return data

    def number(self, form: str) -> int | float:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def fields(self, count: int) -> dict[str, object]:
        fields: dict[str, object] = {}
        for _ in range(self._bounded(count, MAX_FIELDS)):
            key = self._string()
            if key.startswith("tokenizer."):
                break
            fields[key] = self._value(int(self.number("<I")))
        return fields

    def _value(self, kind: int) -> object:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            self._skip_array()
            return None
        if kind not in _FORMATS:
            raise self.failure("is damaged; fetch it anew")
        return self.number(_FORMATS[kind])

    def _skip_array(self) -> None:
        kind = int(self.number("<I"))
        for _ in range(self._bounded(int(self.number("<Q")), MAX_ARRAY_ITEMS)):
            if kind == _ARRAY:
                raise self.failure("is damaged; fetch it anew")
            self._value(kind)

    def _string(self) -> str:
        return self.take(self._bounded(int(self.number("<Q")), MAX_STRING_BYTES)).decode(errors="replace")

    def _bounded(self, count: int, limit: int) -> int:
        if count > limit:
            raise self.failure("is damaged; fetch it anew")
        return count


WORKING_BYTES = 256 << 20
"""Memory of llama.cpp's own work, beside the file and the conversation: an estimate. SmolLM2-135M took 50 MB."""

_MEMINFO = Path("/proc/meminfo")
_CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")


def check_memory(path: Path, head: GgufHead, context_size: int, available_bytes: int) -> None:
    """Raise ModelFailure when the model would not fit: it would load, and then swap without end or be killed."""
    needed = head.size_bytes + head.cache_bytes(context_size) + WORKING_BYTES
    if needed > available_bytes:
        raise ModelFailure(
            f"{path.name} needs about {needed / 1e9:.1f} GB of memory and {available_bytes / 1e9:.1f} GB are free; "
            "close something, or take a smaller model"
        )


def available_memory() -> int:
    """Return the bytes that could be taken without swapping: a guess from above where the system does not say."""
    found = [size for size in (_free_memory(), _group_limit()) if size is not None]
    return min(found) if found else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _free_memory() -> int | None:
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    kilobytes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(kilobytes[0]) * 1024 if kilobytes else None


def _group_limit() -> int | None:
    try:
        limit = _CONTROL_GROUP.read_text().strip()
    except OSError:
        return None
    return int(limit) if limit.isdigit() else None
