"""Run dragoman while one file is slow to open: `slow_files.py GATE FILE ARGUMENT…`.

Opening FILE waits until another process has opened the FIFO at GATE for writing and closed it.
"""

import os
import runpy
import sys


def main(gate, slow, *arguments):
    def wait(event, details):
        if event == "open" and str(details[0]) == slow and os.path.exists(gate):
            descriptor = os.open(gate, os.O_RDONLY)
            os.read(descriptor, 1)
            os.close(descriptor)

    sys.addaudithook(wait)
    sys.argv = ["dragoman", *arguments]
    runpy.run_module("dragoman", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
