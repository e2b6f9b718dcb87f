"""The parsers of all commands, with their options and help. Help and completion are generated from them.

A parser is built only for the command that runs. It imports nothing of the command itself, because `dragoman agent`
must answer `initialize` at once.
"""

from collections.abc import Callable
from typing import get_args

from dragoman.cli import options as shared
from dragoman.cli.commands.check import build_check
from dragoman.cli.commands.serve import build_serve
from dragoman.cli.parser import CommandParser

EDITORS = {
    "zed": "Zed",
    "jetbrains": "JetBrains IDEs",
    "neovim": "Neovim, with CodeCompanion.nvim or avante.nvim",
    "emacs": "Emacs, with agent-shell",
}
SHELLS = ("bash", "zsh", "fish")

SESSION_ACTIONS = {
    "list": "list the sessions of the agent (the default)",
    "show": "print a session's conversation",
    "load": "open a session and count its messages, tool calls and files",
    "fork": "copy a session and print the new id",
    "title": "change a session's title: title ID TITLE",
    "archive": "archive a session; it can still be opened by its id",
    "unarchive": "unarchive a session",
    "delete": "delete sessions permanently: by ID, --all or --older-than",
    "export": "write a session's conversation in a --format",
}


STORE_ACTIONS = {
    "init": "create the missing tables",
    "status": "show the processes that use it and the sessions",
    "migrate": "upgrade the tables to this version of dragoman",
    "move": "copy all sessions of the home into the database, or back with --to files, and verify them",
    "prune": "archive or delete old sessions, in the database or, without one, in the home",
}

_RUN_EXIT_CODES = (
    "Exit codes: 0 done, 1 the agent failed, 2 usage, 3 stopped at a limit, 4 refused, 5 cancelled, "
    "6 a permission request was denied, 124 timeout, 130 killed by a second Ctrl-C."
)


def build_parser(name: str) -> CommandParser:
    """Return the parser of a command, including its actions."""
    return _BUILDERS[name](name)


def _agent(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Serve ACP on stdin and stdout, for an editor to start: our own agent, or an Agent defined in a "
        "Python module, as in `dragoman agent notes_agent:agent`.",
        epilog="Sessions are stored under $DRAGOMAN_HOME (~/.dragoman). DRAGOMAN_LOG=debug writes a log to stderr.",
    )
    parser.add_argument(
        "program", nargs="?", metavar="MODULE:NAME", help="your own Agent (dragoman.agent) instead of dragoman's own"
    )
    shared.add_model(parser)
    shared.add_agent_file(parser)
    shared.add_sandbox(parser)
    shared.add_store(parser)
    parser.add_argument(
        "--login",
        metavar="PROVIDER",
        help="only ask for this provider's API key in the terminal, store it and exit, like `dragoman login` "
        "(editors add this option)",
    )
    return parser


def _agents(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "List the known agents and their commands. `-- NAME` at the end of another command uses one.",
        "[OPTIONS]\ncheck NAME\nupdate FILE|URL\ninstall NAME\nremove NAME",
        "The list contains your own agents from $DRAGOMAN_HOME/agents.json (~/.dragoman), installed agents, agents on "
        "PATH, and agents in registry.json there, a copy of the ACP registry.",
    )
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    check = CommandParser(f"{name} check", "Check an agent against the protocol's rules.", "NAME")
    check.add_argument("name", metavar="NAME", help="the agent")
    parser.add_action("check", "check an agent, like check agent -- NAME", check)
    update = CommandParser(f"{name} update", "Download the ACP registry. No agent is installed.", "FILE|URL")
    update.add_argument("registry", metavar="FILE|URL", help="a registry.json file or its https URL")
    parser.add_action("update", "update the copy of the ACP registry", update)
    install = CommandParser(
        f"{name} install",
        "Install an agent from the registry under its name. It is a package that npx or uvx runs in its exact version, "
        "or an archive with a program, which is unpacked under $DRAGOMAN_HOME/installed. "
        "The command is shown first, and you are "
        "asked before anything runs.",
        "NAME",
        "Exit codes: 0 installed, 1 failed or declined, 2 usage.",
    )
    install.add_argument("name", metavar="NAME", help="the agent, by its id in the registry")
    install.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_action("install", "install an agent from the registry", install)
    remove = CommandParser(f"{name} remove", "Remove an installed agent and its unpacked archive.", "NAME")
    remove.add_argument("name", metavar="NAME", help="the agent")
    parser.add_action("remove", "remove an installed agent", remove)
    return parser


