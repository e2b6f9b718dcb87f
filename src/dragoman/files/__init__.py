"""The boundary: opening paths that cannot leave their roots."""

from dragoman.files.boundary import Boundary
from dragoman.files.content import FileIdentity, Kind
from dragoman.files.directory import DirectoryEntry, FoundPath
from dragoman.files.errors import BadPath, FileProblem, NotAFile, NotText, OutsideBoundary, PathError, TooLarge
from dragoman.files.path import Location

__all__ = [
    "BadPath",
    "Boundary",
    "DirectoryEntry",
    "FileIdentity",
    "FileProblem",
    "FoundPath",
    "Kind",
    "Location",
    "NotAFile",
    "NotText",
    "OutsideBoundary",
    "PathError",
    "TooLarge",
]
