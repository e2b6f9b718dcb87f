"""Whether a model fits into the memory of this machine, asked before it is loaded."""

import os
from pathlib import Path

from dragoman.agent.models.local.gguf import GgufHead
from dragoman.errors import ModelFailure

WORKING_BYTES = 256 << 20
"""What llama.cpp takes for its own work beside the file and the conversation: an allowance. SmolLM2-135M took 50 MB."""

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
