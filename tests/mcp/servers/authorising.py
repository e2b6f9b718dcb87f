"""An MCP server that requires authorisation, with its own authorisation server, in a thread of the test.

As a program (`python -m tests.mcp.servers.authorising`) it prints its URL.

`denies` makes the user refuse, and `shows_page` asks the user on a page with two links. Setting another `token`
invalidates the current one, so that only a refresh helps. Each refresh token works once, and `refuses_refresh` is the
status that refuses all of them. `wanted_scope` is required for tool calls. `resource` and `issuer` replace members of
the metadata of the resource and of the authorisation server. `challenge` replaces the challenge of a refusal.
"""

import base64
import hashlib
import json
import threading
from contextlib import contextmanager, suppress
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server, path = self.server, urlsplit(self.path)
        base = server.address
        match path.path:
            case "/.well-known/oauth-protected-resource/mcp":
                self._reply(200, {"resource": f"{base}/mcp", "authorization_servers": [base], **server.resource})
            case "/.well-known/oauth-authorization-server":
                self._reply(200, server.metadata())
            case "/authorize":
                asked = {name: values[0] for name, values in parse_qs(path.query).items()}
                server.asked.append(asked)
                assert asked["redirect_uri"] in server.clients[asked["client_id"]]
                back = {"error": "access_denied"} if server.denies else {"code": "a-code"}
                if server.shows_page:
                    self._show_page(asked)
                else:
                    self._reply(302, {}, redirect_address(asked, back))
            case _:
                self._reply(404, {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match self.path:
            case "/register":
                client, client_id = json.loads(body), f"client-{len(self.server.clients)}"
                self.server.clients[client_id] = client["redirect_uris"]
                self._reply(201, {**client, "client_id": client_id})
            case "/token":
                self._issue_token({name: values[0] for name, values in parse_qs(body.decode()).items()})
            case _:
                self._answer(json.loads(body))

    def _show_page(self, asked):
        choices = {"Agree": {"code": "a-code"}, "Refuse": {"error": "access_denied"}}
        links = [
            f'<p><a href="{escape(redirect_address(asked, back))}">{name}</a></p>' for name, back in choices.items()
        ]
        page = f"<!doctype html><title>Consent</title><h1>May Dragoman use it?</h1>{''.join(links)}".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def _issue_token(self, form):
        server = self.server
        with server.lock:
            server.grants.append(form["grant_type"])
            if form["grant_type"] == "authorization_code":
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                assert challenge == server.asked[-1]["code_challenge"]
                server.scope = server.asked[-1].get("scope", "")
            elif server.refuses_refresh or form["refresh_token"] != server.refresh_token:
                self._reply(server.refuses_refresh or 400, {"error": "invalid_grant"})
                return
            count = len(server.grants)
            server.token, server.refresh_token = f"secret-token-{count}", f"again-{count}"
            given = {"access_token": server.token, "token_type": "Bearer", "refresh_token": server.refresh_token}
            self._reply(200, {**given, "expires_in": 3600})

    def _answer(self, message):
        if self.server.token is None or self.headers.get("Authorization") != f"Bearer {self.server.token}":
            self._reply(401, {}, challenge=self.server.challenge)
            return
        wanted = self.server.wanted_scope
        if message["method"] == "tools/call" and wanted and wanted not in self.server.scope:
            self._reply(403, {}, challenge=f'Bearer error="insufficient_scope", scope="{wanted}"')
            return
        results = {
            "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": f"seen {self.server.token}"}]},
        }
        result = {"resultType": "complete", **results[message["method"]]}
        self._reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _reply(self, status, body, location=None, challenge=None):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if location:
            self.send_header("Location", location)
        if challenge:
            self.send_header("WWW-Authenticate", challenge)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        """Log nothing."""


def redirect_address(asked, back):
    """Return the redirect address of the browser."""
    return f"{asked['redirect_uri']}?{urlencode({**back, 'state': asked['state']})}"


class AuthorisingServer(ThreadingHTTPServer):
    """Records the requests that it receives."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.token, self.refresh_token, self.scope = None, None, ""
        self.asked, self.grants, self.clients = [], [], {}
        self.denies, self.shows_page, self.refuses_refresh, self.wanted_scope = False, False, None, None
        self.resource, self.issuer, self.challenge = {}, {}, "Bearer"
        self.lock = threading.Lock()

    def metadata(self):
        """Return the metadata of the authorisation server."""
        endpoints = {f"{name}_endpoint": f"{self.address}/{path}" for name, path in ENDPOINTS.items()}
        return {
            "issuer": self.address,
            **endpoints,
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            **self.issuer,
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


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        started = AuthorisingServer()
        print(started.address, flush=True)
        started.serve_forever()
