"""Files that run or instruct by themselves: writing one is asked about in every mode but `yolo`.

A program reads them without being started for it: Git with every `git status`, an editor that opens the folder, a
shell that enters it, an agent that begins a session, the server that gets the next push. So a harmless edit of text
becomes a program that runs, or words that an agent obeys, and nobody was asked. Makefiles, `package.json`, tests and
build scripts are not among them: they run when a command says so, and commands are asked about.

Names are compared below a session's directory and with its own name, without regard to case and to characters that
some disks ignore. The path as it was given counts, the place it leads to, and the place that a listed link at the top
of a session's directory leads to. A directory of Git is also known by what it holds (`HEAD` and `objects`), because it
may be bare or kept apart from its work tree.
"""

import os
import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase

ACTIVE_FILES: dict[str, tuple[str, ...]] = {
    "version control, and the hooks it runs": (
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
    "shells, and what starts with a login": (
        *(".envrc", "mise.toml", ".mise.toml", ".bashrc", ".bash_*", ".profile", ".zshrc", ".zshenv", ".zprofile"),
        *(".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile", ".xinitrc", ".ssh/"),
        *(".config/fish/", ".config/systemd/", ".config/autostart/", ".config/environment.d/", "LaunchAgents/"),
    ),
    "settings that make an ordinary command run something else": (
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
    ),
    "agents, and what they may start": (
        *("AGENTS.md", "AGENTS.override.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md"),
        *("SKILL.md", ".cursorrules", ".windsurfrules", ".clinerules/", ".roorules", ".goosehints", ".rules"),
        *(".claude/", ".codex/", ".gemini/", ".qwen/", ".cursor/", ".windsurf/", ".roo/", ".continue/", ".opencode/"),
        *(".agents/", ".kiro/", "opencode.json*", ".aider.conf.yml", ".mcp.json", "mcp.json"),
        *("dragoman.yaml", "tsagent.yaml", "tsagent.yml", "tsagent.json", ".dragoman/"),
    ),
    "the server that gets the next push": (
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
"""Readers, and the names that each reads: with `/` at its end, a directory and all below it; `*` is any text."""

_PATTERNS = [
    (pattern.casefold().rstrip("/").split("/"), pattern.endswith("/"))
    for patterns in ACTIVE_FILES.values()
    for pattern in patterns
]


class ActiveFiles:
    """Those of one session; dragoman's own home and the agent file that a person named are among them."""

    def __init__(self, home: str | None = None, agent_file: str | None = None) -> None:
        self._home = home and os.path.realpath(home)
        self._agent_file = agent_file and os.path.realpath(agent_file)

    def includes(self, path: str, real: str, roots: Sequence[str]) -> bool:
        """Whether a file acts by itself, by its absolute path, as given and without links; looks at the disk."""
        return (
            real == self._agent_file
            or (self._home is not None and _below(real, self._home) is not None)
            or any(_is_listed(parts) for root in roots for each in (path, real) if (parts := _parts(each, root)))
            or any(_is_git_directory(each) for root in roots for each in _directories(real, root))
            or any(_below(real, target) is not None for root in roots for target in _linked(root))
        )


def _below(path: str, directory: str) -> str | None:
    """Return the way from a directory down to a path; None when it does not lie there."""
    path, top = os.path.normpath(path), directory.rstrip("/")
    return path[len(top) + 1 :] if path == top or path.startswith(f"{top}/") else None


def _parts(path: str, root: str) -> list[str]:
    """Return the names on the way to a path, the root's own first; none when it lies elsewhere."""
    for spelling in (root, os.path.realpath(root)):
        way = _below(path, spelling)
        if way is not None:
            return [os.path.basename(root), *way.split("/")]  # noqa: PTH119 -- a text
    return []


def _is_listed(parts: Sequence[str]) -> bool:
    names = [_fold(part) for part in parts]
    for pattern, is_directory in _PATTERNS:
        for start in range(len(names) - len(pattern) + 1):
            end = start + len(pattern)
            if (is_directory or end == len(names)) and all(map(fnmatchcase, names[start:end], pattern)):
                return True
    return False


def _fold(name: str) -> str:
    """Spell a name as those disks do that tell the least names apart (HFS+, FAT)."""
    visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", visible).casefold().rstrip(" .")


def _directories(path: str, root: str) -> list[str]:
    """Return the directories on the way to a path, the root among them."""
    real = os.path.realpath(root)
    way = _below(path, real)
    if way is None:
        return []
    names = way.split("/")[:-1]
    return [os.path.join(real, *names[:count]) for count in range(len(names) + 1)]  # noqa: PTH118 -- texts


def _linked(root: str) -> list[str]:
    """Return where those of a root's files lead that act by themselves and are links: `AGENTS.md -> docs/agents.md`."""
    try:
        with os.scandir(root) as entries:
            return [os.path.realpath(each.path) for each in entries if each.is_symlink() and _is_listed([each.name])]
    except OSError:
        return []


def _is_git_directory(path: str) -> bool:
    return os.path.lexists(f"{path}/HEAD") and os.path.isdir(f"{path}/objects")  # noqa: PTH112 -- texts
