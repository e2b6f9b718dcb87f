"""Comparing paths that came over the wire, without asking any file system."""

import posixpath


def same_place(one: str, other: str) -> bool:
    """Tell whether two paths may be of the same place.

    A peer may have resolved links on the way: paths whose last parts agree are given the benefit of the doubt.
    """
    one, other = _normal(one), _normal(other)
    return one == other or posixpath.basename(one) == posixpath.basename(other)


def is_within(path: str, directory: str) -> bool:
    """Tell whether a path is a directory or lies in it."""
    path, directory = _normal(path), _normal(directory)
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _normal(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))
