"""`dragoman serve` as a real process: what it prints, what it refuses, and how it ends."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.request import urlopen

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.sync.client import connect

from dragoman.bridge.front.server import ListenError, Tls
from dragoman.cli.browser import should_open
from dragoman.cli.serve.address import check_exposure, link_host, names_for, resolve
from tests.bridge.guard.serving import TIMEOUT_S, read_answer, scripted, serving
from tests.cli.terminal import Terminal
from tests.commands import DRAGOMAN, dragoman
from tests.proc.processes import children_of, wait_until_gone
from tests.waiting import wait_until

INITIALIZE = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'


def request(number, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def open_socket(served, name=None):
    path = f"/acp/{name}" if name else "/acp"
    return connect(f"ws://{served.host}{path}", additional_headers={"Authorization": f"Bearer {served.token}"})


def answer_to(connection, number):
    """Return the result of our request, and skip other messages."""
    while True:
        message = json.loads(connection.recv(TIMEOUT_S))
        if message.get("id") == number and "method" not in message:
            return message["result"]


def converse(connection, cwd, text):
    """Run one turn and return the session's id."""
    connection.send(INITIALIZE)
    answer_to(connection, 1)
    connection.send(request(2, "session/new", cwd=str(cwd), mcpServers=[]))
    session_id = answer_to(connection, 2)["sessionId"]
    connection.send(request(3, "session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": text}]))
    assert answer_to(connection, 3)["stopReason"] == "end_turn"
    return session_id


def test_connections_leave_file_descriptors_for_the_owner(tmp_path):
    few_files = ("sh", "-c", 'ulimit -n 200; exec "$@"', "sh")
    with serving(tmp_path, agent=(), through=few_files) as served, ExitStack() as strangers:
        for _ in range(300):
            strangers.enter_context(socket.create_connection(("127.0.0.1", served.port), TIMEOUT_S))
        with open_socket(served) as connection:
            converse(connection, tmp_path, "hello")


# ── output ──────────────────────────────────────────────────────────────────────────────────────────


def test_json_prints_one_line_with_link_address_and_token(tmp_path):
    with serving(tmp_path) as served:
        assert served.url.startswith(f"http://127.0.0.1:{served.port}/login?code=")
        assert served.acp == f"http://127.0.0.1:{served.port}/acp"
        assert served.token == (tmp_path / "bridge" / "token").read_text().strip()
        assert served.ask("GET /config.json", f"Cookie: {served.log_in()}").status == 200
        assert served.stop() == 0
        assert served.process.stdout.read() == ""
    assert served.acp in served.stderr
    assert "Ctrl-C stops" in served.stderr


