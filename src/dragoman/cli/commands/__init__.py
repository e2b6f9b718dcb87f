"""The tree of all commands, with the options and the help of each. Help and completion are made from it.

A parser is built when its command is asked for, and imports nothing of the command itself: `dragoman agent` has to
answer `initialize` at once.
"""

from collections.abc import Callable
from typing import get_args

from dragoman.cli import options as shared
from dragoman.cli.commands.check import build_check
from dragoman.cli.commands.serve import build_serve
from dragoman.cli.parser import CommandParser

EDITORS = ("zed", "jetbrains", "neovim", "emacs")
SHELLS = ("bash", "zsh", "fish")

SESSION_ACTIONS = {
    "list": "show the sessions that the agent has (the default)",
    "show": "print a session's conversation",
    "load": "see that a session can be opened, and what is in it",
    "fork": "make a copy of a session, and print its id",
    "title": "give a session another title: title ID TITLE",
    "archive": "leave a session out of lists; it can still be opened by its id",
    "unarchive": "have a session in lists again",
    "delete": "let the agent forget sessions for good: by ID, --all or --older-than",
    "export": "write a session's conversation, as --format says",
}


STORE_ACTIONS = {
    "init": "make the tables, where they are not there",
    "status": "show the processes that use it, and the sessions",
    "migrate": "upgrade the tables to those of this dragoman",
    "move": "copy all sessions of the home into it, or back with --to files, and compare them",
    "prune": "archive or delete old sessions, in the database or, without one, in the home",
}

_RUN_EXIT_CODES = (
    "Exit codes: 0 done, 1 the agent failed, 2 usage, 3 stopped at a limit, 4 refused, 5 cancelled, "
    "6 something that it asked for was not allowed, 124 timeout, 130 killed by a second Ctrl-C."
)


def build_parser(name: str) -> CommandParser:
    """Return the parser of a command, with those of its actions below it."""
    return _BUILDERS[name](name)


def _agent(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Serve ACP on stdin and stdout, for an editor to start: our own agent, or the Agent that a Python module has "
        "under a name, as `dragoman agent notes_agent:agent` does.",
        epilog="Sessions are kept under $DRAGOMAN_HOME (~/.dragoman). DRAGOMAN_LOG=debug writes a log to stderr.",
    )
    parser.add_argument(
        "program", nargs="?", metavar="MODULE:NAME", help="an Agent of your own (dragoman.agent), in place of ours"
    )
    shared.add_model(parser)
    shared.add_agent_file(parser)
    shared.add_store(parser)
    parser.add_argument(
        "--login",
        metavar="PROVIDER",
        help="serve nothing: ask for this provider's key in the terminal, keep it and end, as `dragoman login` does "
        "(editors add this to the command)",
    )
    return parser


def _agents(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Show the agents that are known by name, and the command of each. `-- NAME` at the end of another command "
        "uses one.",
        "[OPTIONS]\ncheck NAME\nupdate FILE|URL\ninstall NAME\nremove NAME",
        "Your own are in $DRAGOMAN_HOME/agents.json (~/.dragoman). Others are installed, found on PATH, and in "
        "registry.json there, a copy of the ACP registry.",
    )
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS, had_json=True)
    check = CommandParser(f"{name} check", "Judge an agent by the rules of the protocol.", "NAME")
    check.add_argument("name", metavar="NAME", help="the agent")
    parser.add_action("check", "judge an agent, as check agent -- NAME does", check)
    update = CommandParser(f"{name} update", "Take a copy of the ACP registry; no agent is installed.", "FILE|URL")
    update.add_argument("registry", metavar="FILE|URL", help="a registry.json, or the https address of one")
    parser.add_action("update", "take another copy of the ACP registry", update)
    install = CommandParser(
        f"{name} install",
        "Install an agent of the registry into an environment of its own under $DRAGOMAN_HOME/installed, with every "
        "package pinned by its hash. You are shown what it is and asked before any of it runs.",
        "NAME",
        "Exit codes: 0 installed, 1 failed (or the answer was no; nothing is left of it), 2 usage.",
    )
    install.add_argument("name", metavar="NAME", help="the agent, by its id in the registry")
    install.add_argument("--yes", action="store_true", help="install it without a question")
    parser.add_action("install", "install an agent of the registry", install)
    remove = CommandParser(f"{name} remove", "Remove an agent that was installed, with its environment.", "NAME")
    remove.add_argument("name", metavar="NAME", help="the agent")
    parser.add_action("remove", "remove an agent that was installed", remove)
    return parser


