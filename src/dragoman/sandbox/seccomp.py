"""The filter of system calls inside the sandbox, as a classic BPF program for `bwrap --seccomp`.

Mounts and namespaces leave a few ways out, which only this filter closes:

- A read-only mount does not prevent a connection to a Unix socket below it, such as those of D-Bus and Docker. Abstract
  sockets belong to the network, which `workspace+network` shares. So no Unix socket can be created. `socketpair` stays,
  except for datagrams, because such a socket can be connected a second time.
- Other families reach the hypervisor or the kernel (`AF_VSOCK`, `AF_ALG`). Only IP and netlink are left.
- `io_uring` would open the same sockets without a filtered call.
- `TIOCSTI` and `TIOCLINUX` type into the terminal of the user.
- A new user namespace has all capabilities, and so most of the kernel's attack surface. `clone3` has its flags in
  memory, where a filter cannot read them. Programs use `clone` when it is missing.
- The kernel's keyrings belong to the user, not to a namespace.
- Root could leave a setuid program in the session's directory, for any other user to start.

Programs of another architecture, such as 32-bit ones, could use other numbers. All their calls fail.
"""

import errno
import functools
import os
import struct
from typing import Literal, NamedTuple

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_STREAM, SOCK_SEQPACKET, SOCK_TYPE_MASK = 1, 5, 0xF
CLONE_NEWUSER = 0x10000000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
S_ISUID = 0o4000
O_CREAT_OR_TMPFILE = 0o100 | 0o20000000

_LOAD, _AND, _JUMP_EQUAL, _JUMP_SET, _JUMP_AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x45, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000
"""The first number of the x32 ABI, a second set of numbers on x86_64."""


class _Test(NamedTuple):
    """A condition on one argument, after `mask`: it equals the value, it differs, or it has one of the bits."""

    argument: int
    how: Literal["is", "is not", "has"]
    value: int
    mask: int = 0xFFFFFFFF


class _Rule(NamedTuple):
    """A call that fails if all conditions hold."""

    call: str
    tests: tuple[_Test, ...] = ()
    error: int = errno.EPERM


def _setuid(mode: int, flags: int | None = None) -> tuple[_Test, ...]:
    creates = () if flags is None else (_Test(flags, "has", O_CREAT_OR_TMPFILE),)
    return (*creates, _Test(mode, "has", S_ISUID))


_RULES = (
    _Rule("socket", tuple(_Test(0, "is not", family) for family in (AF_INET, AF_INET6, AF_NETLINK))),
    _Rule("socketpair", (_Test(0, "is not", AF_UNIX),)),
    _Rule("socketpair", tuple(_Test(1, "is not", kind, SOCK_TYPE_MASK) for kind in (SOCK_STREAM, SOCK_SEQPACKET))),
    _Rule("io_uring_setup", error=errno.ENOSYS),
    _Rule("ioctl", (_Test(1, "is", TIOCSTI),)),
    _Rule("ioctl", (_Test(1, "is", TIOCLINUX),)),
    _Rule("clone", (_Test(0, "has", CLONE_NEWUSER),)),
    _Rule("unshare", (_Test(0, "has", CLONE_NEWUSER),)),
    _Rule("clone3", error=errno.ENOSYS),
    _Rule("add_key", error=errno.ENOSYS),
    _Rule("keyctl", error=errno.ENOSYS),
    _Rule("request_key", error=errno.ENOSYS),
    _Rule("chmod", _setuid(1)),
    _Rule("fchmod", _setuid(1)),
    _Rule("fchmodat", _setuid(2)),
    _Rule("fchmodat2", _setuid(2)),
    _Rule("open", _setuid(2, flags=1)),
    _Rule("openat", _setuid(3, flags=2)),
    _Rule("openat2", error=errno.ENOSYS),
    _Rule("creat", _setuid(1)),
    _Rule("mknod", _setuid(1)),
    _Rule("mknodat", _setuid(2)),
)

_SAME_EVERYWHERE = {"io_uring_setup": 425, "clone3": 435, "openat2": 437, "fchmodat2": 452}
_NUMBERS: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            **_SAME_EVERYWHERE,
            "socket": 41,
            "socketpair": 53,
            "ioctl": 16,
            "clone": 56,
            "unshare": 272,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "chmod": 90,
            "fchmod": 91,
            "fchmodat": 268,
            "open": 2,
            "openat": 257,
            "creat": 85,
            "mknod": 133,
            "mknodat": 259,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            **_SAME_EVERYWHERE,
            "socket": 198,
            "socketpair": 199,
            "ioctl": 29,
            "clone": 220,
            "unshare": 97,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "fchmod": 52,
            "fchmodat": 53,
            "openat": 56,
            "mknodat": 33,
        },
    ),
}
"""The audit architecture, and the numbers of the calls. A call without a number does not exist there."""


def make_filter(machine: str) -> bytes | None:
    """Return the filter for this architecture (`os.uname().machine`), or None if its numbers are not listed."""
    if machine not in _NUMBERS:
        return None
    architecture, numbers = _NUMBERS[machine]
    program = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_JUMP_EQUAL, architecture, 1, 0),
        _step(_RETURN, _FAIL | errno.EPERM),
        _step(_LOAD, _NUMBER_AT),
        _step(_JUMP_AT_LEAST, _X32, 0, 1),
        _step(_RETURN, _FAIL | errno.ENOSYS),
    ]
    for rule in _RULES:
        if rule.call in numbers:
            program += _compile(rule, numbers[rule.call])
    return b"".join([*program, _step(_RETURN, _ALLOW)])


def filter_path() -> str | None:
    """Return a path from which `bwrap` can read the filter while this process runs, or None if there is no filter."""
    descriptor = _open_filter()
    return None if descriptor is None else f"/proc/{os.getpid()}/fd/{descriptor}"


@functools.cache
def _open_filter() -> int | None:
    """Return a file in memory with the filter. It stays open until this process ends."""
    program = make_filter(os.uname().machine)
    if program is None:
        return None
    descriptor = os.memfd_create("dragoman-seccomp")
    os.write(descriptor, program)
    return descriptor


def _compile(rule: _Rule, number: int) -> list[bytes]:
    """Compile a rule. A condition that does not hold jumps behind the rule."""
    body: list[tuple[int, int, bool]] = []  # the code, its value, and whether it leaves the rule if it does not hold
    for test in rule.tests:
        body.append((_LOAD, _ARGUMENTS_AT + 8 * test.argument, False))  # the low half, on little-endian machines
        if test.mask != 0xFFFFFFFF:
            body.append((_AND, test.mask, False))
        body.append((_JUMP_SET if test.how == "has" else _JUMP_EQUAL, test.value, True))
    steps: list[bytes] = []
    inverted = [test.how == "is not" for test in rule.tests]
    left = len(body) + 3  # the body, the return, and the reload of the number after it
    steps.append(_step(_JUMP_EQUAL, number, 0, left - 1))
    for at, (code, value, leaves) in enumerate(body):
        behind = len(body) - at  # the steps from here to the reload
        jumps = (0, behind) if leaves else (0, 0)
        if leaves and inverted.pop(0):
            jumps = jumps[::-1]
        steps.append(_step(code, value, *jumps))
    return [*steps, _step(_RETURN, _FAIL | rule.error), _step(_LOAD, _NUMBER_AT)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