def test_text_prints_a_link_the_agents_and_how_to_stop(tmp_path):
    command = [*DRAGOMAN, "serve", "--port", "0", "--cwd", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        lines = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        process.terminate()
        assert process.wait(TIMEOUT_S) == 0
    text = "".join(lines)
    assert f"Serving dragoman; new sessions start in {tmp_path}" in text
    assert re.search(r"open in a browser +http://127\.0\.0\.1:\d+/login\?code=\S+\n", text)
    assert re.search(r"ACP clients +http://127\.0\.0\.1:\d+/acp\n", text)
    token = Path(os.environ["DRAGOMAN_HOME"], "bridge", "token")
    assert str(token) in text
    assert token.read_text().strip() not in text


@pytest.mark.parametrize(
    ("asked", "variables", "is_opened"),
    [
        (None, {"DISPLAY": ":9"}, True),
        (None, {"WAYLAND_DISPLAY": "wayland-9"}, True),
        (None, {}, False),
        (None, {"DISPLAY": ":9", "CI": "true"}, False),
        (True, {"CI": "true"}, True),
        (False, {"DISPLAY": ":9"}, False),
    ],
)
def test_browser_opens_for_a_user_with_a_display(asked, variables, is_opened, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert should_open(asked, variables, is_terminal=True) == is_opened


@pytest.mark.parametrize(("variables", "is_opened"), [({}, True), ({"SSH_CONNECTION": "10.0.0.1 5000"}, False)])
def test_mac_has_a_display_unless_reached_by_ssh(variables, is_opened, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert should_open(None, variables, is_terminal=True) == is_opened


def test_no_browser_opens_if_the_output_is_not_a_terminal():
    assert not should_open(None, {"DISPLAY": ":9"}, is_terminal=False)


def test_browser_gets_its_own_sign_in_link(tmp_path):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho noise\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    command = [*DRAGOMAN, "serve", "--port", "0", "--cwd", str(tmp_path)]
    at_display = {"DISPLAY": ":9", "BROWSER": str(browser), "CI": "", "DRAGOMAN_HOME": str(tmp_path / "home")}
    terminal = Terminal(command, columns=200, environment=at_display)
    try:
        terminal.expect("Ctrl-C stops.")
        wait_until(opened.exists)
        link = opened.read_text().strip()
        assert link not in terminal.plain
        with urlopen(link, timeout=TIMEOUT_S) as page:
            assert "<title>Dragoman" in page.read().decode()
        terminal.press("\x03")
        assert terminal.end() == 0
        assert "noise" not in terminal.plain
    finally:
        terminal.close()


def test_enter_during_the_stop_does_nothing(tmp_path):
    begun = tmp_path / "begun"
    ignoring = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    agent = [sys.executable, "-c", f"{ignoring}; open({str(begun)!r}, 'w'); time.sleep(60)"]
    terminal = Terminal([*DRAGOMAN, "serve", "--no-open", "--port", "0", "--", *agent], columns=200)
    try:
        terminal.expect("Ctrl-C stops.")
        url = re.search(r"ACP clients +(\S+)", terminal.plain)[1]
        with subprocess.Popen([*DRAGOMAN, "sessions", "--url", url], stderr=subprocess.DEVNULL) as client:
            wait_until(begun.exists)
            terminal.press("\x03")
            terminal.expect("Stopping")
            terminal.press("\n")
            assert terminal.end() == 0
            client.kill()
        assert "Traceback" not in terminal.plain
        assert terminal.plain.count("login?code=") == 1
    finally:
        terminal.close()


def test_enter_at_the_terminal_prints_a_new_link(tmp_path):
    terminal = Terminal([*DRAGOMAN, "serve", "--no-open", "--port", "0", "--cwd", str(tmp_path)], columns=200)
    try:
        terminal.expect("Press Enter for a new one")
        terminal.expect("Ctrl-C stops.")
        terminal.press("\n")
        terminal.expect("login?code=")
        terminal.expect("\n")
        terminal.press("\n")
        terminal.expect("login?code=")
        terminal.expect("\n")
        codes = re.findall(r"login\?code=(\S+)", terminal.plain)
        assert len(codes) == len(set(codes)) == 3
        terminal.press("\x03")
        assert terminal.end() == 0
    finally:
        terminal.close()


def test_public_address_is_in_the_links_and_allowed(tmp_path):
    with serving(tmp_path, "--public-url", "https://agents.example.org/bridge") as served:
        assert served.url.startswith("https://agents.example.org/bridge/login?code=")
        assert served.acp == "https://agents.example.org/bridge/acp"
        assert served.stop() == 0


def test_our_own_agent_is_served_by_default(tmp_path):
    with serving(tmp_path, agent=()) as served, open_socket(served) as connection:
        converse(connection, tmp_path, "hi")


def test_agent_is_named_after_its_command_or_by_option(tmp_path):
    with serving(tmp_path, "--agent-name", "helper") as served:
        config = json.loads(served.ask("GET /config.json", served.bearer).body)
        assert [agent["name"] for agent in config["agents"]] == ["helper"]
        assert served.upgrade(served.bearer, path="/acp/helper").status == 101
        assert served.upgrade(served.bearer, path="/acp/other").status == 404


def test_agents_of_a_file_are_served_by_name(tmp_path):
    command = scripted()
    agents = {name: {"command": command[0], "args": command[1:]} for name in ("one", "two")}
    file = tmp_path / "agents.json"
    file.write_text(json.dumps({"agents": agents}))
    with serving(tmp_path / "home", "--agents-file", str(file), agent=()) as served:
        config = json.loads(served.ask("GET /config.json", served.bearer).body)
        assert [agent["name"] for agent in config["agents"]] == ["one", "two"]
        for name in ("one", "two"):
            with open_socket(served, name) as connection:
                connection.send(INITIALIZE)
                assert answer_to(connection, 1)["protocolVersion"] == 1
        assert served.stop() == 0
    assert f"{served.acp}/two" in served.stderr


# ── stopping ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_stops_agents_and_leaves_complete_journals(tmp_path, number):
    with serving(tmp_path) as served:
        with open_socket(served) as connection:
            session_id = converse(connection, tmp_path, "go")
            below = children_of(served.process.pid)
            assert below
            assert served.stop(number) == 0
        wait_until_gone(below)
    with serving(tmp_path) as again:
        answer = again.ask("POST /acp", "Content-Type: application/json", again.bearer, body=INITIALIZE.encode())
        assert answer.status == 200
        journals = [path for path in (tmp_path / "bridge").rglob("*") if path.is_file()]
        assert any(session_id.encode() in path.read_bytes() for path in journals)
        assert again.stop() == 0
    assert "Traceback" not in served.stderr + again.stderr


def test_stop_does_not_wait_for_a_connected_viewer(tmp_path):
    with serving(tmp_path) as served, open_socket(served) as connection:
        connection.send(INITIALIZE)
        answer_to(connection, 1)
        assert served.stop() == 0


def test_stop_works_if_stdout_is_closed(tmp_path):
    command = [*DRAGOMAN, "serve", "--format", "json", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b"Ctrl-C" not in process.stderr.readline():
        assert process.poll() is None
    process.stdout.close()
    process.stderr.close()
    process.terminate()
    assert process.wait(TIMEOUT_S) == 0


def test_second_bridge_on_the_same_home_is_refused(tmp_path):
    with serving(tmp_path) as served:
        done = dragoman("serve", "--port", "0", env={**os.environ, "DRAGOMAN_HOME": str(tmp_path)})
        assert done.returncode == 1
        assert done.stderr.startswith("dragoman serve: ")
        assert f"process {served.process.pid} on {os.uname().nodename}, at {served.origin}/;" in done.stderr
        assert "Traceback" not in done.stderr
        assert served.ask("GET /config.json", served.bearer).status == 200


def test_home_of_a_killed_bridge_is_free_again(tmp_path):
    with serving(tmp_path) as served:
        served.process.kill()
        served.process.wait(TIMEOUT_S)
    with serving(tmp_path) as again:
        assert again.token == served.token


# ── refused settings ────────────────────────────────────────────────────────────────────────────────


def test_used_port_is_reported_with_a_fix():
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        done = dragoman("serve", "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"port {port} is already in use" in done.stderr
    assert "--port N (0 picks a free one)" in done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_listening_beyond_loopback_without_tls_is_refused(host):
    done = dragoman("serve", "--port", "0", "--host", host)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is reachable from other machines" in done.stderr
    assert "steal the token and run commands as you" in done.stderr
    assert "--insecure-network" in done.stderr


def test_flag_or_tls_allows_listening_beyond_loopback():
    everywhere = resolve("0.0.0.0", 0)
    check_exposure(everywhere, None, insecure=True)
    check_exposure(everywhere, Tls(Path("cert"), Path("key")), insecure=False)
    check_exposure(resolve("localhost", 0), None, insecure=False)
    with pytest.raises(ListenError):
        check_exposure(everywhere, None, insecure=False)


def test_own_names_are_served_on_all_addresses():
    everywhere = resolve("0.0.0.0", 0)
    assert {"localhost", "127.0.0.1", socket.gethostname()} <= set(names_for(everywhere))
    assert link_host(everywhere) == socket.gethostname().lower()
    assert set(names_for(resolve("127.0.0.1", 0))) == {"localhost", "127.0.0.1", "[::1]"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--"], "no command after --"),
        (["--", "no-such-agent"], "there is no command no-such-agent"),
        (
            ["--", "vibe-acp"],
            "on PATH; it is Mistral Vibe; follow its own installation guide, or run: dragoman agents install",
        ),
        (["--", "claude-code-acp", "-x"], "install it: npm install -g @agentclientprotocol/claude-agent-acp"),
        (["--model", "x", "--", "agent"], "for dragoman's own agent"),
        (["--agents-file", "x.json", "--", "agent"], "leave out -- CMD"),
        (["--agents-file", "x.json", "--agent-name", "x"], "--agent-name names a single agent"),
        (["--tls-cert", "x.pem"], "--tls-cert and --tls-key must be used together"),
        (["--tls-cert", "x.pem", "--tls-key", "y.pem"], "cannot be read: No such file"),
        (["--port", "65536"], "expected a port from 0 to 65535, got '65536'"),
        (["--port", "x"], "expected a port from 0 to 65535, got 'x'"),
        (["--idle-timeout", "0"], "expected a number of seconds above 0, got '0'"),
        (["--idle-timeout", "soon"], "expected a number of seconds above 0, got 'soon'"),
        (["--cwd", "/nowhere/at/all"], "is not a directory"),
        (["--allow-origin", "*"], "expected SCHEME://NAME"),
        (["--allow-origin", "null"], "never allowed"),
        (["--allow-host", "*.example"], "expected NAME or NAME:PORT"),
        (["--public-url", "example.org"], "is not a public address"),
        (["--host", "no such host"], "is not a host"),
        (["--host", "nowhere.invalid"], "is unknown; expected a name or an address"),
        (["--toke", "x"], "there is no option '--toke'"),
    ],
)
def test_invalid_command_line_is_refused_with_a_message(arguments, words):
    done = dragoman("serve", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_token_file_readable_by_others_is_refused(tmp_path):
    (tmp_path / "bridge").mkdir()
    token = tmp_path / "bridge" / "token"
    token.write_text("x" * 43)
    token.chmod(0o644)
    done = dragoman("serve", "--port", "0", env={**os.environ, "DRAGOMAN_HOME": str(tmp_path)})
    assert done.returncode == 1
    assert "other users may read or write it" in done.stderr
    assert "x" * 43 not in done.stderr


# ── TLS ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return the files of a certificate for localhost and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    directory = tmp_path_factory.mktemp("tls")
    (directory / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    for name, cover in (("key", serialization.NoEncryption()), ("locked", serialization.BestAvailableEncryption(b"x"))):
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, cover)
        (directory / f"{name}.pem").write_bytes(pem)
    return directory


def ask_tls(served, certificate, line, *headers):
    context = ssl.create_default_context(cafile=certificate / "cert.pem")
    port = served.port
    plain = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
    with context.wrap_socket(plain, server_hostname="localhost") as connection:
        lines = [f"{line} HTTP/1.1", f"Host: localhost:{port}", *headers, "Connection: close", "", ""]
        connection.sendall("\r\n".join(lines).encode())
        return read_answer(connection)


def test_tls_links_are_https_and_the_cookie_is_bound_to_its_host(tmp_path, certificate):
    files = ("--tls-cert", str(certificate / "cert.pem"), "--tls-key", str(certificate / "key.pem"))
    with serving(tmp_path, "--host", "localhost", *files) as served:
        assert served.url.startswith(f"https://localhost:{served.port}/login?code=")
        answer = ask_tls(served, certificate, f"GET /login?{served.url.partition('?')[2]}")
        assert answer.status == 303
        cookie = answer.header("set-cookie")
        assert cookie.startswith(f"__Host-dragoman_{served.port}=")
        assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        own = (f"Cookie: {cookie.partition(';')[0]}", f"Origin: https://localhost:{served.port}")
        assert ask_tls(served, certificate, "POST /logout", *own).status == 204
        plain = own[1].replace("https", "http")
        assert ask_tls(served, certificate, "GET /config.json", own[0], plain).status == 403
        assert served.stop() == 0


@pytest.mark.parametrize("names", [("cert", "locked"), ("key", "cert"), ("cert", "cert")])
def test_invalid_certificate_files_are_refused_without_asking_for_a_password(certificate, names):
    cert, key = (str(certificate / f"{name}.pem") for name in names)
    done = dragoman("serve", "--tls-cert", cert, "--tls-key", key, "--port", "0")
    assert done.returncode == 2
    assert "expected a certificate and its own key" in done.stderr


@pytest.mark.extended
def test_memory_of_large_messages_returns_to_the_system(tmp_path):
    def resident_mb():
        status = Path(f"/proc/{served.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) // 1024

    with serving(tmp_path) as served:
        with open_socket(served) as connection:
            connection.send(INITIALIZE)
            answer_to(connection, 1)
            before = resident_mb()
            for number in range(2, 12):
                connection.send(request(number, "_large", text="x" * 15_000_000))
            unanswered = set(range(2, 12))
            while unanswered:
                unanswered.discard(json.loads(connection.recv(TIMEOUT_S)).get("id"))
        wait_until(lambda: resident_mb() < before + 60)
