"""`make containers`: tests of the files in deploy/ and of `--run-in docker:IMAGE` with podman."""

import os
import sys
from pathlib import Path

from tests.containers import engine, images

HERE = Path(__file__).parent


def main(arguments):
    engine.install()
    os.environ.update(engine.configure())
    images.make_stand_ins()
    images.make_ours()
    chosen = arguments or sorted(HERE.glob("try_*.py"))
    return engine.enter(sys.executable, "-m", "pytest", "-n", "0", "-v", "-p", "no:randomly", "--timeout=300", *chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
