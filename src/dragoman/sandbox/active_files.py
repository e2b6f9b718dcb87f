"""Active files, which programs run or obey without being asked. Writing one asks in every mode except `yolo`.

A program reads such a file without being started for it: Git with every `git status`, an editor that opens the folder,
a shell that enters it, an agent that begins a session, or CI at the next push. A harmless text edit could therefore
start a program or instruct an agent without anyone's approval. Makefiles, `package.json`, tests and build scripts are
not active: they run by a command, and commands ask.

Names are compared below a session's directory, including its own name. Case and characters that some disks ignore do
not count. Three paths are compared: the given path, its target, and the target of a listed link at the top of a
session's directory. A Git directory is also recognised by its content (`HEAD` and `objects`), because it may be bare
or separate from its work tree. A file that the Git configuration includes is active as well.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase, translate
from pathlib import Path

import msgspec

from dragoman.home import home_name

ACTIVE_FILES: dict[str, tuple[str, ...]] = {
    "version control and its hooks": (
        *(".git/", "HEAD", ".gitmodules", ".gitconfig", ".config/git/", ".hg/", ".hgrc", ".jj/", ".svn/"),
        *(".husky/", ".githooks/", ".pre-commit-config.yaml", "lefthook.*", ".lefthook.*"),
    ),
    "editors that open the folder": (
        *(
            ".vscode/",
            "*.code-workspace",
            ".idea/",
            ".zed/",
            ".fleet/",
            ".helix/",
            ".devcontainer/",
            ".devcontainer.json",
        ),
        *(".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".vim/", ".dir-locals*.el", ".emacs", ".emacs.d/"),
    ),
    "shells and programs started at login": (
        *(".envrc", "mise.toml", ".mise.toml", ".bashrc", ".bash_*", ".profile", ".zshrc", ".zshenv", ".zprofile"),
        *(".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile", ".xinitrc", ".ssh/"),
        *(".config/fish/", ".config/systemd/", ".config/autostart/", ".config/environment.d/", "LaunchAgents/"),
    ),
    "settings that change what ordinary commands run": (
        *(
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            ".cargo/",
            "*.pth",
            "sitecustomize.py",
            "usercustomize.py",
        ),
        *(".venv/bin/", "venv/bin/", "node_modules/.bin/", "vendor/bin/", ".mvn/", ".bundle/config"),
        *("rust-toolchain", "rust-toolchain.toml", "eslint.config.*"),
        *(".Rprofile", ".irbrc", ".pryrc", ".ghci", ".gdbinit"),
    ),
    "agents and their servers": (
        *("AGENTS.md", "AGENTS.override.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md"),
        *("SKILL.md", ".cursorrules", ".windsurfrules", ".clinerules/", ".roorules", ".goosehints", ".rules"),
        *(".claude/", ".codex/", ".gemini/", ".qwen/", ".cursor/", ".windsurf/", ".roo/", ".continue/", ".opencode/"),
        *(".agents/", ".kiro/", "opencode.json*", ".aider.conf.yml", "WARP.md", ".junie/", ".mcp.json", "mcp.json"),
        *("crush.json", ".amp/", "dragoman.yaml", "tsagent.yaml", "tsagent.yml", "tsagent.json", ".dragoman/"),
    ),
    "CI, run at the next push": (
        *(
            ".github/",
            ".gitlab/",
            ".gitlab-ci.yml",
            ".forgejo/",
            ".gitea/",
            ".circleci/",
            ".buildkite/",
            ".woodpecker/",
        ),
        *(".woodpecker.yml", ".travis.yml", ".drone.yml", ".cirrus.yml", "Jenkinsfile", "azure-pipelines.yml"),
        *("bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml"),
    ),
}
"""The readers, and the names that each reads. A final `/` means a directory and everything below it, `*` any text."""

_Pattern = tuple[list[str], bool]
"""The folded names of a pattern, and whether it means a directory."""

_PATTERNS: list[_Pattern] = [
    (pattern.casefold().rstrip("/").split("/"), pattern.endswith("/"))
    for patterns in ACTIVE_FILES.values()
    for pattern in patterns
]
# A search compares every name of a project. So the few patterns that can match a name are found by their last name.
_BY_NAME: dict[str, list[_Pattern]] = {}
for _pattern in _PATTERNS:
    _BY_NAME.setdefault(_pattern[0][-1], []).append(_pattern)
_WITH_STAR = [pattern for pattern in _PATTERNS if "*" in pattern[0][-1]]
_STARRED = re.compile("|".join(translate(pattern[0][-1]) for pattern in _WITH_STAR))
_LONGEST = max(len(pattern) for pattern, _ in _PATTERNS)
_DEPENDENCIES = ("node_modules", "site-packages")
"""Directories with tens of thousands of files, which run only through commands. Only their own entries are searched."""

MAX_INCLUDED = 50
MAX_CONFIG_BYTES = 1024 * 1024
MAX_POINTER_BYTES = 4096
"""The size limit of a Git file that contains one path."""

_INCLUDE = re.compile(
    r"""^[ \t]*(?:\[(?:"(?:\\.|[^"\\\n])*"|[^]"\n])*\][ \t]*)?path[ \t]*=[ \t]*"""
    r"""((?:"(?:\\.|[^"\\\n])*"|\\.|[^"\\\n#;])*)""",
    re.IGNORECASE | re.MULTILINE,
)
"""A `path` in any section. Only `include` and `includeIf` have one, which names a file that Git reads."""
_QUOTES = re.compile(r'\\(.)|"')