def _attach(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Serve ACP on stdin and stdout, for an editor to start, with the agent of a bridge that runs already, here or "
        "on another machine. The sessions are the bridge's: they outlive the editor, and others can be on them too. "
        "When the connection breaks, it is made again and the sessions go on where they were.",
        "URL [OPTIONS]",
        "Exit codes: 0 the editor closed stdin, 1 the bridge cannot be reached or refuses, 2 usage.",
    )
    parser.add_argument("url", metavar="URL", help="the bridge, such as https://host:8421 of dragoman serve")
    parser.add_argument("--agent", metavar="NAME", help="which agent of the bridge (default: its first)")
    shared.add_token_file(parser)
    shared.add_timeout(parser, "a bridge that is away, with each message of the editor,", 60)
    return parser


def _chat(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Talk with an agent in the terminal. CMD is any ACP agent, or the name of one, URL one that runs already; "
        "without either, dragoman's own is used. When stdin or stdout is no terminal, every line of stdin is a "
        "prompt, the answers go to stdout as they are, and whatever needs permission is denied.",
        "[OPTIONS] [--url URL | -- CMD ...]",
        "In the conversation, :help shows the commands. What was written is kept in $DRAGOMAN_HOME/chat-history "
        "(~/.dragoman). NO_COLOR=1 leaves out the colours.",
        takes_command=True,
    )
    shared.add_cwd(parser)
    shared.add_mcp(parser)
    shared.add_earlier_session(parser)
    shared.add_model(parser)
    shared.add_agent_file(parser)
    shared.add_runner(parser)
    shared.add_url(parser)
    return parser


def _completion(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Print a script that lets a shell complete dragoman's commands and their options.",
        "SHELL",
        "bash: dragoman completion bash >> ~/.bashrc. zsh: dragoman completion zsh > _dragoman, in a directory "
        "of $fpath. fish: dragoman completion fish > ~/.config/fish/completions/dragoman.fish.",
    )
    parser.words = {shell: f"for {shell}" for shell in SHELLS}
    parser.add_argument("shell", metavar="SHELL", type=shared.word_of("shell", SHELLS), help="see below")
    return parser


def _init(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Write a commented dragoman.yaml in this directory. With --kit, write a project for an agent of your own. With "
        "--editor, write nothing: print the configuration that makes that editor start dragoman, or attach to a bridge "
        "with --url, and where it goes.",
        epilog="A dragoman.yaml in a project counts for sessions there; the one in $DRAGOMAN_HOME for all others.",
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--home", action="store_true", help="write it to $DRAGOMAN_HOME (~/.dragoman) instead")
    place.add_argument("--editor", choices=EDITORS, help="print the snippet for this editor")
    place.add_argument("--schema", action="store_true", help="print the JSON schema of dragoman.yaml, for editors")
    place.add_argument(
        "--kit", metavar="NAME", help="write the project of an agent of your own, in a new directory NAME"
    )
    shared.add_url(parser)
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS, had_json=True)
    return parser


