"""Swap two names atomically, as fast as possible, until stdin ends: DIRECTORY NAME OTHER."""

import ctypes
import os
import select
import sys

EXCHANGE = 2
"""RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS. Neither name is ever missing."""


def main() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    rename = libc.renameat2 if sys.platform == "linux" else libc.renameatx_np
    directory = os.open(sys.argv[1], os.O_RDONLY)
    name, other = (os.fsencode(argument) for argument in sys.argv[2:])
    print("swapping", flush=True)
    while not select.select([0], [], [], 0)[0]:
        for _ in range(100):
            if rename(directory, name, directory, other, EXCHANGE) != 0:
                sys.exit(os.strerror(ctypes.get_errno()))
    # After an even number of swaps, both names are as they were.


main()
