"""The tree of all commands, with the options and the help of each. Help and completion are made from it.

A parser is built when its command is asked for, and imports nothing of the command itself: `dragoman agent` has to
answer `initialize` at once.
"""

from collections.abc import Callable
from typing import get_args

from dragoman.cli import options as shared
from dragoman.cli.parser import CommandParser

EDITORS = ("zed", "jetbrains", "neovim", "emacs")
SHELLS = ("bash", "zsh", "fish")

SESSION_ACTIONS = {
    "list": "show the sessions that the agent has (the default)",
    "show": "print a session's conversation",
    "load": "see that a session can be opened, and what is in it",
    "fork": "make a copy of a session, and print its id",
    "delete": "let the agent forget a session for good",
    "export": "write a session's conversation, as --format says",
}

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8421

_RUN_EXIT_CODES = (
    "Exit codes: 0 done, 1 the agent failed, 2 usage, 3 stopped at a limit, 4 refused, 5 cancelled, "
    "6 something that it asked for was not allowed, 124 timeout, 130 killed by a second Ctrl-C."
)
_CHECK_EXIT_CODES = (
    "Exit codes: 0 nothing failed, 1 a rule failed that the specification demands or recommends (--level must: demands "
    "alone), 2 an error of the checker, or of its use."
)


def build_parser(name: str) -> CommandParser:
    """Return the parser of a command, with those of its actions below it."""
    return _BUILDERS[name](name)


def _agent(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Serve ACP on stdin and stdout, for an editor to start.",
        epilog="Sessions are kept under $DRAGOMAN_HOME (~/.dragoman). DRAGOMAN_LOG=debug writes a log to stderr.",
    )
    shared.add_model(parser)
    shared.add_agent_file(parser)
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
        epilog="They are in $DRAGOMAN_HOME (~/.dragoman): agents.json has your own, registry.json is a copy of the "
        "ACP registry.",
    )
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS, had_json=True)
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
    shared.add_url(parser)
    return parser


def _check(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Judge an agent, a client or a recorded conversation by the rules of the Agent Client Protocol.",
        "ACTION [OPTIONS]",
        _CHECK_EXIT_CODES,
        needs_action=True,
    )
    parser.add_action("agent", "drive an agent as its client", _check_agent(f"{name} agent"))
    parser.add_action("client", "be an agent that tries a client's patience", _check_client(f"{name} client"))
    parser.add_action("trace", "judge a recorded conversation", _check_trace(f"{name} trace"))
    parser.add_action("matrix", "put several reports side by side", _check_matrix(f"{name} matrix"))
    parser.add_action("rule", "explain a rule", _check_rule(f"{name} rule"))
    return parser


def _check_agent(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Drive an agent as its client would, also with what no good client sends, and judge what it says. "
        "CMD is any ACP agent, or the name of one; without it, dragoman's own is judged.",
        "[OPTIONS] [--url URL | -- CMD ...]",
        _CHECK_EXIT_CODES,
        takes_command=True,
    )
    shared.add_url(parser)
    parser.add_argument("--prompt", metavar="TEXT", action="append", help="what to ask it (repeatable)")
    parser.add_argument("--script", metavar="FILE", help="turns with their answers to permission requests, as YAML")
    parser.add_argument("--no-prompt", action="store_true", help="ask it nothing: no key is needed then")
    parser.add_argument("--auth", metavar="ID", help="the method to authenticate with before the first session")
    parser.add_argument(
        "--without",
        metavar="CAPABILITY",
        action="append",
        choices=["fs", "terminal", "elicitation"],
        help="do not offer fs, terminal or elicitation to it (repeatable)",
    )
    parser.add_argument(
        "--start-timeout",
        metavar="S",
        type=shared.seconds,
        default=15.0,
        help="seconds to start and answer initialize (15)",
    )
    shared.add_timeout(parser, "a plain answer", 5.0)
    parser.add_argument(
        "--turn-timeout", metavar="S", type=shared.seconds, default=60.0, help="seconds for a turn (60)"
    )
    _add_report_options(parser)
    return parser


def _check_client(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Be an agent with a script of surprises, and judge what the client sends and how it takes them. "
        "CMD is started once for each of them; {agent} in it is where the command of the agent goes, else at its end.",
        "[OPTIONS] (--listen [PORT] | -- CMD ...)",
        _CHECK_EXIT_CODES,
        takes_command=True,
    )
    parser.add_argument(
        "--listen",
        metavar="PORT",
        nargs="?",
        type=shared.port,
        const=0,
        help="wait for a client that somebody points at us, until Ctrl-C",
    )
    shared.add_timeout(parser, "the client to end, each time it is started,", 30.0)
    _add_report_options(parser)
    return parser


