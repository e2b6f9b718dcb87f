"""The token appears only in its file and on the first line of --json."""

import json
import os
from pathlib import Path

import pytest
from websockets.sync.client import connect

from tests.bridge.guard.serving import serving
from tests.bridge.guard.test_gate import INITIALIZE, JSON
from tests.proc.processes import children_of

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="there is no /proc to look at processes by"
)


def family(pid):
    """Return a process and all its descendants."""
    return [pid, *(one for child in children_of(pid) for one in family(child))]


def look(pid, name):
    return Path(f"/proc/{pid}/{name}").read_bytes()


def connect_with_token(served):
    return connect(f"ws://{served.host}/acp", additional_headers={"Authorization": f"Bearer {served.token}"})


def come_in_by_every_way(served):
    """Try every kind of access, valid and invalid, and return the cookie, which is also a secret."""
    token, cookie = served.token, served.log_in()
    own = f"Origin: {served.origin}"
    assert served.ask("GET /config.json", served.bearer).status == 200
    assert served.ask("GET /config.json", f"Cookie: {cookie}").status == 200
    assert served.ask("POST /login", *JSON, body=json.dumps({"token": token}).encode()).status == 204
    assert served.ask("POST /login", *JSON, body=f'{{"token": "{token}", "{token}": 1}}'.encode()).status == 400
    assert served.ask("POST /login", *JSON, body=f'["{token}"'.encode()).status == 400
    assert served.ask(f"GET /acp?token={token}").status == 400
    assert served.ask(f"GET /{token}").status == 401
    assert served.ask(f"GET /{token}", served.bearer).status == 404
    assert served.ask("GET /config.json", served.bearer, host=f"{token}.evil.example").status == 403
    assert served.ask("GET /config.json", served.bearer, f"Origin: http://{token}").status == 403
    assert served.ask("GET /config.json", f"{served.bearer}x").status == 401
    assert served.ask("GET /config.json", f"Authorization: Basic {token}").status == 401
    assert served.ask("POST /acp", *JSON, served.bearer, body=INITIALIZE).status == 200
    assert served.ask("POST /acp", *JSON, served.bearer, body=b"nonsense").status >= 400
    assert served.ask("POST /logout", f"Cookie: {cookie}", own).status == 204
    assert served.upgrade(f"Sec-WebSocket-Protocol: dragoman.token.{token}").status == 400
    with connect(f"ws://{served.host}/acp", subprotocols=["acp", f"dragoman.token.{token}"]) as socket:
        assert socket.subprotocol == "acp"
        socket.send(INITIALIZE.decode())
        assert "result" in json.loads(socket.recv(30))
    return cookie


def test_token_and_cookie_are_not_leaked_anywhere(tmp_path):
    with serving(tmp_path, DRAGOMAN_LOG="debug", PYTHONASYNCIODEBUG="1") as served:
        cookie = come_in_by_every_way(served).partition("=")[2]
        code = served.url.partition("code=")[2]
        processes = family(served.process.pid)
        assert len(processes) > 1
        told = [look(pid, name).decode("latin-1") for pid in processes for name in ("cmdline", "environ")]
        assert served.stop() == 0
        rest = served.process.stdout.read()
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "token"]
    said = "\n".join([*told, rest, served.stderr, *(path.read_bytes().decode("latin-1") for path in files)])
    assert "refused" in served.stderr
    for secret in (served.token, cookie, code):
        assert secret not in said


def test_no_answer_holds_the_token(tmp_path):
    with serving(tmp_path) as served:
        for line in ("GET /", "GET /config.json", "GET /acp", f"GET /{served.token}x", "GET /login?code=x"):
            assert served.token not in str(served.ask(line, served.bearer))


def test_agents_inherit_no_descriptor_of_the_bridge(tmp_path):
    with serving(tmp_path) as served, connect_with_token(served) as socket:
        socket.send(INITIALIZE.decode())
        assert "result" in json.loads(socket.recv(30))
        agents = [pid for pid in family(served.process.pid)[1:] if b"dragoman.testing" in look(pid, "cmdline")]
        assert agents
        for pid in agents:
            links = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
            assert not [link for link in links if "token" in link or "bridge" in link]
