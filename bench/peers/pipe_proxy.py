"""The simplest proxy in Python: two threads that read and write."""

import os
import subprocess
import sys
import threading

READ_BYTES = 256 * 1024


def pump(source: int, target: int) -> None:
    while data := os.read(source, READ_BYTES):
        while data:
            data = data[os.write(target, data) :]


def inward(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    pump(0, process.stdin.fileno())
    process.stdin.close()


def main() -> None:
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    threading.Thread(target=inward, args=(process,), daemon=True).start()
    pump(process.stdout.fileno(), 1)
    sys.exit(process.wait())


if __name__ == "__main__":
    main()