def _check_trace(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Judge a recorded conversation: of dragoman's tap or client, of acpx, of the Rust conductor, or any JSON "
        "messages, one a line, with or without their direction. It may be gzipped.",
        "FILE [OPTIONS]",
        _CHECK_EXIT_CODES,
    )
    parser.add_argument("file", metavar="FILE", help="the recording")
    parser.add_argument(
        "--role", choices=["agent", "client", "both"], default="both", help="which side to judge (both)"
    )
    _add_report_options(parser)
    return parser


def _check_matrix(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Write one Markdown table of several reports that --format json has written.",
        "[OPTIONS] NAME=FILE ...",
    )
    parser.add_argument("reports", metavar="NAME=FILE", nargs="+", help="the name of a column, and its report")
    shared.add_output(parser)
    return parser


def _check_rule(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Explain rules: the duty, the clause of the specification, the occasion to break it and the way to mend it.",
        "ID ...",
    )
    parser.add_argument("ids", metavar="ID", nargs="+", help="the id of a rule, such as ACP-WIRE-001")
    return parser


def _add_report_options(parser: CommandParser) -> None:
    from dragoman.check.reports import FORMATS

    formats = {"text" if name == "terminal" else name: words for name, words in FORMATS.items()}
    shared.add_format(parser, formats, old_names={"terminal": "text"})
    shared.add_output(parser, "the report")
    parser.add_argument("--verbose", action="store_true", help="text: show what passed and what was not exercised too")
    parser.add_argument("--name", metavar="NAME", help="what the report calls it")
    parser.add_argument(
        "--level", choices=["must", "should"], default="should", help="the least grave rules that count (should)"
    )
    parser.add_argument("--baseline", metavar="FILE", help="known failures, which are shown and do not count")
    parser.add_argument("--write-baseline", action="store_true", help="make what fails now the baseline")


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
        "Write a commented dragoman.yaml in this directory. With --editor, write nothing: print the configuration "
        "that makes that editor start dragoman, and where it goes.",
        epilog="A dragoman.yaml in a project counts for sessions there; the one in $DRAGOMAN_HOME for all others.",
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--home", action="store_true", help="write it to $DRAGOMAN_HOME (~/.dragoman) instead")
    place.add_argument("--editor", choices=EDITORS, help="print the snippet for this editor")
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS, had_json=True)
    return parser


def _login(name: str) -> CommandParser:
    from dragoman.agent.models.providers import PROVIDERS, login_name

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
        "provider", metavar="PROVIDER", nargs="?", help="such as anthropic (default: that of the configured model)"
    )
    shared.add_model(parser)
    shared.add_agent_file(parser)
    return parser


def _mcp(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Connect to the MCP servers that a session would get, and show them with their tools, or why they failed.",
        "[OPTIONS]\nadd NAME [OPTIONS] (URL | -- CMD ...)\nremove NAME [OPTIONS]",
        "Exit codes: 0 all are ready, 1 some failed, 2 bad input.",
    )
    shared.add_cwd(parser)
    shared.add_agent_file(parser)
    shared.add_mcp(parser)
    shared.add_timeout(parser, "the servers", default_words="as long as a server may take")
    shared.add_format(parser, shared.FOR_PEOPLE_OR_PROGRAMS, had_json=True)
    parser.add_action("add", "add a server to the agent file", _mcp_add(f"{name} add"))
    parser.add_action("remove", "remove a server from the agent file", _mcp_remove(f"{name} remove"))
    return parser


def _mcp_add(name: str) -> CommandParser:
    from dragoman.agent.profile.secret import PREFIX
    from dragoman.agent.profile.servers import Include

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
    shared.add_model(parser)
    shared.add_agent_file(parser)
    shared.add_url(parser)
    formats = {"text": "the answer as it streams", "json": "one object at the end", "ndjson": "the raw conversation"}
    shared.add_format(parser, formats)
    shared.add_timeout(parser, "the end of the run")
    return parser


