"""The boundary opens paths that cannot leave their roots."""

from dragoman.files.boundary import Boundary
from dragoman.files.directory import DirectoryEntry, FoundPath
from dragoman.files.errors import (
    FileAccessError,
    FileTooLargeError,
    InvalidPathError,
    NotAFileError,
    NotTextError,
    OutsideBoundaryError,
    PathError,
)
from dragoman.files.ignore import IgnoreRules
from dragoman.files.project import FileLists, list_files, match_files

__all__ = [
    "Boundary",
    "DirectoryEntry",
    "FileAccessError",
    "FileLists",
    "FileTooLargeError",
    "FoundPath",
    "IgnoreRules",
    "InvalidPathError",
    "NotAFileError",
    "NotTextError",
    "OutsideBoundaryError",
    "PathError",
    "list_files",
    "match_files",
]
