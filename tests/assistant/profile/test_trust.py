"""The user's decisions are stored for exactly one content of one file."""

import json
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.assistant.profile import TrustStore, TrustStoreError
from dragoman.assistant.profile.trust import MAX_DECISIONS

FILE = Path("/p/dragoman.yaml")


def test_decision_is_stored_for_path_and_digest(tmp_path):
    TrustStore(tmp_path).remember(FILE, "d1", allowed=True)
    TrustStore(tmp_path).remember(FILE, "d2", allowed=False)
    trust = TrustStore(tmp_path)
    assert trust.verdict(FILE, "d1")
    assert trust.verdict(Path("/p/x/../dragoman.yaml"), "d1")
    assert trust.verdict(FILE, "d2") is False
    assert trust.verdict(FILE, "d3") is None
    assert trust.verdict(Path("/q/dragoman.yaml"), "d1") is None


def test_last_decision_counts(tmp_path):
    trust = TrustStore(tmp_path)
    trust.remember(FILE, "d", allowed=True)
    trust.remember(FILE, "d", allowed=False)
    assert not trust.verdict(FILE, "d")


def test_file_is_private_and_nothing_else_is_left(tmp_path):
    home = tmp_path / "new home"
    TrustStore(home).remember(FILE, "d", allowed=True)
    assert stat.S_IMODE((home / "trusted.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert sorted(path.name for path in home.iterdir()) == ["trusted.json", "trusted.lock"]


def test_parallel_processes_do_not_lose_decisions(tmp_path):
    program = (
        "import sys; from pathlib import Path; from dragoman.assistant.profile.trust import TrustStore\n"
        "trust = TrustStore(Path(sys.argv[1]))\n"
        "for n in range(20): trust.remember(Path(f'/p/{sys.argv[2]}-{n}'), 'd', allowed=True)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, tmp_path, str(n)]) for n in range(4)]
    assert [process.wait(30) for process in running] == [0] * 4
    assert len(json.loads((tmp_path / "trusted.json").read_text())) == 80


def test_only_the_newest_decisions_of_a_file_are_kept(tmp_path):
    trust = TrustStore(tmp_path)
    for number in range(MAX_DECISIONS + 1):
        trust.remember(FILE, f"d{number}", allowed=True)
    assert trust.verdict(FILE, "d0") is None
    assert trust.verdict(FILE, "d1") is True


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"/p/dragoman.yaml": {"d": "true"}}', b"\xff"])
def test_damaged_file_trusts_nothing_and_is_replaced(tmp_path, content, caplog):
    (tmp_path / "trusted.json").write_bytes(content)
    trust = TrustStore(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert not trust.verdict(FILE, "d")
    assert "no project's agent file is trusted" in caplog.text
    trust.remember(FILE, "d", allowed=True)
    assert trust.verdict(FILE, "d")


def test_file_writable_by_others_trusts_nothing(tmp_path):
    trust = TrustStore(tmp_path)
    trust.remember(FILE, "d", allowed=True)
    (tmp_path / "trusted.json").chmod(0o620)
    assert not trust.verdict(FILE, "d")


def test_directory_in_its_place_trusts_nothing(tmp_path):
    (tmp_path / "trusted.json").mkdir()
    assert not TrustStore(tmp_path).verdict(FILE, "d")


def test_link_trusts_nothing(tmp_path):
    TrustStore(tmp_path / "elsewhere").remember(FILE, "d", allowed=True)
    (tmp_path / "trusted.json").symlink_to(tmp_path / "elsewhere/trusted.json")
    assert not TrustStore(tmp_path).verdict(FILE, "d")


def test_unsaved_decision_is_an_error_with_the_reason(tmp_path):
    (tmp_path / "home").write_text("in the way")
    with pytest.raises(TrustStoreError, match="applies to this session only"):
        TrustStore(tmp_path / "home").remember(FILE, "d", allowed=True)


def test_lock_that_is_never_released_does_not_block_forever(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.files.private_file.LOCK_TIMEOUT_S", 0.0)
    import fcntl

    descriptor = os.open(tmp_path / "trusted.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(TrustStoreError, match="another process holds its lock"):
        TrustStore(tmp_path).remember(FILE, "d", allowed=True)
    os.close(descriptor)
