"""Plays a part and leaves a recording: `python -m dragoman.check.adversary PART DIRECTORY SECONDS`."""

import asyncio
import os
import sys
from pathlib import Path

from dragoman.check.adversary.channels import serve
from dragoman.check.adversary.parts import PARTS, TOURS
from dragoman.descriptors import open_missing


def main(name: str, directory: str, answer_timeout_s: str) -> None:
    """Play a part. The recording is named after the part and the process."""
    open_missing()
    part = {**PARTS, **{each.name: each for each in TOURS.values()}}[name]
    asyncio.run(serve(part, Path(directory) / f"{name}.{os.getpid()}.ndjson", float(answer_timeout_s)))


if __name__ == "__main__":
    main(*sys.argv[1:])
