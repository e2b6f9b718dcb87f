"""Machines for nodes: network namespaces with two cables each, one to the database and one to viewers.

They are created inside a separate network (`OWN_NETWORK`), because links that appear and disappear on the machine
itself break the requests of browsers in other tests. If namespaces cannot be created (`why_no_namespaces`), a machine
is a process with two relays that can be cut as well. A cut cable drops everything and notifies neither end.
"""

import asyncio
import os
import shutil
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path

OWN_NETWORK = (
    *("unshare", "--net", "--mount", "--", "sh", "-c"),
    'mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && ip link set lo up && exec "$@"',
    "sh",
)
"""Prefix of a command that runs it in a separate network, in which all names of namespaces and links are free."""

_NUMBERS = range(1, 120)
_CHUNK = 64 * 1024


def _ip(*lines):
    """Run `ip` commands, and stop at the first one that fails."""
    batch = "\n".join(lines).encode()
    return subprocess.run(["ip", "-batch", "-"], input=batch, capture_output=True, check=False)


@cache
def why_no_namespaces():
    """Return the reason why namespaces cannot be created here, or None."""
    for program in ("ip", "unshare", "mount"):
        if shutil.which(program) is None:
            return f"there is no program `{program}`"
    if os.geteuid() != 0:
        return "only root may make them"
    probe = "ip link add dgm1 type veth peer name dgm2 && ip netns add dgm && ip link set dgm2 netns dgm"
    done = subprocess.run([*OWN_NETWORK, "sh", "-c", probe], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()


def make_machine(database_port):
    """Create a machine that reaches the database at this port of the host."""
    return NamespaceMachine(database_port) if why_no_namespaces() is None else RelayedMachine(database_port)


class NamespaceMachine:
    """A network namespace. Creating its first link reserves its number."""

    def __init__(self, database_port):
        for number in _NUMBERS:
            made = _ip(f"link add dgm{number}d type veth peer name dgm{number}D")
            if made.returncode == 0:
                break
            if b"File exists" not in made.stderr:
                raise OSError(made.stderr.decode().strip())
        else:
            raise OSError("all numbers are taken by links that are called dgm…")
        self._name = name = f"dgm{number}"
        here, there = f"198.18.{number}", f"198.19.{number}"
        # Without the last two routes, packets for a link that is down would leave this machine.
        done = _ip(
            f"netns add {name}",
            f"link add {name}v type veth peer name {name}V",
            f"link set {name}D netns {name}",
            f"link set {name}V netns {name}",
            f"addr add {here}.1/30 dev {name}d",
            f"addr add {there}.1/30 dev {name}v",
            f"link set {name}d up",
            f"link set {name}v up",
            f"route add blackhole {here}.0/30 metric 4000",
            f"route add blackhole {there}.0/30 metric 4000",
        )
        inside = [
            f"addr add {here}.2/30 dev {name}D",
            f"addr add {there}.2/30 dev {name}V",
            f"link set {name}D up",
            f"link set {name}V up",
            "link set lo up",
        ]
        if done.returncode == 0:
            command = ["ip", "-n", name, "-batch", "-"]
            done = subprocess.run(command, input="\n".join(inside).encode(), capture_output=True, check=False)
        if done.returncode != 0:
            self.remove()
            raise OSError(done.stderr.decode().strip())
        self.database = f"{here}.1:{database_port}"
        self.listens_at = f"{there}.2"
        self.command = ("ip", "netns", "exec", name)
        self._subnets = (f"{here}.0/30", f"{there}.0/30")

    async def open(self):
        """Do nothing, because the cables exist already."""

    async def reach(self, port):
        """Return the address at which viewers reach a port of this machine."""
        return self.listens_at, port

    def cut(self, cable):
        """Cut the cable to the `database` or to `viewers`."""
        assert _ip(f"link set {self._link(cable)} down").returncode == 0

    def heal(self, cable):
        """Reconnect the cable."""
        assert _ip(f"link set {self._link(cable)} up").returncode == 0

    def remove(self):
        """Remove the namespace after its processes have ended."""
        for line in (f"netns del {self._name}", f"link del {self._name}d", f"link del {self._name}v"):
            _ip(line)
        for subnet in getattr(self, "_subnets", ()):
            _ip(f"route del blackhole {subnet} metric 4000")

    def _link(self, cable):
        return f"{self._name}{cable[0]}"


class _Relay:
    """A cable of a process. It forwards bytes until it is cut, and then drops them."""

    def __init__(self, host, port):
        self._there = (host, port)
        self._whole = asyncio.Event()
        self._whole.set()
        self._tasks = set()
        self._server = None

    async def open(self):
        """Listen, and return the port."""
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    def cut(self):
        self._whole.clear()

    def heal(self):
        self._whole.set()

    def close(self):
        self._server.close()
        for task in self._tasks:
            task.cancel()

    async def _pass(self, reader, writer):
        self._tasks.add(asyncio.current_task())
        with suppress(OSError, asyncio.CancelledError):
            await self._whole.wait()
            there_reader, there_writer = await asyncio.open_connection(*self._there)
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._copy(reader, there_writer))
                    tasks.create_task(self._copy(there_reader, writer))
            except* OSError:
                pass
            finally:
                there_writer.close()
        writer.close()

    async def _copy(self, reader, writer):
        while data := await reader.read(_CHUNK):
            await self._whole.wait()
            writer.write(data)
            await writer.drain()
        writer.close()


class RelayedMachine:
    """A process of this machine, connected by relays."""

    def __init__(self, database_port):
        self._relays = {"database": _Relay("127.0.0.1", database_port)}
        self.command = ()
        self.listens_at = "127.0.0.1"

    async def open(self):
        """Open the relay to the database."""
        self.database = f"127.0.0.1:{await self._relays['database'].open()}"

    async def reach(self, port):
        """Return the address at which viewers reach a port of this machine."""
        self._relays["viewers"] = relay = _Relay("127.0.0.1", port)
        return "127.0.0.1", await relay.open()

    def cut(self, cable):
        """Cut the cable to the `database` or to `viewers`."""
        self._relays[cable].cut()

    def heal(self, cable):
        """Reconnect the cable."""
        self._relays[cable].heal()

    def remove(self):
        """Close the relays."""
        for relay in self._relays.values():
            relay.close()


_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long skew(void) { const char *text = getenv("SKEW_S"); return text ? atol(text) : 0; }

int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, at);
    if (!failed && id == CLOCK_REALTIME) at->tv_sec += skew();
    return failed;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    (void)zone;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def build_wrong_clock(folder: Path):
    """Build a library that shifts the clock of a process by SKEW_S. Return None without a C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library