class FoundFile(msgspec.Struct, frozen=True):
    """An active file or directory that exists. Everything in an active directory is active."""

    path: str
    real: str
    """Its target, if it is a link."""
    identity: tuple[int, int]
    parent: tuple[int, int]
    """The identity of the directory in which its name is."""
    is_link: bool
    is_directory: bool


class ActiveFiles:
    """The active files of one session, including dragoman's home and the agent file that the user named."""

    def __init__(self, home: str | None = None, agent_file: str | None = None) -> None:
        self.home = home
        """dragoman's home, as it was given."""
        self._home = home and os.path.realpath(home)
        self._agent_file = agent_file and os.path.realpath(agent_file)

    def includes(self, path: str, real: str, roots: Sequence[str]) -> bool:
        """Return whether a file is active, by its absolute path with and without links. Accesses the disk."""
        # The cheap checks of names come before the checks that read Git directories and configurations.
        return (
            real == self._agent_file
            or (self._home is not None and _below(real, self._home) is not None)
            or any(_is_listed(parts) for root in roots for each in (path, real) if (parts := _parts(each, root)))
            or any(_is_git_directory(each) for root in roots for each in _directories(real, root))
            or any(_below(real, target) is not None for root in roots for target in _link_targets(root))
            or real in _included(_git_configs(real))
        )

    def find(self, root: str) -> Iterator[FoundFile]:
        """Yield all active files below a real directory, also its own if it is one. Accesses the disk.

        Packages in `node_modules` and `site-packages` are not searched. A directory that cannot be read counts as
        active.
        """
        own = {path for path in (self._home, os.path.realpath(home_name()), self._agent_file) if path}
        named = list(_included(iter([f"{root}/.git/config", *_git_configs(f"{root}/x")])))
        for found in _search(root, own):
            yield found
            if found.is_link:
                named.append(found.real)
        for path in named:
            if _below(path, root):
                yield from _found(path)


def _search(root: str, own: Collection[str]) -> Iterator[FoundFile]:
    """Yield the active files below a real directory, or the directory itself. `own` are paths that are active."""
    waiting = [(root, [_fold(os.path.basename(root))])]  # noqa: PTH119 -- a string
    while waiting:
        directory, names = waiting.pop()
        try:
            with os.scandir(directory) as listing:
                entries = list(listing)
                identity = _identity(os.stat(directory))  # noqa: PTH116 -- a string
        except OSError:
            yield from _found(directory)
            continue
        if {"HEAD", "objects"} <= {entry.name for entry in entries}:  # a Git directory of any name
            yield from _found(directory)
            continue
        goes_on = names[-1] not in _DEPENDENCIES
        for entry in entries:
            folded = _fold(entry.name)
            may_match = folded in _BY_NAME or _STARRED.match(folded)
            is_listed = may_match and next(_patterns_ending_with([*names, folded]), None) is not None
            if is_listed or entry.path in own:
                yield from _found(entry.path, identity)
            elif goes_on and entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, [*names[-_LONGEST:], folded]))


