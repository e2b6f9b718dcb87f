"""Files that a project ignores: `.gitignore` as git reads it, inside a boundary."""

from typing import TYPE_CHECKING

from dragoman.files.boundary import Boundary
from dragoman.files.errors import PathError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MAX_RULES_BYTES = 1024 * 1024
"""The size limit of one file of rules. A longer file was not written by hand and is not read."""

_FILES = (".git/info/exclude", ".gitignore")


class IgnoreRules:
    """The ignore rules of one root and of the directories below it. Each file is read once."""

    def __init__(self, boundary: Boundary) -> None:
        self._boundary = boundary
        self._chains: dict[str, tuple[tuple[str, GitIgnoreSpec], ...]] = {}

    def ignores(self, path: str, *, is_directory: bool) -> bool:
        """Return whether the rules ignore a path relative to the root. The nearest file that mentions the path decides.

        Rules for the parent directories are not applied, because a walk does not enter an ignored directory.
        """
        asked = f"{path}/" if is_directory else path
        for directory, spec in self._chain(path.rpartition("/")[0]):
            below = asked[len(directory) + 1 :] if directory else asked
            decision = spec.check_file(below).include
            if decision is not None:
                return decision
        return False

    def _chain(self, directory: str) -> "tuple[tuple[str, GitIgnoreSpec], ...]":
        """Return the rules that apply in a directory, the nearest first."""
        chain = self._chains.get(directory)
        if chain is None:
            above = self._chain(directory.rpartition("/")[0]) if directory else ()
            spec = self._load(f"{directory}/" if directory else "")
            chain = self._chains[directory] = above if spec is None else ((directory, spec), *above)
        return chain

    def _load(self, prefix: str) -> "GitIgnoreSpec | None":
        lines: list[str] = []
        for name in _FILES:
            try:
                lines += self._boundary.read_bytes(prefix + name, MAX_RULES_BYTES).decode(errors="replace").split("\n")
            except PathError:
                continue
        if not lines:
            return None
        from pathspec import GitIgnoreSpec

        return GitIgnoreSpec.from_lines(lines)
