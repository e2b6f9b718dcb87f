"""Install a wheel into an empty environment and use it like a new user: version, answer, page, bridge.

It runs with any Python 3.11 or later, which the environment then uses, and imports nothing of this repository.
`--pinned FILE` installs the dependencies of a lock file. Otherwise they come from the index, as for every user.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping
from pathlib import Path
from urllib.request import urlopen

TIMEOUT_S = 300


class EmptyEnvironment:
    """A virtual environment with a separate home, and the programs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "venv" / "bin"
        self.work = folder / "work"
        self.work.mkdir()
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        own = {"HOME": str(folder), "DRAGOMAN_HOME": str(folder / "home"), "CI": "true"}
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DRAGOMAN", "VIRTUAL"))
        }
        self.variables: Mapping[str, str] = {**kept, **own}

    def run(self, program: str, *arguments: str, exit_code: int = 0) -> str:
        """Run a program of the environment and return its output, or exit with its error output."""
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            cwd=self.work, env=self.variables, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        if done.returncode != exit_code:
            sys.exit(f"{program} {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout + (done.stderr if exit_code else "")


def install(environment: EmptyEnvironment, wheel: Path, pinned: Path | None) -> None:
    """Install the wheel and its dependencies."""
    pip = ("-m", "pip", "--disable-pip-version-check", "--no-input", "-q", "install")
    if pinned is not None:
        environment.run("python", *pip, "--require-hashes", "-r", str(pinned))
    environment.run("python", *pip, str(wheel), *(["--no-deps"] if pinned is not None else []))


def try_commands(environment: EmptyEnvironment, version: str) -> None:
    """Use everything that needs no key and no network."""
    expect("the version", version in environment.run("dragoman", "--version"))
    packages = ("agent", "bridge", "check", "client", "mcp", "testing")
    environment.run("python", "-c", f"import {', '.join(f'dragoman.{name}' for name in packages)}")
    expect("the schema of the agent file", "properties" in json.loads(environment.run("dragoman", "schema")))
    environment.run("dragoman", "init")
    expect("a rule of the checker", "ACP-WIRE-012" in environment.run("dragoman", "check", "rule", "ACP-WIRE-012"))
    missing = environment.run("dragoman", "run", "--model", "groq:any", "hello", exit_code=2)
    expect("the command for an extra", '-m pip install "dragoman[groq] @ file:' in missing)


def try_bridge(environment: EmptyEnvironment) -> None:
    """Serve the agent, load the page with its files, and run a turn through the bridge."""
    command = [str(environment.programs / "dragoman"), "serve", "--port", "0", "--format", "json"]
    with subprocess.Popen(
        command,
        cwd=environment.work,
        env=environment.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            report = json.loads(process.stdout.readline())
            with urlopen(report["url"], timeout=TIMEOUT_S) as answer:  # a link of http://127.0.0.1
                address, page = answer.url, answer.read().decode()
            expect("the page", "<title>Dragoman" in page)
            for name in re.findall(r'(?:href|src)="([^"#:]+\.(?:js|css|svg))"', page):
                with urlopen(
                    address.partition("#")[0].rpartition("/")[0] + "/" + name.lstrip("./"), timeout=TIMEOUT_S
                ) as file:
                    expect(name, file.read())
            token = environment.folder / "home" / "bridge" / "token"
            said = environment.run(
                "dragoman", "run", "Who are you?", "--url", report["acp"], "--token-file", str(token)
            )
            expect("an answer through the bridge", said.strip())
        finally:
            process.terminate()


def expect(what: str, found: object) -> None:
    """Exit with a message if something is missing."""
    if not found:
        sys.exit(f"the wheel does not give {what}")


def main() -> int:
    """Try the wheel. Print the seconds from the first command to the first answer."""
    parser = argparse.ArgumentParser(description="Install a wheel into an empty environment and use it there.")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--pinned", type=Path, metavar="FILE", help="a lock file with the dependencies")
    options = parser.parse_args()
    wheel: Path = options.wheel.resolve()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dragoman-wheel-") as folder:
        environment = EmptyEnvironment(Path(folder))
        install(environment, wheel, options.pinned and options.pinned.resolve())
        installed = time.monotonic()
        expect("an answer", environment.run("dragoman", "run", "Who are you?").strip())
        answered = time.monotonic()
        try_commands(environment, wheel.name.split("-")[1])
        try_bridge(environment)
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Python {version}: installed in {installed - began:.1f} s, first answer {answered - installed:.1f} s later")
    return 0


if __name__ == "__main__":
    sys.exit(main())