def _login(name: str) -> CommandParser:
    from dragoman.assistant.models.providers import PROVIDERS, login_name

    does = {"login": "Ask for the key of a provider and keep it", "logout": "Forget the key of a provider"}[name]
    known = [kind for kind, provider in PROVIDERS.items() if provider.needs_key and login_name(kind) == kind]
    parser = CommandParser(
        name,
        f"{does}, in $DRAGOMAN_HOME (~/.dragoman). A key in the environment counts before a kept one.",
        "[PROVIDER] [OPTIONS]",
        f"Providers: {', '.join(known)}.",
    )
    parser.set_defaults(forgets=name == "logout")
    parser.add_argument(
        "provider",
        metavar="PROVIDER",
        nargs="?",
        help="such as anthropic, or the address of a server (default: that of the configured model)",
    )
    shared.add_model(parser)
    shared.add_agent_file(parser)
    return parser


def _mcp(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Connect to the MCP servers that a session would get, and show them with their tools, or why they failed.",
        "[OPTIONS]\nadd NAME [OPTIONS] (URL | -- CMD ...)\nremove NAME [OPTIONS]\n"
        "call [OPTIONS] SERVER TOOL [JSON]\nlogin|logout [OPTIONS] SERVER",
        "Exit codes: 0 all are ready, 1 some failed, 2 bad input.",
    )
    shared.add_cwd(parser)
    shared.add_agent_file(parser)
    shared.add_mcp(parser)
    shared.add_timeout(parser, "the servers", default_words="as long as a server may take")
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS, had_json=True)
    parser.add_action("add", "add a server to the agent file", _mcp_add(f"{name} add"))
    parser.add_action("remove", "remove a server from the agent file", _mcp_remove(f"{name} remove"))
    parser.add_action("call", "call a tool of a server", _mcp_call(f"{name} call"))
    parser.add_action("login", "log in to a server that wants it", _mcp_login(f"{name} login"))
    parser.add_action("logout", "forget the tokens for a server", _mcp_logout(f"{name} logout"))
    return parser


def _mcp_add(name: str) -> CommandParser:
    from dragoman.assistant.profile.servers import Include
    from dragoman.assistant.profile.settings import PREFIX

    parser = CommandParser(
        name,
        "Add an MCP server to the agent file; comments, order and all else in it stay as they are.",
        "NAME [--env NAME=VALUE]... [OPTIONS] -- CMD ...\nNAME [--header NAME=VALUE]... [--sse] [OPTIONS] URL",
        f"A VALUE may be {PREFIX}VARIABLE: then it is looked up when it is used, and stands in no file.",
        takes_command=True,
    )
    parser.add_argument("name", metavar="NAME", help="what people and models call it")
    parser.add_argument("url", metavar="URL", nargs="?", help="the address of a server that runs already")
    for option, words in (
        ("--env", "an environment variable for the command (repeatable)"),
        ("--header", "an HTTP header for every request to the URL (repeatable)"),
    ):
        parser.add_argument(option, metavar="NAME=VALUE", action="append", type=shared.pair, default=[], help=words)
    parser.add_argument("--sse", action="store_true", help="the URL speaks the older of the two HTTP transports")
    parser.add_argument(
        "--no-roots", action="store_true", help="do not tell it the session's directories; it has its own"
    )
    parser.add_argument(
        "--include",
        metavar="MODE",
        choices=get_args(Include),
        help="when its tools are put before the model: always (default), manual (by /include) or agent (by search)",
    )
    shared.add_agent_file(parser)
    return parser


def _mcp_remove(name: str) -> CommandParser:
    parser = CommandParser(name, "Remove an MCP server from the agent file; all else stays as it is.", "NAME [OPTIONS]")
    parser.add_argument("name", metavar="NAME", help="the server's name")
    shared.add_agent_file(parser)
    return parser


def _mcp_call(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Call one tool of an MCP server and print its result. SERVER is one that a session here would get.",
        "[OPTIONS] SERVER TOOL [JSON]\n[OPTIONS] --url URL TOOL [JSON]",
        "Exit codes: 0 the tool succeeded, 1 it or its server failed, 2 bad input.",
    )
    parser.add_argument("words", metavar="SERVER TOOL [JSON]", nargs="+", help="the arguments are a JSON object")
    _add_server_address(parser)
    shared.add_cwd(parser)
    shared.add_agent_file(parser)
    shared.add_mcp(parser)
    shared.add_timeout(parser, "the server and its tool", default_words="none")
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    return parser


