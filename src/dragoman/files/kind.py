"""What a name in a directory can stand for."""

import os
import stat
from typing import Literal

Kind = Literal["file", "directory", "link", "FIFO", "socket", "device"]

_KINDS: dict[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
}


def kind_of(status: os.stat_result) -> Kind:
    """Say what this is; whatever a system has beyond the usual is a device."""
    return _KINDS.get(stat.S_IFMT(status.st_mode), "device")
