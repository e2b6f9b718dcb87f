"""The commands in the container files of deploy/, without an engine. `make containers` runs the files."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.bridge.guard.serving import send_raw, serving
from tests.ports import free_port

DEPLOY = Path(__file__).parents[2] / "deploy"


def command_of_the_image():
    [command] = re.findall(r"^CMD (.*)", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    return json.loads(command)


def command_of_compose():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    return [
        re.sub(r"\$\{DRAGOMAN_NAME:[^}]*\}", "agents.example.lan", word) for word in services["dragoman"]["command"]
    ]


@pytest.mark.parametrize(
    ("command", "address"),
    [(command_of_the_image, "http://127.0.0.1:8421/"), (command_of_compose, "https://agents.example.lan/")],
)
def test_container_command_serves_the_public_url(command, address, tmp_path):
    serve, *options = command()
    assert serve == "serve"
    port = free_port()
    with serving(tmp_path, *options, port=port) as served:
        assert served.url.startswith(f"{address}login?code=")
        request = f"GET / HTTP/1.1\r\nHost: {address.split('/')[2]}\r\nConnection: close\r\n\r\n"
        assert send_raw(port, request.encode()).status == 200


def test_image_copies_existing_files():
    root = DEPLOY.parent
    kept = set(re.findall(r"^!(\S+)", (root / ".dockerignore").read_text(), re.MULTILINE))
    lines = re.findall(r"^COPY (?!--from)(.*)", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    copied = {name for line in lines for name in line.split()[:-1]}
    assert copied == kept
    assert all((root / name).exists() for name in copied)