def _mcp_login(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Log in to an MCP server at an http address: shows a page, waits for you to agree there, and keeps the tokens.",
        "[OPTIONS] (SERVER | --url URL)",
        "DRAGOMAN_MCP_CLIENT_SECRET is the secret that goes with --client-id, if there is one.",
    )
    parser.add_argument("--client-id", metavar="ID", help="the id of a client that was registered by hand")
    parser.add_argument("--client-metadata", metavar="URL", help="the address of a document that describes the client")
    return _take_server(parser)


def _mcp_logout(name: str) -> CommandParser:
    words = "Forget the tokens for an MCP server."
    return _take_server(CommandParser(name, words, "[OPTIONS] (SERVER | --url URL)"))


def _take_server(parser: CommandParser) -> CommandParser:
    parser.add_argument("name", metavar="SERVER", nargs="?", help="a server that a session here would get")
    _add_server_address(parser)
    shared.add_cwd(parser)
    shared.add_agent_file(parser)
    shared.add_mcp(parser)
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    return parser


def _add_server_address(parser: CommandParser) -> None:
    parser.add_argument("--url", metavar="URL", help="the address of a server that stands in no file")
    parser.add_argument(
        "--header",
        metavar="NAME=VALUE",
        action="append",
        type=shared.pair,
        default=[],
        help="an HTTP header for every request to the URL (repeatable)",
    )
    parser.add_argument("--sse", action="store_true", help="the URL speaks the older of the two HTTP transports")


def _run(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Start an agent, give it one prompt and print its answer as it streams. CMD is any ACP agent, or the name of "
        "one, URL one that runs already; without either, dragoman's own is used.",
        "[OPTIONS] PROMPT|- [--url URL | -- CMD ...]",
        _RUN_EXIT_CODES,
        takes_command=True,
    )
    parser.add_argument("prompt", metavar="PROMPT", help="what to say to the agent; - reads it from stdin")
    parser.add_argument(
        "--file", metavar="FILE", action="append", default=[], help="a file that goes with the prompt (repeatable)"
    )
    shared.add_cwd(parser)
    shared.add_mcp(parser)
    shared.add_policy(parser)
    shared.add_earlier_session(parser)
    parser.add_argument(
        "--ephemeral", action="store_true", help="delete the session at the end; the agent must be able to"
    )
    shared.add_model(parser)
    shared.add_agent_file(parser)
    shared.add_runner(parser)
    shared.add_url(parser)
    formats = {"text": "the answer as it streams", "json": "one object at the end", "ndjson": "the raw conversation"}
    shared.add_format(parser, formats)
    shared.add_timeout(parser, "the end of the run")
    return parser


