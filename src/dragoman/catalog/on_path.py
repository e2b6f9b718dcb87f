"""ACP agents on PATH, found by their command names in the ACP registry.

No program is started, so an agent may still need a login. Two command-line tools, `claude` and `codex`, do not speak
ACP and need an adapter. If only the tool is installed, the agent is listed without a command.
"""

import shutil

import msgspec


class InstalledAgent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent whose program or tool is on this machine."""

    name: str
    """The agent's id in the ACP registry."""
    title: str
    command: tuple[str, ...] = ()
    """The command with the program's full path. Empty if it cannot be started, for the reason in `problem`."""
    problem: str = ""


class _Known(msgspec.Struct, frozen=True):
    name: str
    title: str
    commands: tuple[tuple[str, ...], ...]
    """The possible commands. The first one whose program exists is used."""
    tool: str = ""
    """A program for which the agent is the adapter."""
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
    """Return the agents on PATH or on another search path. Agents that can be started come first."""
    found = [agent for known in _KNOWN if (agent := _find(known, path)) is not None]
    return sorted(found, key=lambda agent: not agent.command)


def how_to_get(program: str) -> str | None:
    """Return how to install the program of a known agent, as the end of a sentence. Return None for other programs."""
    for known in _KNOWN:
        if program not in [command[0] for command in known.commands]:
            continue
        if known.package:
            return f"it is the adapter for {known.title}; install it: npm install -g {known.package}"
        return f"it is {known.title}; follow its own installation guide, or run: dragoman agents install {known.name}"
    return None


def _find(known: _Known, path: str | None) -> InstalledAgent | None:
    for program, *arguments in known.commands:
        if (found := shutil.which(program, path=path)) is not None:
            return InstalledAgent(known.name, known.title, (found, *arguments))
    if not known.tool or shutil.which(known.tool, path=path) is None:
        return None
    adapter = known.commands[0][0]
    problem = (
        f"{known.tool} does not speak ACP itself, and its adapter {adapter} is not on PATH; "
        f"install it: npm install -g {known.package}"
    )
    return InstalledAgent(known.name, known.title, problem=problem)