def _attach(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Serve ACP on stdin and stdout, for an editor to start, with the agent of a running bridge, here or "
        "on another machine. The sessions belong to the bridge: they outlive the editor and can be shared. When "
        "the connection breaks, it is restored and the sessions continue.",
        "URL [OPTIONS]",
        "Exit codes: 0 the editor closed stdin, 1 the bridge cannot be reached or refuses, 2 usage.",
    )
    parser.add_argument("url", metavar="URL", help="the bridge's URL, such as https://host:8421")
    parser.add_argument(
        "--agent-name", metavar="NAME", help="the agent's name on the bridge (default: its first agent)"
    )
    shared.add_token_file(parser)
    shared.add_timeout(parser, "--reconnect-timeout", "the bridge to accept a message", 60)
    return parser


def _chat(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Chat with an agent in the terminal. CMD is any ACP agent, or a known agent's name; URL is a running "
        "agent. Without either, dragoman's own agent is used. When stdin or stdout is not a terminal, every "
        "line of stdin is a prompt, the answers go to stdout unchanged, and every permission request is "
        "denied.",
        "[OPTIONS] [--url URL | -- CMD ...]",
        "In the conversation, :help shows the commands. The input history is stored in $DRAGOMAN_HOME/chat-history "
        "(~/.dragoman). NO_COLOR=1 turns colours off.",
        takes_command=True,
    )
    shared.add_cwd(parser)
    shared.add_mcp(parser)
    shared.add_earlier_session(parser)
    shared.add_model(parser)
    shared.add_agent_file(parser)
    shared.add_sandbox(parser)
    shared.add_runner(parser)
    shared.add_url(parser)
    return parser


def _completion(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Print a completion script for a shell.",
        "SHELL",
        "bash: dragoman completion bash >> ~/.bashrc. zsh: dragoman completion zsh > _dragoman, in a directory "
        "of $fpath. fish: dragoman completion fish > ~/.config/fish/completions/dragoman.fish.",
    )
    parser.words = {shell: f"for {shell}" for shell in SHELLS}
    parser.add_argument("shell", metavar="SHELL", type=shared.word_of("shell", SHELLS), help="see the list below")
    return parser


def _editor(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Print the configuration for an editor and the file it belongs to. With --url the editor attaches to "
        "a bridge. Nothing is written.",
        "EDITOR [OPTIONS]",
    )
    parser.words = {editor: f"for {title}" for editor, title in EDITORS.items()}
    parser.add_argument("editor", metavar="EDITOR", type=shared.word_of("editor", EDITORS), help="see the list below")
    shared.add_url(parser)
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    return parser


def _init(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Write a commented dragoman.yaml in this directory.",
        epilog="A dragoman.yaml in a project applies to sessions there; the one in $DRAGOMAN_HOME to all others.",
    )
    parser.add_argument("--home", action="store_true", help="write it to $DRAGOMAN_HOME (~/.dragoman) instead")
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    return parser


def _login(name: str) -> CommandParser:
    from dragoman.assistant.models.providers import PROVIDERS, login_name

    does = {"login": "Ask for a provider's API key and store it", "logout": "Delete a provider's API key"}[name]
    known = [kind for kind, provider in PROVIDERS.items() if provider.needs_key and login_name(kind) == kind]
    parser = CommandParser(
        name,
        f"{does}, in $DRAGOMAN_HOME (~/.dragoman). A key in the environment takes precedence.",
        "[PROVIDER] [OPTIONS]",
        f"Providers: {', '.join(known)}.",
    )
    parser.set_defaults(forgets=name == "logout")
    parser.add_argument(
        "provider",
        metavar="PROVIDER",
        nargs="?",
        help="such as anthropic, or the address of a server (default: the configured model's)",
    )
    shared.add_model(parser)
    shared.add_agent_file(parser)
    return parser


