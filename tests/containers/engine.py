"""podman with separate images and a separate network, and the programs that it needs.

Everything is below `.cache/containers`, so the machine's other containers are neither seen nor changed. The
configuration uses `runc` and `cgroupfs`, which work without systemd. It sets small limits, because podman's defaults
fail if limits cannot be raised.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "containers"
BIN = CACHE / "bin"
TOOLS = CACHE / "tools"
RUN = Path("/run/dragoman-containers")

PROGRAMS = {
    "podman": "podman",
    "runc": "runc",
    "catatonit": "catatonit",
    "iptables": "iptables",
    "ip": "iproute2",
    "debootstrap": "debootstrap",
    "/usr/lib/podman/netavark": "netavark",
    "/usr/lib/podman/aardvark-dns": "aardvark-dns",
}
"""Programs with their Debian packages."""

PACKAGES = ("podman-compose==1.6.0", "kubernetes-validate==1.37.0")

CONTAINERS_CONF = """
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
[network]
network_backend = "netavark"
network_config_dir = "{cache}/networks"
"""

STORAGE_CONF = """
[storage]
driver = "{driver}"
graphroot = "{cache}/storage"
runroot = "{run}"
"""

ENTER = """
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
{ cat /etc/hosts; echo 127.0.0.1 agents.example.lan; } >/run/hosts
mount --bind /run/hosts /etc/hosts
set +e
for each in "rm --all --force --time=0" "pod rm --all --force" "volume prune --force" "network prune --force"; do
    podman $each >/dev/null 2>&1 # what a run that was killed has left
done
"$@"
exit $?
"""
"""The shell stays alive, because the exits of orphaned processes are reported to it."""


def install():
    """Install the missing programs, or name them and exit."""
    if os.getuid() != 0 or sys.platform != "linux":
        sys.exit("make containers needs Linux and root: it makes images with debootstrap, and networks")
    missing = [package for program, package in PROGRAMS.items() if _find(program) is None]
    if missing and not shutil.which("apt-get"):
        sys.exit(f"missing, and this is no Debian to install it: {' '.join(missing)}")
    if missing:
        print(f"Installing {' '.join(missing)}", flush=True)
        run("apt-get", "update", "-qq")
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing, stdout=subprocess.DEVNULL)
    made = TOOLS / f"made-{'-'.join(PACKAGES)}"
    if not made.exists():
        run(sys.executable, "-m", "venv", "--clear", TOOLS)
        run(TOOLS / "bin" / "pip", "install", "-q", *PACKAGES)
        made.touch()


def _find(program):
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def configure():
    """Write the configuration, and return the environment variables by which podman finds it."""
    for directory in (CACHE, CACHE / "networks", BIN):
        directory.mkdir(parents=True, exist_ok=True)
    driver = "overlay" if "\toverlay\n" in Path("/proc/filesystems").read_text() else "vfs"
    (CACHE / "containers.conf").write_text(CONTAINERS_CONF.format(cache=CACHE))
    (CACHE / "storage.conf").write_text(STORAGE_CONF.format(cache=CACHE, run=RUN, driver=driver))
    docker = BIN / "docker"
    docker.write_text('#!/bin/sh\nexec podman "$@"\n')
    docker.chmod(0o755)
    return {
        "CONTAINERS_CONF": str(CACHE / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(CACHE / "storage.conf"),
        "PATH": f"{BIN}:{TOOLS}/bin:{os.environ['PATH']}:/usr/sbin:/sbin",
    }


def run(*command, **options):
    """Run a command that must succeed."""
    return subprocess.run([str(word) for word in command], check=True, **options)


def enter(*command):
    """Run a command in separate network and process namespaces, and return its exit code.

    Without a network namespace, browsers on the machine would see the changing network links and fail requests. All
    containers end with the command, because they are processes of its namespace.
    """
    unshare = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    return subprocess.run([*unshare, "sh", "-c", ENTER, "sh", *map(str, command)], check=False).returncode
