"""The one model that is loaded in this process, and the thread that works with it.

llama.cpp comes as a server with a listener that cannot be left out. It is given a socket in a directory that only this
user can enter, under a random key, and the socket is removed as soon as the model is loaded; we call it directly.
"""

import atexit
import importlib
import importlib.util
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from dragoman.agent.models.local.gguf import read_head
from dragoman.agent.models.local.line import ModelQueue
from dragoman.agent.models.local.memory import available_memory, check_memory
from dragoman.agent.models.local.stream import ThreadStream
from dragoman.errors import ModelFailure

BATCH_TOKENS = 256
"""Tokens of the prompt that are read at a time: a cancellation during that takes effect between two batches."""

EXIT_WAIT_S = 5.0
"""How long the process waits at its end for a batch to be done, so that memory is freed in order."""

_READ_BYTES = 1 << 20
_SILENT = -1

Chunk = dict[str, Any]


class LlamaServer(Protocol):
    """What we use of the library's server."""

    def handle_chat_completions(self, request: dict[str, Any], callback: Callable[[Chunk], bool], /) -> None:
        """Answer, chunk by chunk, until the callback returns True."""
        ...


class EngineSetup(msgspec.Struct, frozen=True):
    """A model file and how it is loaded."""

    path: Path
    context_size: int


class Engine:
    """Loads, frees and stops; all but `stop_at_exit` only for whoever has the first place in `line`."""

    def __init__(self) -> None:
        self.line = ModelQueue()
        self._server: LlamaServer | None = None
        self._loaded: tuple[EngineSetup, int] | None = None
        self._working: ThreadStream[Any] | None = None
        self._watched = False

    def has(self, setup: EngineSetup) -> bool:
        """Return whether that model is loaded, as its file is now."""
        return self._server is not None and self._loaded == (setup, _changed_at(setup.path))

    def work(self, stream: ThreadStream[Any]) -> None:
        """Start a stream that uses the engine."""
        if not self._watched:
            self._watched = True
            atexit.register(self.stop_at_exit)
        self._working = stream
        stream.start()

    def load(self, setup: EngineSetup) -> LlamaServer:
        """Return the model, loaded, and whatever was loaded before freed; raises ModelFailure."""
        if self._server is not None and self.has(setup):
            return self._server
        self.free()
        head = read_head(setup.path)
        check_memory(setup.path, head, setup.context_size, available_memory())
        library = _import_library()
        _read_ahead(setup.path)
        self._server = _make_server(library, setup)
        self._loaded = (setup, _changed_at(setup.path))
        return self._server

    def free(self) -> None:
        """Give the memory back."""
        self._server = self._loaded = None

    def stop_at_exit(self) -> None:
        """End what runs and free the model, while there is an interpreter to do it in."""
        working = self._working
        if working is not None:
            working.stop()
            if not working.join(EXIT_WAIT_S):
                return  # freeing would wait for it, for as long as it takes
        self.free()


def is_installed() -> bool:
    """Return whether the library is there, without importing it."""
    return importlib.util.find_spec("xllamacpp") is not None


def missing_library() -> ModelFailure:
    """Return the error that says how to get it."""
    return ModelFailure("models in local files need llama.cpp; install it with: pip install dragoman[local]")


def _import_library() -> Any:
    try:
        return importlib.import_module("xllamacpp")
    except ModuleNotFoundError:
        raise missing_library() from None
    except ImportError as error:
        raise ModelFailure(f"llama.cpp cannot be used on this machine: {error}") from None


def _read_ahead(path: Path) -> None:
    """Bring the file into the system's cache, for the library keeps the whole process waiting while it loads."""
    buffer = bytearray(_READ_BYTES)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def _make_server(library: Any, setup: EngineSetup) -> LlamaServer:
    with tempfile.TemporaryDirectory(prefix="dragoman-") as directory:
        try:
            return library.Server(_parameters(library, setup, Path(directory) / "llama.sock"))
        except RuntimeError:
            raise ModelFailure(
                f"llama.cpp cannot load {setup.path}; the file may be damaged, or its kind of model newer than the "
                "library: fetch the file anew, or pip install --upgrade xllamacpp"
            ) from None


def _parameters(library: Any, setup: EngineSetup, socket: Path) -> Any:
    parameters = library.CommonParams()
    parameters.model.path = str(setup.path)
    parameters.n_ctx = setup.context_size
    parameters.n_parallel = 1
    parameters.n_batch = parameters.n_ubatch = BATCH_TOKENS
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = _threads()
    parameters.cache_ram_mib = 0  # 8 GB of finished conversations otherwise
    parameters.warmup = False
    parameters.verbosity = _SILENT  # its log may go to stdout, which is the wire
    parameters.hostnames = [str(socket)]
    parameters.api_keys = [secrets.token_urlsafe(32)]
    parameters.n_threads_http = 1
    parameters.ui = False
    return parameters


def _threads() -> int:
    """Return half of the processors, for the editor and the tools want some too.

    On two cores, tokens written a second: 82 to 88 with both while nothing else ran, but 4 to 34 in some runs while
    something did, since the threads wait for each other; with one 46 to 76 either way.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable // 2)


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


ENGINE = Engine()
"""One in a process: two models would need the memory of both, and share the same processors."""