def _mcp(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Connect to the MCP servers that sessions here use, and list their tools or the reason for a failure.",
        "[OPTIONS]\nadd NAME [OPTIONS] (URL | -- CMD ...)\nremove NAME [OPTIONS]\n"
        "call [OPTIONS] SERVER TOOL [JSON]\nlogin|logout [OPTIONS] SERVER",
        "Exit codes: 0 all are ready, 1 some failed, 2 bad input.",
    )
    shared.add_cwd(parser)
    shared.add_agent_file(parser)
    shared.add_mcp(parser)
    shared.add_timeout(parser, "--start-timeout", "the servers to start", default_text="the limit of each server")
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    parser.add_action("add", "add a server to the agent file", _mcp_add(f"{name} add"))
    parser.add_action("remove", "remove a server from the agent file", _mcp_remove(f"{name} remove"))
    parser.add_action("call", "call a tool of a server", _mcp_call(f"{name} call"))
    parser.add_action("login", "log in to a server", _mcp_login(f"{name} login"))
    parser.add_action("logout", "delete the tokens for a server", _mcp_logout(f"{name} logout"))
    return parser


def _mcp_add(name: str) -> CommandParser:
    from dragoman.agent.servers.client_requests import Include
    from dragoman.assistant.profile.settings import PREFIX

    parser = CommandParser(
        name,
        "Add an MCP server to the agent file. Comments and order are preserved.",
        "NAME [--env NAME=VALUE]... [OPTIONS] -- CMD ...\nNAME [--header NAME=VALUE]... [--sse] [OPTIONS] URL",
        f"A VALUE may be {PREFIX}VARIABLE: it is then read when the server starts and not stored in a file.",
        takes_command=True,
    )
    parser.add_argument("name", metavar="NAME", help="the server's name, as users and models see it")
    parser.add_argument("url", metavar="URL", nargs="?", help="the URL of a running server")
    for option, help_text in (
        ("--env", "an environment variable for the command (repeatable)"),
        ("--header", "an HTTP header for every request to the server's URL (repeatable)"),
    ):
        parser.add_argument(option, metavar="NAME=VALUE", action="append", type=shared.pair, default=[], help=help_text)
    parser.add_argument("--sse", action="store_true", help="the server uses the older HTTP+SSE transport")
    parser.add_argument("--no-roots", action="store_true", help="do not send the session's directories as roots")
    parser.add_argument(
        "--include",
        metavar="MODE",
        choices=get_args(Include),
        help="when the model gets its tools: always (default), manual (by /include) or agent (by search)",
    )
    shared.add_agent_file(parser)
    return parser


def _mcp_remove(name: str) -> CommandParser:
    parser = CommandParser(
        name, "Remove an MCP server from the agent file. Everything else is preserved.", "NAME [OPTIONS]"
    )
    parser.add_argument("name", metavar="NAME", help="the server's name")
    shared.add_agent_file(parser)
    return parser


def _mcp_call(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Call one tool of an MCP server and print its result. SERVER is the name of a server that sessions here use.",
        "[OPTIONS] SERVER TOOL [JSON]\n[OPTIONS] --server-url URL TOOL [JSON]",
        "Exit codes: 0 the tool succeeded, 1 it or its server failed, 2 bad input.",
    )
    parser.add_argument("words", metavar="SERVER TOOL [JSON]", nargs="+", help="the arguments are a JSON object")
    _add_server_address(parser)
    shared.add_cwd(parser)
    shared.add_agent_file(parser)
    shared.add_mcp(parser)
    shared.add_timeout(parser, "--timeout", "the result")
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    return parser


