"""The one model that is loaded in this process, the queue of sessions that want it, and the thread that runs it.

llama.cpp comes as a server with a listener that cannot be left out. It is given a socket in a directory that only
this user can enter, under a random key, and the socket is removed as soon as the model is loaded; we call it
directly.

Sessions wait in `ModelQueue`, first come first served. `ThreadStream` carries items from the thread to a task, with a
bound on how far the thread may be ahead.
"""

import asyncio
import atexit
import importlib
import importlib.util
import os
import secrets
import tempfile
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from dragoman.assistant.models.local.gguf import available_memory, check_memory, read_head
from dragoman.errors import ModelFailure

T = TypeVar("T")

MAX_AHEAD = 64
"""Items between thread and task: a few seconds of a small model, so that neither often waits for the other."""

Give = Callable[[T], bool]
"""Hands an item on, and returns True when no more are wanted."""


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class ThreadStream(Generic[T]):
    """The items of `produce`, which runs in a daemon thread; after `stop` its next `give` returns True."""

    def __init__(self, produce: Callable[[Give[T]], None], name: str) -> None:
        self._produce = produce
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[T | _End] = asyncio.Queue(MAX_AHEAD + 1)
        self._room = threading.Semaphore(MAX_AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; from any thread."""
        self._stopped.set()
        self._room.release()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread, and return whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    async def items(self) -> AsyncGenerator[T]:
        """Yield the items, and raise the error of `produce`; leaving early stops the thread."""
        try:
            while not isinstance(item := await self._items.get(), _End):
                self._room.release()
                yield item
            if item.error is not None:
                raise item.error
        finally:
            self.stop()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._produce(self._give)
        except BaseException as problem:  # noqa: BLE001 -- a task top: the reader gets the error
            error = problem
        self._put(_End(error))

    def _give(self, item: T) -> bool:
        self._room.acquire()
        if self._stopped.is_set():
            self._room.release()
            return True
        return not self._put(item) or self._stopped.is_set()

    def _put(self, item: T | _End) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)
        except RuntimeError:  # the loop is closed, so there is no reader
            return False
        return True


MAX_WAITING = 8
"""Sessions behind the one that is served: each may take minutes, so that a ninth would wait longer than a person."""


class QueuePosition:
    """A position in the queue; `turn` is done when it is the first."""

    def __init__(self, line: "ModelQueue") -> None:
        self._line = line
        self.turn: Future[None] = Future()
        self.turn.set_running_or_notify_cancel()  # so that a cancelled waiter does not cancel the turn itself

    def leave(self) -> None:
        """Let the next one in; from any thread, and again without harm."""
        self._line.leave(self)


class ModelQueue:
    """The waiting replies; the first has the model."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._places: deque[QueuePosition] = deque()

    def join(self) -> QueuePosition:
        """Take a place at the end; raises ModelFailure when the line is too long."""
        with self._lock:
            if len(self._places) > self._max_waiting:
                raise ModelFailure(
                    f"{self._max_waiting} sessions wait for the local model already; try again when they are done"
                )
            place = QueuePosition(self)
            self._places.append(place)
            if len(self._places) == 1:
                place.turn.set_result(None)
            return place

    def leave(self, place: QueuePosition) -> None:
        """Give up a place, wherever in the line it is."""
        with self._lock:
            if place not in self._places:
                return
            self._places.remove(place)
            if self._places and not self._places[0].turn.done():
                self._places[0].turn.set_result(None)


BATCH_TOKENS = 256
"""Tokens of the prompt that are read at a time: a cancellation during that takes effect between two batches."""

EXIT_WAIT_S = 5.0
"""How long the process waits at its end for a batch to be done, so that memory is freed in order."""

_READ_BYTES = 1 << 20
_SILENT = -1

Chunk = dict[str, Any]


class LlamaServer(Protocol):
    """The methods of the library's server that we use."""

    def handle_chat_completions(self, request: dict[str, Any], callback: Callable[[Chunk], bool], /) -> None:
        """Answer, chunk by chunk, until the callback returns True."""
        ...


class EngineSetup(msgspec.Struct, frozen=True):
    """A model file and how it is loaded."""

    path: Path
    context_size: int


class Engine:
    """Loads, frees and stops; all but `stop_at_exit` only for the reply with the first position in the queue."""

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
        """Return the loaded model; another model that was loaded is freed. Raises ModelFailure."""
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
        """End the running reply and free the model, before the interpreter ends."""
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
    from dragoman.installation import how_to_add

    return ModelFailure(f"models in local files need llama.cpp; {how_to_add('local')}")


def _import_library() -> Any:
    try:
        return importlib.import_module("xllamacpp")
    except ModuleNotFoundError:
        raise missing_library() from None
    except ImportError as error:
        raise ModelFailure(f"llama.cpp cannot be used on this machine: {error}") from None


def _read_ahead(path: Path) -> None:
    """Bring the file into the system's cache, because the library blocks the whole process while it loads."""
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
                "library: fetch the file anew, or install a newer version of the package xllamacpp"
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
    """Return half of the processors, because the editor and the tools need some too.

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
