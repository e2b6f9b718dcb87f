"""How dragoman was installed, and the command that adds one of its extras.

| installed by | sign | command for an extra |
|---|---|---|
| `uv tool install` | `uv-receipt.toml` in the environment | the same command, with the extras of the receipt |
| `pipx install` | `pipx_metadata.json` in the environment | the same command with `--force` and the known extras |
| `uvx` | an environment in uv's cache, which must not be changed | starting dragoman with the extra |
| pip, a checkout | neither | pip of this Python, or uv's pip if the environment has none |

An installation from a file, a checkout or a repository is named by its address, because an index may have no dragoman
or a different one. Words are in double quotes, which every shell accepts, because an unquoted `[` is a pattern in zsh.
"""

import importlib.util
import json
import re
import shlex
import shutil
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

_NAME = "dragoman"


class ExtraInstruction(NamedTuple):
    """The instruction to add an extra. As a string, it is the end of a sentence."""

    action: str
    command: str
    restarts: bool = False
    """Whether the command restarts dragoman. Otherwise the extra is used as soon as it is installed."""

    def __str__(self) -> str:
        return f"{self.action}: {self.command}"


class Installation(NamedTuple):
    """The environment of a dragoman, and the origin that its installer recorded (`direct_url.json` of PEP 610)."""

    prefix: Path
    python: str
    origin: dict[str, Any] | None
    has_pip: bool

    def instruction(self, extra: str) -> ExtraInstruction:
        """Return the instruction to add an extra."""
        receipt = self.prefix / "uv-receipt.toml"
        if receipt.is_file():
            return _install("uv", "tool", "install", self._requirement(extra, *_extras_of_uv(receipt)))
        receipt = self.prefix / "pipx_metadata.json"
        if receipt.is_file():
            return _install("pipx", "install", "--force", self._requirement(extra, *_extras_of_pipx(receipt)))
        if self._is_cached:
            command = _command("uvx", "--from", self._requirement(extra), _NAME)
            return ExtraInstruction("start dragoman with this command", command, restarts=True)
        installer = (self.python, "-m", "pip", "install") if self.has_pip else ("uv", "pip", "install")
        environment = () if self.has_pip else ("--python", self.python)
        checkout = self._checkout()
        what = (self._requirement(extra),) if checkout is None else ("-e", f"{checkout}[{extra}]")
        return _install(*installer, *environment, *what)

    def uvx_command(self) -> list[str] | None:
        """Return the command that starts dragoman by uvx, if this one was started by uvx."""
        if not self._is_cached:
            return None
        address = self._address()
        origin = ["--from", f"{_NAME} @ {address}"] if address else []
        return [shutil.which("uvx") or "uvx", *origin, _NAME]

    @property
    def _is_cached(self) -> bool:
        return self.prefix.parent.name.startswith(("archive-v", "environments-v"))

    def _requirement(self, *extras: str) -> str:
        named = f"{_NAME}[{','.join(sorted(set(extras)))}]"
        address = self._address()
        return f"{named} @ {address}" if address else named

    def _address(self) -> str | None:
        if self.origin is None:
            return None
        address: str = self.origin["url"]
        repository: dict[str, str] | None = self.origin.get("vcs_info")
        if repository is not None:
            revision = repository.get("requested_revision")
            return f"{repository['vcs']}+{address}" + (f"@{revision}" if revision else "")
        return address if _path(address).exists() else None  # a wheel that was deleted

    def _checkout(self) -> Path | None:
        """Return the directory of an editable installation."""
        if self.origin is None or not self.origin.get("dir_info", {}).get("editable"):
            return None
        return _path(self.origin["url"])


def how_to_add(extra: str) -> str:
    """Return how to add an extra to this installation, as the end of a sentence."""
    return str(find_installation().instruction(extra))


def find_installation() -> Installation:
    """Return the installation of the running dragoman."""
    try:
        origin = distribution(_NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        origin = None
    return Installation(
        prefix=Path(sys.prefix),
        python=sys.executable,
        origin=json.loads(origin) if origin else None,
        has_pip=importlib.util.find_spec("pip") is not None,
    )


def _extras_of_uv(receipt: Path) -> list[str]:
    requirements: list[dict[str, Any]] = tomllib.loads(receipt.read_text())["tool"]["requirements"]
    return [extra for each in requirements if each.get("name") == _NAME for extra in each.get("extras", ())]


def _extras_of_pipx(receipt: Path) -> list[str]:
    asked_for = json.loads(receipt.read_text())["main_package"]["package_or_url"]
    found = re.match(rf"{_NAME}\[([^\]]*)\]", asked_for)
    return [extra.strip() for extra in found[1].split(",")] if found else []


def _path(address: str) -> Path:
    return Path(url2pathname(urlsplit(address).path))


def _install(*extras: str) -> ExtraInstruction:
    return ExtraInstruction("install it with", _command(*extras))


def _command(*parts: str) -> str:
    return " ".join(_quote(word) for word in parts)


def _quote(word: str) -> str:
    if re.search(r'["$`\\!]', word):
        return shlex.quote(word)
    return word if re.fullmatch(r"[\w./:=+-]+", word) else f'"{word}"'
