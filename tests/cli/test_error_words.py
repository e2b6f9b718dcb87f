"""Error messages: each problem once, in plain words, with the fix and without protocol terms."""

import json
import os
import re
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from dragoman.cli.failure import explain
from dragoman.client.errors import StartTimeoutError
from dragoman.testing import steps
from tests.commands import DRAGOMAN, dragoman, raw, scripted

SESSIONS = {"loadSession": True, "sessionCapabilities": {"list": {}}}
AUTH = {"code": -32000, "message": "Authentication required"}
LOGIN_WORDS = "Please run `auggie login` to sign in."
NO_SUCH_AGENT = "there is no agent 'zzz'; the bridge has python"
NO_EARLIER_SESSION = "there is no session zzz here, and the agent cannot open earlier ones; start a new one"
TOKEN_STEP = "it needs a valid token; pass it with --token-file FILE or in $DRAGOMAN_TOKEN"
TOKEN_PLACE = "`dragoman serve` prints the path of its token"
FLAG_STEP = "many programs need a flag for that, such as --acp or acp"
HOME_STEP = "move that away, or set DRAGOMAN_HOME to a directory"
MODEL_STEP = "expected guide, script:FILE or PROVIDER:NAME, such as openai:gpt-5"
BROKEN_FILE = (
    "{bad_file}:1: model: expected the name of a model, such as anthropic:claude-sonnet-5-5 or a mapping with "
)
UNKNOWN_KEY = (
    "unknown key; expected one of model, instructions, permissions, sandbox, limits, mcpServers, rules, "
    "references, search"
)


def answering(**script):
    """Return the command of an agent that answers methods with these errors or results."""
    answers = {name.replace("__", "/"): [[answer]] for name, answer in script.items()}
    return ["--", *raw(answers)]


def failed(code, message, data=None):
    return {"error": {"code": code, "message": message} | ({} if data is None else {"data": data})}


