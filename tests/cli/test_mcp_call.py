"""`dragoman mcp call`, `login` and `logout`."""

import json
import os
import subprocess
import sys

import httpx2
import pytest

from dragoman.cli import main as run_command
from tests.mcp.servers.authorising import authorising
from tests.mcp.servers.commands import scripted, scripted_http


def main(*arguments):
    """Run the command in this process."""
    return run_command(["mcp", *map(str, arguments)])


@pytest.fixture
def servers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, *args = scripted(content_tools=True)
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": {"one": {"command": command, "args": args}}}))
    return file


def test_tool_is_called_and_its_text_printed(servers, capsys):
    assert main("call", "--mcp", servers, "one", "echo", '{"text": "hello"}') == 0
    assert "hello" in capsys.readouterr().out


def test_whole_result_is_available_as_json(servers, capsys):
    assert main("call", "--mcp", servers, "--format", "json", "one", "structured") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["structured"] == {"degrees": 21}
    assert result["failed"] is False


def test_failing_tool_exits_with_1(servers, capsys):
    assert main("call", "--mcp", servers, "one", "error") == 1
    assert main("call", "--mcp", servers, "one", "nowhere") == 1
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["two", "echo"], "no MCP server here is named two; expected one of: one"),
        (["one"], "expected SERVER TOOL"),
        (["one", "echo", "[]"], "must be a JSON object"),
        (["one", "echo", "{}", "{}"], "extra arguments"),
        (["--header", "A=b", "one", "echo"], "need --server-url"),
    ],
)
def test_bad_input_is_reported(servers, capsys, arguments, words):
    try:
        code = main("call", "--mcp", servers, *arguments)
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert words in capsys.readouterr().err


def test_server_without_a_file_is_named_by_its_url(servers, capsys):
    with scripted_http(authorization="Bearer mine") as address:
        options = ["call", "--server-url", f"{address}/mcp"]
        assert main(*options, "--header", "Authorization=Bearer mine", "echo", '{"text": "hi"}') == 0
        assert "hi" in capsys.readouterr().out
        assert main(*options, "echo") == 1


def test_user_logs_in_and_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    with authorising() as oauth:
        command = [sys.executable, "-m", "dragoman", "mcp"]
        url = ["--server-url", f"{oauth.address}/mcp"]
        with subprocess.Popen([*command, "login", *url], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            page = next(line for line in map(bytes.strip, process.stderr) if line.startswith(b"http"))
            answer = httpx2.get(page.decode(), follow_redirects=True)
            assert "You can close this page" in answer.text
            out, _ = process.communicate(timeout=30)
            assert b"Logged in" in out
        looked = subprocess.run([*command, "call", *url, "look"], capture_output=True, check=True)
        assert looked.stdout.startswith(b"seen ")
        subprocess.run([*command, "logout", *url], check=True, capture_output=True)
        again = subprocess.run([*command, "call", *url, "look"], capture_output=True, check=False)
        assert again.returncode == 1
        assert f"dragoman mcp login {' '.join(url)}`".encode() in again.stderr


def test_login_without_the_extra_names_the_install_command(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    with authorising() as oauth:
        without = "import sys; sys.modules['mcp'] = None; from dragoman.cli import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", without, "mcp", "login", "--server-url", f"{oauth.address}/mcp"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "the library for that is not installed; install it with: " in ended.stderr
    assert "[oauth]" in ended.stderr
    assert oauth.clients == {}


def test_login_does_not_wait_for_a_browser_in_its_terminal(tmp_path, monkeypatch):
    visit = tmp_path / "visit"
    follow = "httpx2.get(sys.argv[1], follow_redirects=True, timeout=None)"
    visit.write_text(f"#!{sys.executable}\nimport sys, httpx2\n{follow}\n")
    visit.chmod(0o755)
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BROWSER", f"{visit} %s")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("CI", raising=False)
    ours, theirs = os.openpty()
    with authorising() as oauth, open(ours, "rb"), open(theirs, "wb") as terminal:
        command = [sys.executable, "-m", "dragoman", "mcp", "login", "--server-url", f"{oauth.address}/mcp"]
        ended = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, timeout=60, check=True)
    assert b"Logged in" in ended.stdout
