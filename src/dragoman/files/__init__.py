"""The boundary: opening paths that cannot leave their roots."""

from dragoman.files.boundary import Boundary
from dragoman.files.directory import Entry, Found
from dragoman.files.errors import BadPath, FileProblem, NotAFile, NotText, OutsideBoundary, PathError, TooLarge
from dragoman.files.identity import FileIdentity
from dragoman.files.kind import Kind
from dragoman.files.outside import open_outside, read_outside
from dragoman.files.root import Place

__all__ = [
    "BadPath",
    "Boundary",
    "Entry",
    "FileIdentity",
    "FileProblem",
    "Found",
    "Kind",
    "NotAFile",
    "NotText",
    "OutsideBoundary",
    "PathError",
    "Place",
    "TooLarge",
    "open_outside",
    "read_outside",
]
