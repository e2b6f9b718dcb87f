"""The machine and the versions of a run."""

import json
import os
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

from bench.commands import TYPESCRIPT_SDK
from bench.rounds import now

PACKAGES = ("dragoman", "msgspec", "uvloop", "agent-client-protocol")


def describe() -> dict[str, str]:
    """Return the date, the machine and the versions, by name."""
    return {
        "date": now(),
        "machine": f"{platform.system()} {platform.release()}, {os.cpu_count()} x {_processor()}",
        "Python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        "@agentclientprotocol/sdk": _typescript_sdk(),
        "node": _node(),
    }


def _processor() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text()
    except FileNotFoundError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name"))
    return next(names, platform.machine())


def _typescript_sdk() -> str:
    try:
        return json.loads((TYPESCRIPT_SDK / "package.json").read_text())["version"]
    except FileNotFoundError:
        return "not installed"


def _node() -> str:
    found = shutil.which("node")
    if found is None:
        return "not here"
    return subprocess.check_output([found, "--version"], text=True).strip()
