"""Attempts to get out of the sandbox. A Python without dragoman runs them: `python attempts.py NOTES`.

`NOTES` is a JSON file that describes the world outside. Each attempt returns what it got:

- `wrote(path)`: the host looks whether this file contains `MARK` at the end.
- `read(text)`: the host looks whether it contains `SECRET`.
- `sent(name)`: the host looks whether this socket or terminal received `MARK`.
- `did()`: it counts if no error is raised.

The output is one JSON object with the result or the error of each attempt. Attempts run in the order of the file.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import pty
import signal
import socket
import struct
import subprocess
import sys

MARK, SECRET = "ESCAPED", "TOP-SECRET"

NOTES = {}
LIBC = ctypes.CDLL(None, use_errno=True)
ATTEMPTS = {}


class Attempt:
    def __init__(self, run, needs):
        self.run = run
        self.needs = needs
        """What it needs to work without the sandbox: `root`, `IPv6`, or something that a machine seldom has."""


def attempt(name, *, needs=""):
    def add(run):
        assert name not in ATTEMPTS, name
        ATTEMPTS[name] = Attempt(run, needs)
        return run

    return add


def wrote(path):
    return {"wrote": path}


def read(text):
    return {"read": text}


def sent(name):
    return {"sent": name}


def did():
    return {"did": True}


def put(path, *, mode="w"):
    with open(path, mode) as file:
        file.write(MARK)


def call(name, *arguments):
    """Call a function of libc, or a system call by its number."""
    function = LIBC.syscall if isinstance(name, int) else getattr(LIBC, name)
    words = (name, *arguments) if isinstance(name, int) else arguments
    result = function(*(ctypes.c_long(word) if isinstance(word, int) else word for word in words))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def link_descriptor(descriptor, path):
    """Link an open file. Python follows the link in /proc only below a directory descriptor."""
    os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=os.open("/", os.O_RDONLY), follow_symlinks=True)


def outside(name):
    return f"{NOTES['outside']}/{name}"


def inside(name):
    return f"{NOTES['workspace']}/{name}"


# ── writing outside, by every form of a path ────────────────────────────────────────────────────────


def write_to(name, path, *, needs=""):
    """Add an attempt that writes a file outside. `path` makes its path from the name of the file."""

    @attempt(f"write: {name}", needs=needs)
    def run():
        file = name.replace(" ", "-").replace("/", "_")
        put(path(file))
        return wrote(outside(file))


write_to("absolute path", outside)
write_to("relative path", lambda file: f"../outside/{file}")
write_to("through a directory and back", lambda file: f"sub/../../outside/{file}")
write_to("doubled slashes and dots", lambda file: f"/{NOTES['outside']}//./{file}")
write_to("a link to a directory", lambda file: f"link-to-outside/{file}")
write_to("a link through /proc/self/cwd", lambda file: f"/proc/self/cwd/../outside/{file}")
write_to("/proc/self/root", lambda file: f"/proc/self/root{outside(file)}")
write_to("/proc/1/root", lambda file: f"/proc/1/root{outside(file)}", needs="access to process 1")
write_to("the root of the host process", lambda file: f"/proc/{NOTES['host']}/root{outside(file)}")
write_to("the directory of the host process", lambda file: f"/proc/{NOTES['host']}/cwd/{NOTES['host-way']}/{file}")


@attempt("write: a link to a file")
def _():
    put("link-to-file")
    return wrote(outside("linked.txt"))


@attempt("write: a new link")
def _():
    os.symlink(outside("new-link.txt"), "new-link")
    put("new-link")
    return wrote(outside("new-link.txt"))


@attempt("write: a chain of new links")
def _():
    os.symlink("../outside", "chain-1")
    os.symlink("chain-1", "chain-2")
    put("chain-2/chain.txt")
    return wrote(outside("chain.txt"))


@attempt("write: below a directory descriptor")
def _():
    directory = os.open(NOTES["outside"], os.O_PATH)
    file = os.open("descriptor.txt", os.O_WRONLY | os.O_CREAT, dir_fd=directory)
    os.write(file, MARK.encode())
    return wrote(outside("descriptor.txt"))


@attempt("write: after chdir and fchdir")
def _():
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(NOTES["outside"])
        put("chdir.txt")
    finally:
        os.fchdir(here)
    return wrote(outside("chdir.txt"))


@attempt("write: rename out")
def _():
    put("to-rename")
    os.rename("to-rename", outside("renamed-out.txt"))
    return wrote(outside("renamed-out.txt"))


@attempt("write: a new hard link")
def _():
    os.link(outside("hard.txt"), "hard-link")
    put("hard-link")
    return wrote(outside("hard.txt"))


@attempt("write: a hard link through /proc/self/fd")
def _():
    file = os.open(outside("hard-fd.txt"), os.O_RDONLY)
    link_descriptor(file, "hard-link-fd")
    put("hard-link-fd")
    return wrote(outside("hard-fd.txt"))


@attempt("write: reopen a reading descriptor")
def _():
    file = os.open(outside("reopened.txt"), os.O_RDONLY)
    put(f"/proc/self/fd/{file}")
    return wrote(outside("reopened.txt"))


@attempt("write: append")
def _():
    put(outside("appended.txt"), mode="a")
    return wrote(outside("appended.txt"))


@attempt("write: shared memory map")
def _():
    with open(outside("mapped.txt"), "r+b") as file, mmap.mmap(file.fileno(), len(MARK)) as memory:
        memory[:] = MARK.encode()
    return wrote(outside("mapped.txt"))


@attempt("write: nameless file, linked later")
def _():
    file = os.open(NOTES["outside"], os.O_TMPFILE | os.O_WRONLY)
    os.write(file, MARK.encode())
    link_descriptor(file, outside("nameless.txt"))
    return wrote(outside("nameless.txt"))


@attempt("write: copy by a child program")
def _():
    put("to-copy")
    subprocess.run(["cp", "to-copy", outside("copied.txt")], check=True, capture_output=True)
    return wrote(outside("copied.txt"))


for _place in ("tmp", "var-tmp", "shm"):

    @attempt(f"write: a file in the host's {_place}")
    def _(place=_place):
        put(NOTES[place], mode="r+")
        return wrote(NOTES[place])


for _file in (".bashrc", ".config/autostart/x.desktop", ".local/bin/ls", ".config/systemd/user/x.service"):

    @attempt(f"write: {_file} in the home")
    def _(file=_file):
        put(f"{NOTES['home']}/{file}")
        return wrote(f"{NOTES['home']}/{file}")


@attempt("change: truncate")
def _():
    os.truncate(outside("truncated.txt"), 0)
    return did()


@attempt("change: delete")
def _():
    os.unlink(outside("deleted.txt"))
    return did()


@attempt("change: rename")
def _():
    os.rename(outside("moved.txt"), outside("moved-away.txt"))
    return did()


@attempt("change: mode")
def _():
    os.chmod(outside("mode.txt"), 0o600)
    return did()


@attempt("change: times")
def _():
    os.utime(outside("mode.txt"), (1, 1))
    return did()


@attempt("change: extended attribute")
def _():
    os.setxattr(outside("mode.txt"), "user.x", b"1")
    return did()


@attempt("change: new directory")
def _():
    os.mkdir(outside("directory"))
    return did()


@attempt("change: new link")
def _():
    os.symlink("x", outside("link"))
    return did()


@attempt("change: new pipe")
def _():
    os.mkfifo(outside("pipe"))
    return did()


@attempt("change: replace the workspace itself")
def _():
    os.rename(NOTES["movable"], f"{NOTES['movable']}-away")
    return did()


# ── files of the workspace that run by themselves ───────────────────────────────────────────────────


def overwrite(path, *, mode="w"):
    @attempt(f"active file: {path}")
    def run():
        put(path, mode=mode)
        return wrote(inside(path))


overwrite(".git/config", mode="a")
overwrite(".git/hooks/pre-commit")
overwrite(".git/commondir")
overwrite(".git/info/attributes")
overwrite("nested/.git/config", mode="a")
overwrite("AGENTS.md")
overwrite(".vscode/tasks.json")
overwrite(".github/workflows/new.yml")
overwrite("docs/linked-instructions.md")  # CLAUDE.md links to it
overwrite("included.gitconfig")  # .git/config includes it
overwrite("bare/config")  # of a bare repository


@attempt("active file: replaced by a rename")
def _():
    put("other")
    os.replace("other", ".envrc")
    return wrote(inside(".envrc"))


@attempt("active file: deleted and written again")
def _():
    os.unlink("GEMINI.md")
    put("GEMINI.md")
    return wrote(inside("GEMINI.md"))


@attempt("active file: through a hard link")
def _():
    os.link("QWEN.md", "hard-qwen")
    put("hard-qwen")
    return wrote(inside("QWEN.md"))


@attempt("active file: another Git directory")
def _():
    os.rename("nested/.git", "nested/moved")
    os.mkdir("nested/.git")
    put("nested/.git/config")
    return wrote(inside("nested/.git/config"))


@attempt("active file: another parent directory")
def _():
    os.rename("package", "package-moved")
    os.mkdir("package")
    put("package/AGENTS.md")
    return wrote(inside("package/AGENTS.md"))


@attempt("active file: a link replaced by a file")
def _():
    os.unlink("CLAUDE.md")
    put("CLAUDE.md")
    return wrote(inside("CLAUDE.md"))


@attempt("active file: a new one")
def _():
    os.makedirs("fresh/.vscode")
    put("fresh/.vscode/tasks.json")
    return wrote(inside("fresh/.vscode/tasks.json"))


@attempt("active file: a new Git directory, with another case")
def _():
    os.makedirs("fresh/.GIT")
    put("fresh/.GIT/config")
    return wrote(inside("fresh/.GIT/config"))


@attempt("active file: a new one in a directory that cannot be read")
def _():
    os.makedirs("locked/.vscode")
    put("locked/.vscode/tasks.json")
    os.chmod("locked", 0)
    return wrote(inside("locked/.vscode/tasks.json"))


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────────

for _file in (
    *(".ssh/id_ed25519", ".aws/credentials", ".config/gcloud/credentials.db", ".azure/msal.json", ".kube/config"),
    *(".docker/config.json", ".netrc", ".npmrc", ".gnupg/private", ".git-credentials", ".config/gh/hosts.yml"),
    *(".claude/.credentials.json", ".dragoman/token", ".dragoman/keys.json"),
):

    @attempt(f"read: {_file}")
    def _(file=_file):
        with open(f"{NOTES['home']}/{file}") as secret:
            return read(secret.read())


@attempt("read: a key through a link")
def _():
    os.symlink(f"{NOTES['home']}/.ssh", "link-to-ssh")
    with open("link-to-ssh/id_ed25519") as secret:
        return read(secret.read())


@attempt("read: the home of dragoman inside the workspace")
def _():
    with open("state/token") as secret:
        return read(secret.read())


@attempt("read: variables of the host process")
def _():
    with open(f"/proc/{NOTES['victim']}/environ") as secret:
        return read(secret.read())


@attempt("read: a key below its mount", needs="root")
def _():
    path = f"{NOTES['home']}/.ssh"
    if os.path.ismount(path):
        call("umount2", path.encode(), 2)
    else:
        call("mount", b"none", path.encode(), b"tmpfs", 0, None)
        call("umount2", path.encode(), 2)
    with open(f"{path}/id_ed25519") as secret:
        return read(secret.read())


@attempt("read: a file by its handle", needs="root")
def _():
    handle, mount = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128)), ctypes.c_int()
    path = outside("secret").encode()
    call("name_to_handle_at", -100, path, handle, ctypes.byref(mount), 0)
    file = call("open_by_handle_at", os.open("/", os.O_RDONLY), handle, os.O_RDONLY)
    return read(os.read(file, 100).decode())


@attempt("read: an inherited descriptor")
def _():
    found = ""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and os.path.exists(f"/proc/self/fd/{name}"):
            target = os.readlink(f"/proc/self/fd/{name}")
            found += os.read(int(name), 100).decode() if target.endswith("secret") else ""
    return read(found)


# ── other processes ─────────────────────────────────────────────────────────────────────────────────


@attempt("process: signal")
def _():
    os.kill(NOTES["victim"], signal.SIGCONT)
    return did()


@attempt("process: signal to its group")
def _():
    os.killpg(NOTES["victim"], signal.SIGCONT)
    return did()


@attempt("process: pidfd")
def _():
    os.pidfd_open(NOTES["victim"])
    return did()


@attempt("process: ptrace", needs="root")
def _():
    call("ptrace", 0x4206, NOTES["victim"], 0, 0)  # PTRACE_SEIZE
    return did()


@attempt("process: its memory", needs="root")
def _():
    with open(f"/proc/{NOTES['victim']}/mem", "rb"):
        return did()


@attempt("process: its namespaces", needs="root")
def _():
    namespace = os.open(f"/proc/{NOTES['host']}/ns/net", os.O_RDONLY)
    call("setns", namespace, 0)
    return did()


@attempt("process: the program of the sandbox", needs="there is no sandbox")
def _():
    if "bwrap" in os.readlink("/proc/1/exe"):
        with open("/proc/1/exe", "r+b"):
            return did()
    raise FileNotFoundError(errno.ENOENT, "no bwrap")


@attempt("process: System V shared memory")
def _():
    LIBC.shmat.restype = ctypes.c_void_p
    call("shmget", NOTES["shared"], 16, 0o600)
    return did()


@attempt("process: the user's keyring")
def _():
    numbers = {"x86_64": 250, "aarch64": 219}
    call(numbers[os.uname().machine], 0, -4, 1)  # KEYCTL_GET_KEYRING_ID of the user
    return did()


@attempt("process: one that stays")
def _():
    command = f"exec {sys.executable} -c 'import time; time.sleep(600)' {NOTES['stays']}"
    subprocess.Popen(
        ["setsid", "sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return {"stays": NOTES["stays"]}


# ── the network and sockets ─────────────────────────────────────────────────────────────────────────


def connect(name, family, address, *, datagram="", needs=""):
    """Add an attempt that connects to the host. `datagram` is the name of the socket that receives it."""

    @attempt(name, needs=needs)
    def run():
        with socket.socket(family, socket.SOCK_DGRAM if datagram else socket.SOCK_STREAM) as connection:
            connection.settimeout(5)
            connection.connect(address())
            connection.sendall(MARK.encode())
        return sent(datagram) if datagram else did()


connect("network: TCP over IPv4", socket.AF_INET, lambda: ("127.0.0.1", NOTES["tcp"]))
connect("network: TCP over IPv6", socket.AF_INET6, lambda: ("::1", NOTES["tcp6"]), needs="IPv6")
connect("network: TCP to the host's address", socket.AF_INET, lambda: (NOTES["address"], NOTES["tcp"]))
connect("network: IPv4 in IPv6", socket.AF_INET6, lambda: ("::ffff:127.0.0.1", NOTES["tcp"]), needs="IPv6")
connect("network: UDP over IPv4, as DNS", socket.AF_INET, lambda: ("127.0.0.1", NOTES["udp"]), datagram="udp")
connect("network: UDP over IPv6", socket.AF_INET6, lambda: ("::1", NOTES["udp6"]), datagram="udp6", needs="IPv6")
connect("socket: outside", socket.AF_UNIX, lambda: NOTES["stream"])
connect("socket: in the workspace", socket.AF_UNIX, lambda: NOTES["inside"])
connect("socket: of the SSH agent", socket.AF_UNIX, lambda: NOTES["agent"])
connect("socket: of Docker in the home", socket.AF_UNIX, lambda: NOTES["docker"])
connect("socket: in /run, as of D-Bus and Docker", socket.AF_UNIX, lambda: NOTES["run"], needs="root")
connect("socket: abstract", socket.AF_UNIX, lambda: NOTES["abstract"])
connect("socket: datagram", socket.AF_UNIX, lambda: NOTES["datagram"], datagram="datagram")


@attempt("network: a name", needs="a name server outside of the test")
def _():
    return read(SECRET if socket.getaddrinfo("example.com", 80) else "")


@attempt("network: raw packets", needs="root")
def _():
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW):
        return did()


@attempt("network: ICMP", needs="root")
def _():
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP):
        return did()


for _kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):

    @attempt(f"socket: a pair of {_kind.name} sockets, connected again")
    def _(kind=_kind):
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        with one, other:
            one.sendto(MARK.encode(), NOTES["datagram"])
        return sent("datagram")


@attempt("socket: a pair of stream sockets, connected again", needs="the kernel refuses it")
def _():
    one, other = socket.socketpair()
    with one, other:
        one.connect(NOTES["stream"])
    return did()


@attempt("socket: the hypervisor (AF_VSOCK)", needs="a virtual machine with vsock")
def _():
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM):
        return did()


@attempt("socket: the kernel's ciphers (AF_ALG)", needs="a kernel with AF_ALG")
def _():
    with socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET):
        return did()


@attempt("socket: io_uring", needs="a kernel that allows io_uring")
def _():
    os.close(call(425, 4, ctypes.create_string_buffer(120)))
    return did()


# ── privileges, mounts and devices ──────────────────────────────────────────────────────────────────


@attempt("privilege: a user namespace")
def _():
    child = os.fork()
    if child == 0:
        try:
            call("unshare", 0x10000000)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))
    return did()


@attempt("privilege: a user namespace by clone3")
def _():
    flags = struct.pack("QQQQQQQQ", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    child = call(435, ctypes.create_string_buffer(flags, 64), 64)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return did()


@attempt("privilege: a user namespace by a program")
def _():
    subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], check=True, capture_output=True)
    return did()


@attempt("privilege: a setuid program of the host", needs="root")
def _():
    done = subprocess.run([outside("setuid"), "-u"], check=True, capture_output=True, text=True)
    return did() if int(done.stdout) != os.getuid() else {"error": "it has our user"}


@attempt("privilege: a new setuid program, by chmod")
def _():
    put("setuid-1")
    os.chmod("setuid-1", 0o4755)
    return did()


@attempt("privilege: a new setuid program, by fchmod")
def _():
    put("setuid-2")
    with open("setuid-2") as file:
        os.fchmod(file.fileno(), 0o4755)
    return did()


@attempt("privilege: a new setuid program, by open")
def _():
    os.close(os.open("setuid-3", os.O_CREAT | os.O_WRONLY, 0o4755))
    return did()


@attempt("privilege: a new setuid program, by openat2")
def _():
    how = struct.pack("QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0)
    os.close(call(437, -100, b"setuid-4", ctypes.create_string_buffer(how, 24), 24))
    return did()


@attempt("privilege: chroot", needs="root")
def _():
    child = os.fork()
    if child == 0:
        try:
            os.chroot(".")
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))
    return did()


@attempt("privilege: mount", needs="root")
def _():
    os.makedirs("mounted", exist_ok=True)
    call("mount", b"none", b"mounted", b"tmpfs", 0, None)
    call("umount", b"mounted")
    return did()


@attempt("privilege: the mount interface of file descriptors", needs="root")
def _():
    os.close(call(428, -100, NOTES["outside"].encode(), 1))  # open_tree with OPEN_TREE_CLONE
    return did()


@attempt("privilege: make the root writable again", needs="it would change this machine")
def _():
    call("mount", b"none", b"/", None, 0x1020, None)  # MS_REMOUNT | MS_BIND
    put(outside("remounted.txt"))
    return wrote(outside("remounted.txt"))


@attempt("privilege: a kernel setting", needs="root")
def _():
    with open("/proc/sys/kernel/core_pattern") as setting:
        value = setting.read()
    with open("/proc/sys/kernel/core_pattern", "w") as setting:
        setting.write(value)
    return did()


@attempt("privilege: the name of the machine", needs="root")
def _():
    name = os.uname().nodename.encode()
    call("sethostname", name, len(name))
    return did()


@attempt("device: a new one", needs="root")
def _():
    os.mknod("new-device", 0o600 | 0o020000, os.makedev(1, 5))
    return did()


@attempt("device: one in the workspace", needs="root")
def _():
    with open("device", "rb") as device:
        device.read(1)
    return did()


@attempt("device: the kernel log", needs="root")
def _():
    with open("/dev/kmsg", "rb"):
        return did()


@attempt("device: type into a terminal (TIOCSTI)", needs="root")
def _():
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, 0x5412, b"x")
    os.close(ours)
    return did()


@attempt("device: the host's terminals")
def _():
    with open(NOTES["terminal"], "w") as terminal:
        terminal.write(MARK)
    return sent("terminal")


def main():
    with open(sys.argv[1]) as notes:
        NOTES.update(json.load(notes))
    results = {}
    for name, each in ATTEMPTS.items():
        if name in NOTES["left-out"]:
            continue
        try:
            results[name] = each.run()
        except Exception as error:  # noqa: BLE001 -- any failure to escape is an answer
            results[name] = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