def _found(path: str, parent: tuple[int, int] | None = None) -> Iterator[FoundFile]:
    """Yield a file, unless it does not exist."""
    try:
        status = os.lstat(path)
        above = parent or _identity(os.stat(os.path.dirname(path)))  # noqa: PTH116, PTH120 -- strings
    except OSError:
        return
    is_link = stat.S_ISLNK(status.st_mode)
    real = os.path.realpath(path) if is_link else path
    yield FoundFile(path, real, _identity(status), above, is_link, stat.S_ISDIR(status.st_mode))


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _below(path: str, directory: str) -> str | None:
    """Return the relative path from a directory down to a path, or None if the path is outside."""
    path, top = os.path.normpath(path), directory.rstrip("/")
    return path[len(top) + 1 :] if path == top or path.startswith(f"{top}/") else None


def _parts(path: str, root: str) -> list[str]:
    """Return the names on the way to a path, beginning with the root's own. Empty if the path is outside."""
    for spelling in (root, os.path.realpath(root)):
        way = _below(path, spelling)
        if way is not None:
            return [os.path.basename(root), *way.split("/")]  # noqa: PTH119 -- paths are strings here
    return []


def _is_listed(parts: Sequence[str]) -> bool:
    names = [_fold(part) for part in parts]
    return any(
        is_directory or end == len(names)
        for end in range(1, len(names) + 1)
        for is_directory in _patterns_ending_with(names[:end])
    )


def _patterns_ending_with(names: Sequence[str]) -> Iterator[bool]:
    """Yield for each pattern that matches the last of these folded names whether it means a directory."""
    last = names[-1]
    candidates = [*_BY_NAME.get(last, ()), *(_WITH_STAR if _STARRED.match(last) else ())]
    for pattern, is_directory in candidates:
        if len(pattern) <= len(names) and all(map(fnmatchcase, names[-len(pattern) :], pattern)):
            yield is_directory


def _fold(name: str) -> str:
    """Normalise a name as the least distinguishing disks do (HFS+, FAT)."""
    if name.isascii():
        return name.lower().rstrip(" .")
    visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", visible).casefold().rstrip(" .")


def _directories(path: str, root: str) -> list[str]:
    """Return the directories on the way to a path, including the root."""
    real = os.path.realpath(root)
    way = _below(path, real)
    if way is None:
        return []
    names = way.split("/")[:-1]
    return [os.path.join(real, *names[:count]) for count in range(len(names) + 1)]  # noqa: PTH118 -- strings


def _link_targets(root: str) -> list[str]:
    """Return the targets of links at the top of a root with active names, such as `AGENTS.md -> docs/agents.md`."""
    try:
        with os.scandir(root) as entries:
            return [os.path.realpath(each.path) for each in entries if each.is_symlink() and _is_listed([each.name])]
    except OSError:
        return []


def _git_configs(real: str) -> Iterator[str]:
    """Yield the configurations of the Git repositories that contain a file, including linked worktrees."""
    for parent in Path(real).parents:
        git = parent / ".git"
        if git.is_file():
            git = _read_path(git, parent, "gitdir:")
        if git.is_dir():
            yield from (str(git / "config"), str(git / "config.worktree"))
            if (git / "commondir").is_file():
                yield str(_read_path(git / "commondir", git) / "config")


def _read_path(file: Path, base: Path, prefix: str = "") -> Path:
    """Return the path that a Git file names, relative to a directory."""
    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_POINTER_BYTES).decode(errors="replace")
    except OSError:
        return file
    return base / text.strip().removeprefix(prefix).strip().replace("\0", "")


def _included(configs: Iterator[str]) -> Iterator[str]:
    """Yield the paths of the files that Git configurations include, directly or indirectly."""
    waiting, seen = list(configs), set[str]()
    while waiting and len(seen) < MAX_INCLUDED:
        config = os.path.realpath(waiting.pop())
        if config in seen:
            continue
        seen.add(config)
        try:
            with open(config, "rb") as file:  # noqa: PTH123 -- a string
                text = file.read(MAX_CONFIG_BYTES).decode(errors="replace")
        except OSError:
            continue
        for named in _INCLUDE.findall(text.replace("\\\n", "")):
            unquoted = _QUOTES.sub(lambda found: found[1] or "", named.strip()).replace("\0", "")
            path = os.path.expanduser(unquoted)  # noqa: PTH111 -- a string
            included = os.path.realpath(os.path.join(os.path.dirname(config), path))  # noqa: PTH118, PTH120 -- strings
            yield included
            waiting.append(included)


def _is_git_directory(path: str) -> bool:
    return os.path.lexists(f"{path}/HEAD") and os.path.isdir(f"{path}/objects")  # noqa: PTH112 -- strings