def _sessions(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "The sessions that an agent keeps. ID is a session's id, or as much of its beginning as tells it from the "
        "others; for export to atif and openai also a recording, such as tap --output makes. CMD is any ACP agent, or "
        "the name of one, URL one that runs already; without either, dragoman's own is used.",
        "[ACTION] [ID ...] [OPTIONS] [--url URL | -- CMD ...]\ntitle ID TITLE [OPTIONS]\n"
        "delete (ID ... | --all | --older-than AGE) [--cwd DIR] [--yes] [OPTIONS]",
        "Exit codes: 0 done, 1 it cannot be done, 2 usage.",
        takes_command=True,
    )
    parser.words = SESSION_ACTIONS
    parser.add_argument(
        "action",
        metavar="ACTION",
        nargs="?",
        type=shared.word_of("action", SESSION_ACTIONS),
        default="list",
        help="see below",
    )
    parser.add_argument("words", metavar="ID", nargs="*", help="which session; delete: several; title: ID and TITLE")
    shared.add_cwd(
        parser, default=None, default_words="list, delete --all: all of them; else: as the agent's list has it"
    )
    formats = {
        "text": "for people",
        "json": "for programs",
        "markdown": "export",
        "html": "export",
        "atif": "export for harbor",
        "openai": "export as messages of chat completions",
    }
    shared.add_format(parser, formats, had_json=True)
    shared.add_output(parser, "the export")
    parser.add_argument("--long", action="store_true", help="list: whole ids and titles")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--archived", action="store_true", help="list: those that are archived")
    which.add_argument("--all", action="store_true", help="list: archived ones, too; delete: every session")
    parser.add_argument(
        "--older-than",
        metavar="AGE",
        type=shared.age,
        help="delete: sessions that were not used for so long: 30d, 12h, 90m or 4w",
    )
    parser.add_argument("--yes", action="store_true", help="delete: do not ask")
    shared.add_store(parser, "the database that keeps the sessions")
    shared.add_url(parser)
    return parser


def _store(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "The PostgreSQL database that keeps sessions in place of files, so that any number of machines can share them.",
        "ACTION [--store ADDRESS] [OPTIONS]",
        "The address is one of libpq, such as postgresql://USER@HOST/NAME; keep the password in ~/.pgpass or "
        "PGPASSWORD. Exit codes: 0 done, 1 it cannot be done, 2 usage.",
    )
    parser.words = STORE_ACTIONS
    parser.add_argument("action", metavar="ACTION", type=shared.word_of("action", STORE_ACTIONS), help="see below")
    shared.add_store(parser)
    parser.add_argument(
        "--to", choices=("database", "files"), default="database", help="move: where to (default: database)"
    )
    parser.add_argument(
        "--archive-after", metavar="AGE", help="prune: archive sessions not written to for so long, such as 30d or 1y"
    )
    parser.add_argument("--delete-after", metavar="AGE", help="prune: delete sessions not written to for so long")
    parser.add_argument(
        "--max-size", metavar="SIZE", help="prune: delete the oldest sessions until all have at most this size (50GB)"
    )
    parser.add_argument("--dry-run", action="store_true", help="prune: only tell what would be done")
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS)
    return parser


def _tap(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Stand between an editor and an agent: pass every byte untouched, judge the conversation by the rules of the "
        "protocol, and record it if told to. Put it before the agent's command in the editor's configuration, or let "
        "a conductor start it with --proxy. A summary goes to stderr at the end.",
        "[OPTIONS] (-- CMD ... | --proxy)",
        "The exit code is the agent's: 128 plus the signal if one ended it, 127 if there is no such command. "
        "`dragoman check trace FILE` judges a recording.",
        takes_command=True,
    )
    shared.add_output(parser, "a record of the conversation", "none is made; never a file that is there already")
    parser.add_argument("--live", action="store_true", help="show what breaks a rule on stderr, as it happens")
    parser.add_argument("--findings", metavar="FILE", help="write what breaks a rule to a file, a JSON object a line")
    parser.add_argument(
        "--keep-secrets",
        action="store_true",
        help="record environments, headers and tokens too, which are hidden otherwise",
    )
    parser.add_argument("--record-only", action="store_true", help="do not judge; goes with --output")
    parser.add_argument(
        "--proxy",
        action="store_true",
        help="stand as a proxy in a conductor's chain (proxy/initialize, proxy/successor), in place of CMD",
    )
    return parser


_BUILDERS: dict[str, Callable[[str], CommandParser]] = {
    "agent": _agent,
    "agents": _agents,
    "attach": _attach,
    "chat": _chat,
    "check": build_check,
    "completion": _completion,
    "init": _init,
    "login": _login,
    "logout": _login,
    "mcp": _mcp,
    "run": _run,
    "serve": build_serve,
    "sessions": _sessions,
    "store": _store,
    "tap": _tap,
}
