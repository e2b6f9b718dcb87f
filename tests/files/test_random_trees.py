"""Random trees with links, and random paths through them. Only files beneath a root are read, the same way by both."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.files import Boundary, PathError
from dragoman.files.boundary import KernelOpener, WalkingOpener, has_openat2

pytestmark = pytest.mark.soak

SOAK = bool(os.environ.get("DRAGOMAN_SOAK"))
NAMES = ["a", "b", "c"]
TOPS = ["root", "root_evil", "second", "outside"]
INSIDE = ("root", "second")

names = st.sampled_from(NAMES)
steps = st.lists(st.sampled_from([*NAMES, *NAMES, "..", "..", ".", "", *TOPS]), min_size=1, max_size=6).map("/".join)
absolute = st.tuples(st.sampled_from(TOPS), steps).map(lambda parts: "{top}/" + "/".join(parts))
paths = st.one_of(steps, absolute)
entry = st.one_of(st.just(("file", "")), st.just(("directory", "")), st.tuples(st.just("link"), paths))
trees = st.lists(
    st.tuples(st.sampled_from(TOPS), st.lists(names, min_size=1, max_size=3), entry), min_size=1, max_size=14
)


def grow(top, tree):
    for name in TOPS:
        (top / name).mkdir()
    for base, parts, (kind, text) in tree:
        path = top.joinpath(base, *parts)
        # Links in the path would create the tree elsewhere.
        if os.path.lexists(path) or not is_plain(path.parent, top):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "directory":
            path.mkdir()
        elif kind == "file":
            path.write_text(str(path))
        else:
            path.symlink_to(text.format(top=top) or ".")


def is_plain(directory, top):
    while directory != top:
        if os.path.lexists(directory) and (directory.is_symlink() or not directory.is_dir()):
            return False
        directory = directory.parent
    return True


def outcome(boundary, path):
    try:
        return boundary.read_text(path, 10_000)
    except PathError:
        return None


def leaves_by_text(path):
    """Return whether a path leaves the root at any step, if links are ignored."""
    depth = 0
    for part in path.split("/"):
        depth += {"": 0, ".": 0, "..": -1}.get(part, 1)
        if depth < 0:
            return True
    return False


@settings(max_examples=2000 if SOAK else 100)
@given(trees, st.lists(paths, min_size=1, max_size=12))
def test_read_files_are_beneath_a_root_and_match_the_path(tree, tried):
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory).resolve()
        grow(top, tree)
        roots = [str(top / name) for name in INSIDE]
        walking = Boundary(roots, opener=WalkingOpener())
        best = Boundary(roots, opener=KernelOpener() if has_openat2() else WalkingOpener())
        for raw in tried:
            path = raw.format(top=top) or "."
            text = outcome(walking, path)
            assert outcome(best, path) == text
            real = Path(os.path.realpath(top / "root" / path))
            is_inside = any(real.is_relative_to(root) for root in roots)
            if text is not None:
                assert any(Path(text).is_relative_to(root) for root in roots)
                if not leaves_by_text(path):
                    assert is_inside
                    assert Path(text) == real


inner_paths = st.lists(names, min_size=1, max_size=4).map("/".join)
inner_trees = st.lists(
    st.tuples(st.lists(names, min_size=1, max_size=3), st.sampled_from(["file", "link"]), inner_paths)
)


@settings(max_examples=1000 if SOAK else 60)
@given(inner_trees, inner_paths, st.sampled_from(["", "{top}/root/"]))
def test_path_that_stays_inside_is_not_refused(tree, path, prefix):
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory).resolve()
        grow(top, [("root", parts, (kind, prefix + text)) for parts, kind, text in tree])
        real = Path(os.path.realpath(top / "root" / path))
        for opener in (WalkingOpener(), None):
            boundary = Boundary([str(top / "root")], opener=opener)
            assert outcome(boundary, path) == (str(real) if real.is_file() else None)
