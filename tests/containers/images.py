"""The images: substitutes for registry images, made of Debian packages, and ours, built as documented.

No registry is needed. Builds use the package index of this machine's pip. Its configuration is mounted into builds and
is not part of any image.
"""

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.containers.engine import CACHE, ROOT, run

HERE = Path(__file__).parent / "images"
SUITE = "bookworm"
STAND_INS = {
    "python": ("docker.io/library/python:3.13-slim", "docker.io/library/python:3.12-slim"),
    "postgres": ("docker.io/library/postgres:16",),
    "caddy": ("docker.io/library/caddy:2",),
}
DEBIAN = "localhost/stand-in/debian"
COMPOSE_FILES = ("compose.yaml", "compose-postgresql.yaml")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def make_stand_ins():
    """Build the missing base images."""
    _make_image(DEBIAN, _make_debian)
    for kind, names in STAND_INS.items():
        for name in names:
            _make_image(name, lambda name=name, kind=kind: _make_stand_in(kind, name))


def _make_image(name, make):
    if subprocess.run(["podman", "image", "exists", name], check=False).returncode:
        print(f"Making {name}", flush=True)
        make()


def _make_debian():
    tree, archive = CACHE / "debian", CACHE / "debian.tar"
    shutil.rmtree(tree, ignore_errors=True)
    run("debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, tree, stdout=subprocess.DEVNULL)
    run("tar", "-C", tree, "-cf", archive, ".")
    run("podman", "build", "-q", "-f", HERE / "debian.Containerfile", "-t", DEBIAN, CACHE)
    shutil.rmtree(tree)
    archive.unlink()


def _make_stand_in(kind, name):
    options = build_options()
    if kind == "python":
        options += ["--build-arg", f"VERSION={name}", "--volume", f"{find_python(name)}:/python:ro"]
    _build("podman", "build", *options, "-f", HERE / f"{kind}.Containerfile", "-t", name, HERE)


def find_python(image):
    """Return the directory of a relocatable Python of that version, or else an empty directory."""
    version = re.search(r":(\d\.\d+)", image)[1]
    ask = "import sys; print('%d.%d' % sys.version_info[:2], sys.base_prefix)"
    for python in run(ROOT / "scripts" / "release" / "pythons", capture_output=True, text=True).stdout.split():
        found, prefix = run(python, "-c", ask, capture_output=True, text=True).stdout.split()
        if found == version and prefix != "/usr":
            return prefix
    nothing = CACHE / "nothing"
    nothing.mkdir(exist_ok=True)
    return nothing


def build_options():
    """Return the `podman build` options for this machine's network, package index and certificates."""
    settings, mounted = read_pip_settings()
    written = CACHE / "pip.conf"
    with written.open("w") as file:
        settings.write(file)
    volumes = [f"{written}:/etc/pip.conf:ro", *(f"{path}:{path}:ro" for path in mounted)]
    return ["--network=host", *(word for volume in volumes for word in ("--volume", volume))]


def make_wheel():
    """Build the wheel of dragoman and return its directory."""
    wheels = CACHE / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", wheels, ROOT)
    return wheels


def read_pip_settings():
    """Return pip's settings, including the environment's, and the local paths that they name."""
    listed = run(sys.executable, "-m", "pip", "config", "list", capture_output=True, text=True).stdout
    settings = configparser.RawConfigParser()
    settings.add_section("global")
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        settings.set("global", name.rpartition(".")[2], shlex.split(value)[0].replace("\\n", " "))
    # The compose file installs dragoman from the index, which does not have this version.
    wheels = make_wheel()
    settings.set("global", "find-links", f"{settings.get('global', 'find-links', fallback='')} {wheels}".strip())
    words = [word.removeprefix("file://") for value in dict(settings["global"]).values() for word in value.split()]
    paths = {Path(word) for word in words if word.startswith("/")} | {CERTIFICATES}
    # A file index links to neighboring files.
    mounted = {path.parent if path.name == "simple" else path for path in paths}
    return settings, sorted(path for path in mounted if path.exists())


def make_ours():
    """Build the images of deploy/Containerfile, as docs/container.md says, and of the compose files."""
    options = build_options()
    print("Building deploy/Containerfile and the images of the compose files", flush=True)
    _build("podman", "build", "-f", "deploy/Containerfile", "-t", "dragoman", *options, ".", cwd=ROOT)
    for file in COMPOSE_FILES:
        compose = ("podman-compose", "--file", file, "--podman-build-args", shlex.join(options))
        # The build cache ignores mounted files, and therefore our wheel.
        fresh = ["--no-cache"] if file == "compose-postgresql.yaml" else []
        _build(*compose, "build", *fresh, cwd=ROOT / "deploy", env={**os.environ, "DRAGOMAN_NAME": "unused"})


def _build(*command, **options):
    """Run a build, and show its output only if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{done.stdout}\n{shlex.join(words)} ended with {done.returncode}")
