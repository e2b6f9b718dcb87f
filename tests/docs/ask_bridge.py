"""`python -m tests.docs.ask_bridge ADDRESS HOST`: sends `initialize` to a bridge and prints the answer."""

import json
import ssl
import sys
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit


def ask(address, host):
    """Send `initialize` with the home's token and this Host header."""
    where = urlsplit(address)
    trusting = {"context": ssl._create_unverified_context()} if where.scheme == "https" else {}  # noqa: SLF001 - the certificate is the page's own
    connection = (HTTPSConnection if trusting else HTTPConnection)(where.hostname, where.port, timeout=60, **trusting)
    token = (Path.home() / ".dragoman" / "bridge" / "token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Host": host}
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    connection.request("POST", "/acp", json.dumps(message), headers)
    return connection.getresponse().read().decode()


if __name__ == "__main__":
    print(ask(*sys.argv[1:]))