def _serve(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Put an agent behind one address: a web page for people, and /acp for ACP clients over WebSocket and HTTP. "
        "CMD is any ACP agent, or the name of one; without it, dragoman's own is served.",
        "[OPTIONS] [-- CMD ...]",
        "It prints a link that lets one browser in; Enter prints a fresh one. Programs send the token as "
        "Authorization: Bearer; it is in $DRAGOMAN_HOME/bridge/token (~/.dragoman). Ctrl-C or SIGTERM stops the "
        "bridge and its agents, with exit code 0. DRAGOMAN_LOG=info writes a log to stderr.",
        takes_command=True,
    )
    formats = {"text": "links for people", "json": "url, acp and token for programs, in one line"}
    shared.add_format(parser, formats, had_json=True)
    shared.add_cwd(parser)
    served = parser.add_argument_group("what is served")
    shared.add_agents_file(served)
    served.add_argument("--name", metavar="NAME", help="the agent's name in /acp/NAME (default: after its command)")
    shared.add_model(served)
    shared.add_agent_file(served)
    _add_serve_network(parser)
    _add_serve_times(parser)
    return parser


def _add_serve_network(parser: CommandParser) -> None:
    place = parser.add_argument_group("where")
    place.add_argument("--host", metavar="H", default=DEFAULT_HOST, help=f"listen here (default: {DEFAULT_HOST})")
    place.add_argument(
        "--port", metavar="N", type=shared.port, default=DEFAULT_PORT, help=f"0 picks one (default: {DEFAULT_PORT})"
    )
    place.add_argument(
        "--public-url", metavar="URL", help="the address that people open, when a reverse proxy stands in front"
    )
    for option, metavar, words in (
        ("--allow-host", "H", "a further name, or name:port, under which this is reached (repeatable)"),
        ("--allow-origin", "O", "a further origin, such as https://app.example, whose pages may connect (repeatable)"),
    ):
        place.add_argument(option, metavar=metavar, action="append", default=[], help=words)
    beyond = parser.add_argument_group("beyond this machine")
    beyond.add_argument("--tls-cert", metavar="FILE", help="serve https with this certificate (PEM, with its chain)")
    beyond.add_argument("--tls-key", metavar="FILE", help="and this private key (PEM)")
    beyond.add_argument(
        "--insecure-network",
        action="store_true",
        help="listen beyond this machine without TLS: everybody on the way can read the conversation, take the token "
        "and run commands as you",
    )


def _add_serve_times(parser: CommandParser) -> None:
    group = parser.add_argument_group("how long")
    for option, words in (
        (
            "--permission-timeout",
            "refuse what an agent asks after S seconds in which nobody was there to answer (default: 3600)",
        ),
        ("--idle-stop", "stop an agent that nobody has used for S seconds; it starts again when needed (default: 900)"),
        (
            "--open-timeout",
            "give up waiting for an agent that is to open a session and says nothing for S seconds (default: 120)",
        ),
    ):
        group.add_argument(option, metavar="S", type=shared.seconds, help=words)


def _sessions(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "The sessions that an agent keeps. ID is a session's id, or as much of its beginning as tells it from the "
        "others. CMD is any ACP agent, or the name of one, URL one that runs already; without either, dragoman's own "
        "is used.",
        "[ACTION] [ID] [OPTIONS] [--url URL | -- CMD ...]",
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
    parser.add_argument("id", metavar="ID", nargs="?", help="which session")
    shared.add_cwd(parser, default=None, default_words="list: all of them; else: as the agent's list has it")
    formats = {"text": "for people", "json": "for programs", "markdown": "export", "html": "export"}
    shared.add_format(parser, formats, had_json=True)
    shared.add_output(parser, "the export")
    parser.add_argument("--long", action="store_true", help="list: whole ids and titles")
    parser.add_argument("--yes", action="store_true", help="delete: do not ask")
    shared.add_url(parser)
    return parser


def _tap(name: str) -> CommandParser:
    parser = CommandParser(
        name,
        "Stand between an editor and an agent: pass every byte untouched, judge the conversation by the rules of the "
        "protocol, and record it if told to. Put it before the agent's command in the editor's configuration. A "
        "summary goes to stderr at the end.",
        "[OPTIONS] -- CMD ...",
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
    return parser


_BUILDERS: dict[str, Callable[[str], CommandParser]] = {
    "agent": _agent,
    "agents": _agents,
    "chat": _chat,
    "check": _check,
    "completion": _completion,
    "init": _init,
    "login": _login,
    "logout": _login,
    "mcp": _mcp,
    "run": _run,
    "serve": _serve,
    "sessions": _sessions,
    "tap": _tap,
}