def _mcp_login(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Log in to an MCP server at an http URL: open a page, wait for your consent, and store the tokens.",
        "[OPTIONS] (SERVER | --server-url URL)",
        "DRAGOMAN_MCP_CLIENT_SECRET is the secret for --client-id, if it has one.",
    )
    parser.add_argument("--client-id", metavar="ID", help="the id of a manually registered client")
    parser.add_argument("--client-metadata", metavar="URL", help="the URL of a client metadata document")
    return _add_server_options(parser)


def _mcp_logout(name: str) -> CommandParser:
    summary = "Delete the tokens for an MCP server."
    return _add_server_options(CommandParser(name, summary, "[OPTIONS] (SERVER | --server-url URL)"))


def _add_server_options(parser: CommandParser) -> CommandParser:
    parser.add_argument("name", metavar="SERVER", nargs="?", help="the name of a server that sessions here use")
    _add_server_address(parser)
    shared.add_cwd(parser)
    shared.add_agent_file(parser)
    shared.add_mcp(parser)
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    return parser


def _add_server_address(parser: CommandParser) -> None:
    parser.add_argument("--server-url", metavar="URL", help="the URL of an MCP server instead of SERVER")
    parser.add_argument(
        "--header",
        metavar="NAME=VALUE",
        action="append",
        type=shared.pair,
        default=[],
        help="an HTTP header for every request to the server's URL (repeatable)",
    )
    parser.add_argument("--sse", action="store_true", help="the server uses the older HTTP+SSE transport")


def _new(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Create a project for your own agent in a new directory: the program, its tests, pyproject.toml and README.md.",
        "NAME [OPTIONS]",
    )
    parser.add_argument("name", metavar="NAME", help="the name of the agent and the directory")
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    return parser


def _run(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Start an agent, send it one prompt and print the answer as it streams. CMD is any ACP agent, or a "
        "known agent's name; URL is a running agent. Without either, dragoman's own agent is used.",
        "[OPTIONS] PROMPT|- [--url URL | -- CMD ...]",
        _RUN_EXIT_CODES,
        takes_command=True,
    )
    parser.add_argument("prompt", metavar="PROMPT", help="the prompt; - reads it from stdin")
    parser.add_argument(
        "--file", metavar="FILE", action="append", default=[], help="attach a file to the prompt (repeatable)"
    )
    shared.add_cwd(parser)
    shared.add_mcp(parser)
    shared.add_policy(parser)
    shared.add_earlier_session(parser)
    parser.add_argument(
        "--ephemeral", action="store_true", help="delete the session at the end, if the agent supports it"
    )
    shared.add_model(parser)
    parser.add_argument("--mode", metavar="NAME", help="the session's mode, such as plan; an unknown name lists them")
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        type=shared.pair,
        default=[],
        help="set an option of the agent, such as effort=high; an unknown name lists them (repeatable)",
    )
    shared.add_agent_file(parser)
    shared.add_sandbox(parser)
    shared.add_runner(parser)
    shared.add_url(parser)
    formats = {"text": "the answer as it streams", "json": "one object at the end", "ndjson": "the raw conversation"}
    shared.add_format(parser, formats)
    shared.add_timeout(parser, "--timeout", "the result")
    return parser


def _schema(name: str) -> CommandParser:
    return CommandParser(name, "Print the JSON schema of dragoman.yaml, for completion and checks in your editor.", "")


