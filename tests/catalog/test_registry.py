"""Entries of a hostile registry: each yields the package's own command or a clear error."""

import pytest

from dragoman.catalog.registry import (
    Binary,
    InstallError,
    KnownAgentsError,
    Manifest,
    Package,
    choose_distribution,
    decode_registry,
    platform_name,
)
from dragoman.catalog.registry import Distribution as Ways

URL = "https://a.example/a.tar.gz"


@pytest.fixture(autouse=True)
def programs(tmp_path, monkeypatch):
    """Put npx, uvx and a shell on PATH, so that an entry could find them."""
    for name in ("npx", "uvx", "sh"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))


def choose(version="1.2.3", **ways):
    return choose_distribution(Manifest("small", Ways(**ways), version=version))


@pytest.mark.parametrize(
    ("runner", "package", "command"),
    [
        ("npx", "small@2.0.0", ("npx", "-y", "small@2.0.0", "--acp")),
        ("npx", "@scope/small@2.0.0-rc.1", ("npx", "-y", "@scope/small@2.0.0-rc.1", "--acp")),
        ("npx", "small", ("npx", "-y", "small@1.2.3", "--acp")),
        ("npx", "@scope/small@latest", ("npx", "-y", "@scope/small@1.2.3", "--acp")),
        ("uvx", "small==2.0", ("uvx", "small==2.0", "--acp")),
        ("uvx", "small@2.0.post1", ("uvx", "small==2.0.post1", "--acp")),
        ("uvx", "small", ("uvx", "small==1.2.3", "--acp")),
    ],
)
def test_a_package_is_started_with_an_exact_version(runner, package, command):
    way = choose(**{runner: Package(package, ["--acp"], {"A": "b"})})
    assert (way.command, way.env) == (command, {"A": "b"})


@pytest.mark.parametrize(
    ("runner", "package"),
    [
        *(
            ("npx", each)
            for each in ("git+https://a.example/a.git", "file:../a", "--call=sh", "-c", "https://a.example/a")
        ),
        *(
            ("npx", each)
            for each in ("small@^1.0.0", "small@1", "small@next", "small@file:../a", "small@npm:other@1.0.0")
        ),
        *(("npx", each) for each in ("", "..", "../small", "./small@1.2.3", "small@1.2.3 --call=sh", "small@1.2.3\n")),
        *(("uvx", each) for each in ("small @ https://a.example/a.whl", "-r/etc/passwd", "--from=sh", "./small", "")),
        *(("uvx", each) for each in ("small>=1", "small==1.*", "small==1,!=2", "small@git", "small[x]==1", "/bin/sh")),
    ],
)
def test_only_a_name_with_an_exact_version_is_a_package(runner, package):
    with pytest.raises(InstallError, match=r"expected|extras"):
        choose(**{runner: Package(package)})


@pytest.mark.parametrize("version", ["", "latest", "1.x", "--call=sh", "1.2.3 sh"])
def test_an_entry_without_an_exact_version_is_refused(version):
    for runner in ("npx", "uvx"):
        with pytest.raises(InstallError, match="no exact version"):
            choose(version, **{runner: Package("small")})


def test_a_package_cannot_name_another_command():
    text = b'{"agents": [{"id": "a", "version": "1.2.3", "distribution": {"uvx": {"package": "a", "cmd": "/bin/sh"}}}]}'
    [manifest] = decode_registry("r", text)
    assert choose_distribution(manifest).command == ("uvx", "a==1.2.3")


@pytest.mark.parametrize("name", ["", "-S", "--split-string", "A=B", "A B", "1A", "A\n", "Ä", "-", "A\0"])
def test_variable_name_that_looks_like_an_option_is_refused(name):
    for ways in (
        {"npx": Package("small", [], {name: "x"})},
        {"uvx": Package("small", [], {name: "x"})},
        {"binary": {platform_name(): Binary(URL, "./small", env={name: "x"})}},
    ):
        with pytest.raises(InstallError, match="not a variable name"):
            choose(**ways)


@pytest.mark.parametrize("package", [Package("small", ["a\0b"]), Package("small", [], {"A": "b\0c"})])
def test_nul_character_is_refused(package):
    with pytest.raises(InstallError, match="NUL"):
        choose(npx=package)


@pytest.mark.parametrize("cmd", ["/bin/sh", "../sh", "a/../../sh", "", ".", "/", "a\0"])
def test_program_outside_its_archive_is_refused(cmd):
    with pytest.raises(InstallError, match="not inside its archive"):
        choose(binary={platform_name(): Binary(URL, cmd)})


def test_archive_program_is_not_looked_up_on_path():
    way = choose(binary={platform_name(): Binary(URL, "./sh")})
    assert isinstance(way, Binary)


def test_agent_without_a_usable_distribution_says_why(monkeypatch, tmp_path):
    with pytest.raises(InstallError, match="no version for"):
        choose(binary={"amiga-m68k": Binary(URL, "a")})
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(InstallError, match="needs npx or uvx, which is not on PATH"):
        choose(npx=Package("small"), uvx=Package("small"))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"agents": {}}',
        b'{"agents": [{"id": "a"}]}',
        b'{"agents": [{"id": 1, "distribution": {}}]}',
        b'{"agents": [{"id": "a", "distribution": {"npx": "sh"}}]}',
        b'{"agents": [{"id": "a", "distribution": {"binary": {"x": {"archive": "u", "cmd": ["sh"]}}}}]}',
        b'{"agents": ' + b"[" * 100_000,
    ],
)
def test_damaged_registry_raises_a_clear_error(text, tmp_path):
    with pytest.raises(KnownAgentsError, match=r"registry\.json"):
        decode_registry(tmp_path / "registry.json", text)
