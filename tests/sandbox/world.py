"""A user's machine in a directory: a workspace, a home with secrets, other files, sockets and processes."""

import ctypes
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.sandbox.attempts import ATTEMPTS, MARK, SECRET

ROOT = Path(__file__).parent.parent.parent
IS_ROOT = os.getuid() == 0


def has_ipv6():
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::1", 0))
        return True
    return False


HAS_IPV6 = has_ipv6()

SECRETS = [name.removeprefix("read: ") for name in ATTEMPTS if name.startswith("read: .")]
CHANGED = [
    *("linked.txt", "hard.txt", "hard-fd.txt", "reopened.txt", "appended.txt", "mapped.txt", "truncated.txt"),
    *("deleted.txt", "moved.txt", "mode.txt"),
]
ACTIVE = [
    *(".git/config", ".git/hooks/pre-commit.sample", ".git/info/exclude", "nested/.git/config", "AGENTS.md"),
    *(".vscode/tasks.json", ".github/workflows/ci.yml", "docs/linked-instructions.md", "included.gitconfig"),
    *("bare/config", "bare/HEAD", "bare/objects/x", ".envrc", "GEMINI.md", "QWEN.md", "package/AGENTS.md"),
]


class World:
    """The machine. Use it as a context manager."""

    def __init__(self):
        self._stack = ExitStack()
        self._sockets = {}

    def __enter__(self):
        # Not in /tmp, which is private in the sandbox: nothing there could be reached anyway.
        cache = ROOT / ".cache"
        cache.mkdir(exist_ok=True)
        self.base = Path(tempfile.mkdtemp(prefix="sandbox-", dir=cache)).resolve()
        self._stack.callback(self._remove)
        self.workspace, self.extra, self.home = (self.base / name for name in ("workspace", "extra", "home"))
        self._write_files()
        self.notes = {
            "workspace": str(self.workspace),
            "movable": str(self.extra),
            "outside": str(self.base / "outside"),
            "home": str(self.home),
            "host": os.getpid(),
            "host-way": os.path.relpath(self.base / "outside"),
            "stays": f"stays-{self.base.name}",
            **self._files_elsewhere(),
            **self._listen(),
            **self._start_victim(),
            **self._share_memory(),
            **self._open_terminal(),
        }
        self._open_secret()
        return self

    def __exit__(self, *error):
        for pid in self._staying():
            os.kill(pid, 9)
        self._stack.close()

    def write_notes(self, left_out):
        """Write the notes for the attempts, and return their file."""
        file = self.workspace / "notes.json"
        file.write_text(json.dumps({**self.notes, "left-out": list(left_out)}))
        return str(file)

    def has_escaped(self, result):
        """Return whether an attempt has got anything outside."""
        match result:
            case {"wrote": path}:
                return self._contains_mark(Path(path))
            case {"read": text}:
                return SECRET in text
            case {"sent": name}:
                return self._has_received(name)
            case {"stays": _}:
                return bool(self._staying())
            case {"did": True}:
                return True
            case _:
                return False

    # ── making it ───────────────────────────────────────────────────────────────────────────────

    def _write_files(self):
        texts = {
            **{self.base / "outside" / name: "x" * len(MARK) for name in CHANGED},
            **{self.workspace / name: "x" for name in ACTIVE},
            **{self.home / name: SECRET for name in SECRETS},
            self.workspace / ".git/config": "[include]\n\tpath = ../included.gitconfig\n",
            self.workspace / "state/token": SECRET,
            self.workspace / "sub/file": "",
            self.base / "outside/secret": SECRET,
        }
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name in (".config/autostart", ".local/bin", ".config/systemd/user", ".docker/run"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        self.extra.mkdir()
        (self.workspace / "link-to-outside").symlink_to(self.base / "outside")
        (self.workspace / "link-to-file").symlink_to(self.base / "outside/linked.txt")
        (self.workspace / "CLAUDE.md").symlink_to("docs/linked-instructions.md")
        if IS_ROOT:
            os.mknod(self.workspace / "device", 0o600 | stat.S_IFCHR, os.makedev(1, 5))
            shutil.copy(shutil.which("id"), self.base / "outside/setuid")
            os.chown(self.base / "outside/setuid", 65534, 65534)
            (self.base / "outside/setuid").chmod(0o4755)

    def _files_elsewhere(self):
        files = {"tmp": "/tmp", "var-tmp": "/var/tmp", "shm": "/dev/shm"}
        for name, directory in files.items():
            files[name] = f"{directory}/dragoman-{self.base.name}"
            Path(files[name]).write_text("x" * len(MARK))
            self._stack.callback(os.unlink, files[name])
        return files

    def _listen(self):
        outside, name = self.base / "outside", self.base.name
        stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
        kinds = {
            "tcp": (socket.AF_INET, stream, ("0.0.0.0", 0)),
            "tcp6": (socket.AF_INET6, stream, ("::1", 0)),
            "udp": (socket.AF_INET, datagram, ("127.0.0.1", 0)),
            "udp6": (socket.AF_INET6, datagram, ("::1", 0)),
            "stream": (socket.AF_UNIX, stream, str(outside / "s")),
            "inside": (socket.AF_UNIX, stream, str(self.workspace / "s")),
            "agent": (socket.AF_UNIX, stream, str(outside / "agent")),
            "docker": (socket.AF_UNIX, stream, str(self.home / ".docker/run/docker.sock")),
            "abstract": (socket.AF_UNIX, stream, f"\0dragoman-{name}"),
            "datagram": (socket.AF_UNIX, datagram, str(outside / "d")),
        }
        if not HAS_IPV6:
            kinds = {key: kind for key, kind in kinds.items() if not key.endswith("6")}
        if IS_ROOT:
            kinds["run"] = (socket.AF_UNIX, stream, f"/run/dragoman-{name}")
            self._stack.callback(os.unlink, f"/run/dragoman-{name}")
        notes = {}
        for key, (family, kind, address) in kinds.items():
            listener = self._sockets[key] = self._stack.enter_context(socket.socket(family, kind))
            listener.bind(address)
            if kind == stream:
                listener.listen()
            notes[key] = address if family == socket.AF_UNIX else listener.getsockname()[1]
            listener.setblocking(False)
        notes["address"] = "127.0.0.1"
        with suppress(OSError), socket.socket(socket.AF_INET, datagram) as probe:  # a machine without a network
            probe.connect(("192.0.2.1", 9))  # sends nothing
            notes["address"] = probe.getsockname()[0]
        return notes

    def _start_victim(self):
        victim = subprocess.Popen(
            ["sleep", "600"], env={**os.environ, "VICTIM": SECRET}, start_new_session=True, stdin=subprocess.DEVNULL
        )
        self._stack.callback(victim.wait)
        self._stack.callback(victim.kill)
        return {"victim": victim.pid}

    def _share_memory(self):
        libc = ctypes.CDLL(None, use_errno=True)
        key = int.from_bytes(os.urandom(3), "big") + 1
        segment = libc.shmget(key, 16, 0o1600)  # IPC_CREAT
        assert segment >= 0, os.strerror(ctypes.get_errno())
        self._stack.callback(libc.shmctl, segment, 0, None)  # IPC_RMID
        return {"shared": key}

    def _open_terminal(self):
        ours, theirs = os.openpty()
        self._stack.callback(os.close, ours)
        self._stack.callback(os.close, theirs)
        os.set_blocking(ours, False)
        self._terminal = ours
        return {"terminal": os.ttyname(theirs)}

    def _open_secret(self):
        self.descriptor = os.open(self.base / "outside/secret", os.O_RDONLY)
        os.set_inheritable(self.descriptor, True)
        self._stack.callback(os.close, self.descriptor)

    # ── looking at it ───────────────────────────────────────────────────────────────────────────

    def _contains_mark(self, path):
        self._unlock()
        return path.is_file() and MARK in path.read_text()

    def _has_received(self, name):
        with suppress(BlockingIOError):
            data = os.read(self._terminal, 100) if name == "terminal" else self._sockets[name].recv(100)
            return MARK.encode() in data
        return False

    def _staying(self):
        found = []
        for entry in os.listdir("/proc"):
            with suppress(OSError, ValueError):
                if self.notes["stays"].encode() in Path(f"/proc/{int(entry)}/cmdline").read_bytes():
                    found.append(int(entry))
        return found

    def _unlock(self):
        for directory in self.workspace.glob("*locked*"):
            directory.chmod(0o700)

    def _remove(self):
        self._unlock()
        shutil.rmtree(self.base)


def environment(world):
    """Return the variables of the user."""
    return {**os.environ, "HOME": str(world.home), "DRAGOMAN_HOME": str(world.home / ".dragoman")}


COMMAND = (sys.executable, "-I", "-S", str(Path(__file__).parent / "attempts.py"))
