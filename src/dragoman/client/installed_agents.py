"""The ACP agents that are installed on this machine, found on PATH by the commands that the ACP registry gives them.

Nothing is started: a program of that name is there, and may still want a login. Two command-line tools, `claude` and
`codex`, do not speak ACP themselves; each has an adapter of its own, and is found without a command while only the
tool is there.
"""

import shutil

import msgspec


class InstalledAgent(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An agent whose program, or whose tool, is on PATH."""

    name: str
    """Its id in the ACP registry."""
    title: str
    command: tuple[str, ...] = ()
    """With the path of the program; empty if the adapter is missing, which `problem` then says."""
    problem: str = ""


class _Known(msgspec.Struct, frozen=True):
    name: str
    title: str
    commands: tuple[tuple[str, ...], ...]
    """The first whose program is there counts."""
    tool: str = ""
    """A program that needs the agent as its adapter."""
    package: str = ""
    """The npm package of the adapter."""


_KNOWN = (
    _Known(
        "claude-acp",
        "Claude Code",
        (("claude-agent-acp",), ("claude-code-acp",)),
        tool="claude",
        package="@agentclientprotocol/claude-agent-acp",
    ),
    _Known("codex-acp", "Codex CLI", (("codex-acp",),), tool="codex", package="@agentclientprotocol/codex-acp"),
    _Known("gemini", "Gemini CLI", (("gemini", "--experimental-acp"),)),
    _Known("opencode", "OpenCode", (("opencode", "acp"),)),
    _Known("goose", "Goose", (("goose", "acp"),)),
    _Known("qwen-code", "Qwen Code", (("qwen", "--acp"),)),
    _Known("kimi", "Kimi CLI", (("kimi", "acp"),)),
    _Known("mistral-vibe", "Mistral Vibe", (("vibe-acp",),)),
    _Known("cursor", "Cursor", (("cursor-agent", "acp"),)),
    _Known("github-copilot", "GitHub Copilot", (("copilot", "--acp"), ("copilot-language-server", "--acp"))),
    _Known("auggie", "Auggie CLI", (("auggie", "--acp"),)),
    _Known("junie-acp", "Junie", (("junie", "--acp=true"),)),
    _Known("factory-droid", "Factory Droid", (("droid", "exec", "--output-format", "acp"),)),
    _Known("qoder", "Qoder CLI", (("qodercli", "--acp"),)),
    _Known("stakpak", "Stakpak", (("stakpak", "acp"),)),
    _Known("cagent", "Docker cagent", (("cagent", "acp"),)),
    _Known("code-assistant", "Code Assistant", (("code-assistant", "acp"),)),
    _Known("fast-agent", "fast-agent", (("fast-agent-acp",),)),
)


def find_installed_agents(path: str | None = None) -> list[InstalledAgent]:
    """Return the agents on PATH, or on another search path; those that can be started come first."""
    found = [agent for known in _KNOWN if (agent := _find(known, path)) is not None]
    return sorted(found, key=lambda agent: not agent.command)


def how_to_get(program: str) -> str | None:
    """Say how the program of a known agent is installed, as the end of a sentence; None for another program."""
    for known in _KNOWN:
        if program not in [command[0] for command in known.commands]:
            continue
        if known.package:
            return f"it is the adapter of {known.title}; install it: npm install -g {known.package}"
        return f"it is {known.title}; install that as its maker says, or: dragoman agents install {known.name}"
    return None


def _find(known: _Known, path: str | None) -> InstalledAgent | None:
    for program, *arguments in known.commands:
        if (place := shutil.which(program, path=path)) is not None:
            return InstalledAgent(known.name, known.title, (place, *arguments))
    if not known.tool or shutil.which(known.tool, path=path) is None:
        return None
    adapter = known.commands[0][0]
    problem = (
        f"{known.tool} does not speak ACP itself, and its adapter {adapter} is not on PATH; "
        f"install it: npm install -g {known.package}"
    )
    return InstalledAgent(known.name, known.title, problem=problem)
