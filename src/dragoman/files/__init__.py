"""The boundary: opening paths that cannot leave their roots."""

from dragoman.files.boundary import Boundary
from dragoman.files.content import FileIdentity, Kind
from dragoman.files.directory import DirectoryEntry, FoundPath
from dragoman.files.errors import BadPath, FileProblem, NotAFile, NotText, OutsideBoundary, PathError, TooLarge
from dragoman.files.ignore import IgnoreRules
from dragoman.files.path import Location
from dragoman.files.project import FileLists, ListedFiles, list_files, match_files

__all__ = [
    "BadPath",
    "Boundary",
    "DirectoryEntry",
    "FileIdentity",
    "FileLists",
    "FileProblem",
    "FoundPath",
    "IgnoreRules",
    "Kind",
    "ListedFiles",
    "Location",
    "NotAFile",
    "NotText",
    "OutsideBoundary",
    "PathError",
    "TooLarge",
    "list_files",
    "match_files",
]