def _sessions(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Manage an agent's sessions. ID is a session id or a unique prefix of one. Export to atif or openai also "
        "accepts the file of a recording as ID. CMD is any ACP agent, or a known agent's name; "
        "URL is a running agent. Without either, dragoman's own agent is used.",
        "[ACTION] [ID ...] [OPTIONS] [--url URL | -- CMD ...]\ntitle ID TITLE [OPTIONS]\n"
        "delete (ID ... | --all | --older-than AGE) [--cwd DIR] [--yes] [OPTIONS]",
        "Exit codes: 0 success, 1 failure, 2 usage.",
        takes_command=True,
    )
    parser.words = SESSION_ACTIONS
    parser.add_argument(
        "action",
        metavar="ACTION",
        nargs="?",
        type=shared.word_of("action", SESSION_ACTIONS),
        default="list",
        help="see the list below",
    )
    parser.add_argument(
        "words", metavar="ID", nargs="*", help="the session; several for delete; ID and TITLE for title"
    )
    shared.add_cwd(
        parser,
        default=None,
        default_text="the session's own; for list and delete --all, all directories",
    )
    formats = {
        "text": "for people",
        "json": "for programs",
        "markdown": "export",
        "html": "export",
        "atif": "trajectory for harbor",
        "openai": "messages for chat completions",
    }
    shared.add_format(parser, formats)
    shared.add_output(parser, "the export")
    parser.add_argument("--long", action="store_true", help="list: print full ids and titles")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=shared.count,
        help="list: print at most N sessions, the latest first (default: 50 as text, all as json)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--archived", action="store_true", help="list: only archived sessions")
    which.add_argument("--all", action="store_true", help="list: include archived sessions; delete: every session")
    parser.add_argument(
        "--older-than",
        metavar="AGE",
        type=shared.age,
        help="delete: sessions not used for this long: 30d, 12h, 90m or 4w",
    )
    parser.add_argument("--yes", action="store_true", help="delete: do not ask")
    shared.add_store(parser, "the database that stores the sessions")
    shared.add_url(parser)
    return parser


def _store(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Manage the PostgreSQL database that stores sessions instead of files, so several machines can share them.",
        "ACTION [--store ADDRESS] [OPTIONS]",
        "The address is a libpq connection URI, such as postgresql://USER@HOST/NAME; keep the password in ~/.pgpass or "
        "PGPASSWORD. Exit codes: 0 success, 1 failure, 2 usage.",
    )
    parser.words = STORE_ACTIONS
    parser.add_argument(
        "action", metavar="ACTION", type=shared.word_of("action", STORE_ACTIONS), help="see the list below"
    )
    shared.add_store(parser)
    parser.add_argument(
        "--to", choices=("database", "files"), default="database", help="move: the target (default: database)"
    )
    parser.add_argument(
        "--archive-after", metavar="AGE", help="prune: archive sessions not written to for this long, such as 30d or 1y"
    )
    parser.add_argument("--delete-after", metavar="AGE", help="prune: delete sessions not written to for this long")
    parser.add_argument(
        "--max-size",
        metavar="SIZE",
        help="prune: delete the oldest sessions until the rest has at most this size, such as 50GB",
    )
    parser.add_argument("--dry-run", action="store_true", help="prune: only print what would be done")
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    return parser


def _tap(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Record and check the traffic between an editor and an agent. Every byte is passed on unchanged. Put "
        "it before the agent's command in the editor's configuration, or let a conductor start it with "
        "--proxy. A summary goes to stderr at the end.",
        "[OPTIONS] (-- CMD ... | --proxy)",
        "The exit code is the agent's: 128 plus the signal if one ended it, 127 if there is no such command. "
        "`dragoman check trace FILE` judges a recording.",
        takes_command=True,
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="record the conversation in this file; if it exists, a number is added to the name",
    )
    parser.add_argument("--live", action="store_true", help="print violations to stderr as they happen")
    parser.add_argument("--findings", metavar="FILE", help="write violations to a file, one JSON object per line")
    parser.add_argument(
        "--keep-secrets",
        action="store_true",
        help="record environments, headers and tokens, which are redacted by default",
    )
    parser.add_argument("--record-only", action="store_true", help="only record; requires --record")
    parser.add_argument(
        "--proxy",
        action="store_true",
        help="act as a proxy in a conductor's chain (proxy/initialize, proxy/successor), instead of CMD",
    )
    return parser


_BUILDERS: dict[str, Callable[[str], CommandParser]] = {
    "agent": _agent,
    "agents": _agents,
    "attach": _attach,
    "chat": _chat,
    "check": build_check,
    "completion": _completion,
    "editor": _editor,
    "init": _init,
    "login": _login,
    "logout": _login,
    "mcp": _mcp,
    "new": _new,
    "run": _run,
    "schema": _schema,
    "serve": build_serve,
    "sessions": _sessions,
    "store": _store,
    "tap": _tap,
}