class Provider(BaseHTTPRequestHandler):
    """Refuses every request with the status at the start of its path."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        status = int(self.path.split("/")[1])
        body = json.dumps({"error": {"message": "so says the provider", "type": "x", "code": None}}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def provider():
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    home = tmp_path_factory.mktemp("bridge")
    command = [*DRAGOMAN, "serve", "--format", "json", "--port", "0", "--", *scripted([steps.Say("hi")])]
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        yield json.loads(process.stdout.readline())
        process.terminate()


@pytest.fixture
def names(tmp_path, provider, bridge):
    """Create the files of the cases, and return the value of each placeholder."""
    names = {"work": tmp_path / "work", "home": Path(os.environ["DRAGOMAN_HOME"]), "python": sys.executable}
    names["work"].mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"http://127.0.0.1:{server.getsockname()[1]}"
    for name, text in {
        "file": "",
        "bad_file": "model: 7\nnonsense: x\n",
        "no_yaml": "model: [\n",
        "wrong_key": f"model:\n  name: openai:gpt\n  base_url: {provider}/401\n  api_key: wrong\n",
        "wrong_model": f"model:\n  name: openai:gpt\n  base_url: {provider}/404\n  api_key: right\n",
        "no_variable": f"model:\n  name: openai:gpt\n  base_url: {provider}/401\n  api_key: env://NO_SUCH_VARIABLE\n",
        "token": bridge["token"],
        "wrong_token": "wrong",
        "nobody": f"model:\n  name: openai:gpt\n  base_url: {closed}\n  api_key: right\n",
    }.items():
        names[name] = tmp_path / f"{name}.yaml"
        names[name].write_text(text)
    return {
        **names,
        "closed": closed,
        "provider": provider,
        "bridge": bridge["acp"],
        "missing": tmp_path / "missing",
    }


CASES = {
    # our own agent
    "an unknown session": (
        ["sessions", "show", "zzz"],
        "there is no session zzz; run `dragoman sessions` to list them",
    ),
    "an unknown session to continue": (
        ["run", "hi", "--session", "zzz"],
        "there is no session zzz; run `dragoman sessions` to list them",
    ),
    "an invalid agent file": (
        ["run", "hi", "--agent", "{bad_file}"],
        BROKEN_FILE + "name, base_url, api_key, options or null, got a whole number; put it in quotes\n"
        "{bad_file}:2: nonsense: " + UNKNOWN_KEY,
    ),
    "an agent file that is not YAML": (
        ["chat", "--agent", "{no_yaml}"],
        "{no_yaml}:1: not YAML: a value or a closing bracket is expected here",
    ),
    "no agent file": (
        ["run", "hi", "--agent", "{missing}"],
        "{missing}: there is no such agent file; `dragoman init` writes one",
    ),
    "an unknown model": (["run", "hi", "--model", "zzz"], f"there is no model 'zzz'; {MODEL_STEP}"),
    "an unknown model in a chat": (["chat", "--model", "zzz"], f"there is no model 'zzz'; {MODEL_STEP}"),
    "no script": (
        ["run", "hi", "--model", "script:{missing}"],
        "{missing}: cannot be read: No such file or directory",
    ),
    "a wrong key": (
        ["run", "hi", "--agent", "{wrong_key}"],
        (
            "the server at {provider}/401 did not accept the key: so says the provider; "
            "set the model's api_key in the agent file (it may be env://NAME), "
            "or run `dragoman login {provider}/401` in a terminal"
        ),
    ),
    "a model unknown to the provider": (
        ["run", "hi", "--agent", "{wrong_model}"],
        (
            "the model failed: the server at {provider}/404 has no model 'gpt': so says the provider; "
            "check the name of the model, and base_url if one is set"
        ),
    ),
    "an unset variable": (
        ["run", "hi", "--agent", "{no_variable}"],
        (
            "the environment variable NO_SUCH_VARIABLE is not set, and the agent file reads a secret from it; "
            "set it (for an editor, in the agent's entry of its settings) and start the agent again"
        ),
    ),
    "a stopped provider": (
        ["run", "hi", "--agent", "{nobody}"],
        "the model failed: nothing answers at {closed}; start the server there, or correct base_url",
    ),
    "no key": (
        ["run", "hi", "--model", "anthropic:zzz"],
        (
            "Anthropic needs a key for anthropic:zzz; set ANTHROPIC_API_KEY in dragoman's environment, "
            "or run `dragoman login anthropic` in a terminal"
        ),
    ),
    # another agent
    "no such command": (
        ["run", "hi", "--", "no-such-agent"],
        "cannot start no-such-agent: no such command; use its full path, or install it and check that it is on PATH",
    ),
    "no agent": (
        ["chat", "--", "true"],
        (f"true is not an ACP agent with these arguments: it exited with code 0 before it answered; {FLAG_STEP}"),
    ),
    "an agent that does not start": (
        ["sessions", "--", "sh", "-c", "echo boom >&2; exit 3"],
        (
            "boom\nsh exited with code 3 before it answered; fix that and start it again. "
            "If it is not an ACP agent with these arguments, it may need a flag, such as --acp or acp"
        ),
    ),
    "an agent that dies": (
        ["run", "hi", "--", *scripted([steps.Exit(4, "oh no")])],
        "{python} exited with code 4; its stderr ends:\noh no",
    ),
    "an error with details": (
        ["run", "hi", *answering(session__new=failed(-32603, "Internal error", {"details": "the database is down"}))],
        "the agent answered with an error: the database is down",
    ),
    "an error with details in a chat": (
        ["chat", *answering(session__prompt=failed(-32603, "Internal error", {"details": "the database is down"}))],
        "the agent answered with an error: the database is down",
    ),
    "an error with details of a session": (
        [
            "sessions",
            "show",
            "zzz",
            *answering(
                initialize={"result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}},
                session__load=failed(-32603, "Internal error", {"details": "the database is down"}),
            ),
        ],
        "the agent answered with an error: the database is down",
    ),
    "an agent without sessions": (["sessions", *answering()], "{python} cannot list its sessions"),
    "login words in data": (
        ["run", "hi", *answering(session__new={"error": {**AUTH, "data": LOGIN_WORDS}})],
        f"{{python}} needs a login: {LOGIN_WORDS}",
    ),
    "login words in the message": (
        ["chat", *answering(session__new=failed(-32000, LOGIN_WORDS))],
        f"{{python}} needs a login: {LOGIN_WORDS}",
    ),
    "login words in JSON": (
        [
            "run",
            "hi",
            *answering(session__new={"error": {**AUTH, "data": json.dumps({"error": {"message": "Say who"}})}}),
        ],
        "{python} needs a login: Say who",
    ),
    "login words in JSON in the message": (
        ["chat", *answering(session__new=failed(-32000, 'API Error: 401 {"error": {"message": "Token expired"}}'))],
        "{python} needs a login: API Error: 401 Token expired",
    ),
    "login words with the methods": (
        ["run", "hi", *answering(session__new={"error": {**AUTH, "data": {"authMethods": [{"id": "x"}]}}})],
        "{python} needs a login, and offers no login method; see its documentation",
    ),
    "login words in members": (
        ["run", "hi", *answering(session__new={"error": {**AUTH, "data": {"plan": "pro", "seats": [1, {"of": 2}]}}})],
        "{python} needs a login: plan: pro; seats: 1; of: 2",
    ),
    "login words at the start": (
        ["sessions", *answering(initialize={"error": {**AUTH, "data": {"details": LOGIN_WORDS}}})],
        f"{{python}} needs a login: {LOGIN_WORDS}",
    ),
    "a login without words": (
        ["run", "hi", *answering(session__new={"error": AUTH})],
        "{python} needs a login, and offers no login method; see its documentation",
    ),
    # an agent at a URL
    "a URL where nothing listens": (
        ["run", "hi", "--url", "{closed}/acp"],
        "{closed}/acp cannot be reached: nothing listens there; check that the server runs on that port",
    ),
    "an agent unknown to the bridge": (
        ["chat", "--url", "{bridge}/zzz", "--token-file", "{token}"],
        "{bridge}/zzz answered HTTP 404: " + NO_SUCH_AGENT,
    ),
    "no token": (["run", "hi", "--url", "{bridge}"], "{bridge} answered HTTP 401: " + TOKEN_STEP),
    "a wrong token": (
        ["chat", "--url", "{bridge}", "--token-file", "{wrong_token}"],
        "{bridge} answered HTTP 401: " + TOKEN_STEP,
    ),
    "a file without a token": (
        ["run", "hi", "--url", "{bridge}", "--token-file", "{bad_file}"],
        "the file {bad_file} does not contain a token; expected one line of ASCII characters",
    ),
    "a session unknown to the bridge": (
        ["run", "hi", "--url", "{bridge}", "--token-file", "{token}", "--session", "zzz"],
        "the agent answered with an error: " + NO_EARLIER_SESSION,
    ),
    "no token file": (
        ["run", "hi", "--url", "{bridge}", "--token-file", "{missing}"],
        "the token file {missing} cannot be read: No such file or directory; " + TOKEN_PLACE,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_error_is_reported_once_in_plain_words(case, names):
    arguments, expected = CASES[case]
    done = run(arguments, names)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert error_in(done.stderr) == expected.format(**names)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "hi"],
        ["chat"],
        ["sessions"],
        ["login", "anthropic"],
        ["logout", "anthropic"],
        ["agents"],
        ["init", "--home"],
        ["mcp"],
        ["mcp", "add", "zzz", "--", "true"],
        ["serve", "--port", "0"],
    ],
    ids=" ".join,
)
def test_home_that_is_a_file_is_reported_by_every_command(arguments, names):
    done = run(arguments, names, DRAGOMAN_HOME=str(names["file"]))
    assert done.returncode in (1, 2)
    home = f"{names['file']}, where dragoman stores its sessions and settings, is not a directory"
    assert error_in(done.stderr) == f"{home}; {HOME_STEP}"


def test_home_below_a_file_is_reported(names):
    home = names["file"] / "home"
    done = run(["agents"], names, DRAGOMAN_HOME=str(home))
    why = f"cannot be created, because {names['file']} is not a directory"
    assert error_in(done.stderr) == f"{home}, where dragoman stores its sessions and settings, {why}; {HOME_STEP}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "hi"], "check the permissions, or set DRAGOMAN_HOME to a directory you can write to"),
        (["serve", "--port", "0"], "check the permissions, or set DRAGOMAN_HOME to another directory"),
        (["login", "anthropic"], "check that this user can read and write it"),
        (["init", "--home"], "check that you can write there"),
    ],
    ids=["run", "serve", "login", "init"],
)
def test_unwritable_home_is_reported(arguments, words, names, tiny_disk):
    tiny_disk.set_read_only()
    done = run(arguments, names, DRAGOMAN_HOME=str(tiny_disk.path))
    assert done.returncode == 1
    assert f"{tiny_disk.path}" in error_in(done.stderr)
    assert error_in(done.stderr).endswith(f": Read-only file system; {words}")


@pytest.mark.parametrize("arguments", [["run", "hi"], ["chat"], ["sessions"], ["mcp"]], ids=" ".join)
def test_unknown_log_level_is_reported_and_ignored(arguments, names):
    done = run(arguments, names, DRAGOMAN_LOG="loud")
    assert done.returncode == 0
    words = "dragoman: DRAGOMAN_LOG is 'loud'; expected one of debug, info, warning, error, critical"
    assert done.stderr.splitlines()[0] == words
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("option", "longer"), [("", ""), ("--timeout", ". If it needs longer, raise --timeout")])
def test_silent_agent_error_names_only_existing_options(option, longer):
    said = explain(StartTimeoutError("zzz", 60.0), is_own=False, stderr="loading", timeout_option=option)
    step = "check that it is an ACP agent; many programs need a flag for that, such as --acp"
    assert said == f"zzz sent nothing within 60 s of its start; {step}{longer}\nits stderr ends:\nloading"


def test_json_output_has_the_error_code(names):
    agent = answering(session__new=failed(-32603, "Internal error", {"details": "the database is down"}))
    answer = json.loads(run(["run", "hi", "--format", "json", *agent], names).stdout)
    assert (answer["error"], answer["error_code"]) == ("the agent answered with an error: the database is down", -32603)


def run(arguments, names, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    filled = [_fill_in(each, names) for each in arguments]
    return dragoman(*filled, input="hi\n", cwd=names["work"], env={**clean, **environment})


def _fill_in(argument, names):
    return re.sub(r"\{(\w+)\}", lambda match: str(names.get(match[1], match[0])), argument)


def error_in(stderr):
    """Return the error without its prefix. It contains no code, no Python and no echo."""
    lines = [line for line in stderr.splitlines() if not line.startswith(("usage: ", "       dragoman "))]
    said = "\n".join(lines)
    assert not re.search(r"-32\d\d\d|Traceback|\{'|\['|None\b|Internal error|session/\w+", said), said
    assert len(lines) == len(set(lines)), said
    return re.sub(r"^dragoman \w+( \w+)?: (error: )?", "", said)
