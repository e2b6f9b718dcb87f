"""An MCP server that wants authorisation, with its own server for authorisations, in a thread of the test.

`tokens` are the tokens given so far; `denies` has the person refuse. Access tokens live for an hour, and `expire`
makes the newest one useless, so that only a refresh helps.
"""

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server, path = self.server, urlsplit(self.path)
        base = server.address
        match path.path:
            case "/.well-known/oauth-protected-resource/mcp":
                self._reply(200, {"resource": f"{base}/mcp", "authorization_servers": [base]})
            case "/.well-known/oauth-authorization-server":
                self._reply(200, server.metadata())
            case "/authorize":
                asked = {name: values[0] for name, values in parse_qs(path.query).items()}
                server.asked.append(asked)
                back = {"error": "access_denied"} if server.denies else {"code": "a-code"}
                self._reply(302, {}, f"{asked['redirect_uri']}?{urlencode({**back, 'state': asked['state']})}")
            case _:
                self._reply(404, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match self.path:
            case "/register":
                self._reply(201, {**json.loads(body), "client_id": "registered"})
            case "/token":
                self._give_token({name: values[0] for name, values in parse_qs(body.decode()).items()})
            case _:
                self._answer(json.loads(body))

    def _give_token(self, form):
        server = self.server
        if form["grant_type"] == "authorization_code":
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            assert challenge == server.asked[-1]["code_challenge"]
        server.grants.append(form["grant_type"])
        server.token = f"secret-token-{len(server.grants)}"
        self._reply(200, {"access_token": server.token, "token_type": "Bearer", "refresh_token": "again"})

    def _answer(self, message):
        if self.server.token is None or self.headers.get("Authorization") != f"Bearer {self.server.token}":
            self._reply(401, {}, challenge=True)
            return
        results = {
            "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": f"seen {self.server.token}"}]},
        }
        result = {"resultType": "complete", **results[message["method"]]}
        self._reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _reply(self, status, body, location=None, challenge=False):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if location:
            self.send_header("Location", location)
        if challenge:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        """Say nothing."""


class AuthorisingServer(ThreadingHTTPServer):
    """Remembers what it was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.token, self.asked, self.grants, self.denies = None, [], [], False

    def metadata(self):
        """Return the metadata of the server for authorisations."""
        endpoints = {f"{name}_endpoint": f"{self.address}/{path}" for name, path in ENDPOINTS.items()}
        return {
            "issuer": self.address,
            **endpoints,
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }


ENDPOINTS = {"authorization": "authorize", "token": "token", "registration": "register"}


@contextmanager
def authorising():
    """Run the server."""
    server = AuthorisingServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
