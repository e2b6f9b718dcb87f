"""`python -m tests.docs.provider PORT`: a fake model provider that answers `Hello.` in several formats."""

import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.assistant.models.loopback import Anthropic, Chat, Responses

_WIRES = {wire.path: wire for wire in (Anthropic(), Chat(), Responses())}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in _WIRES[self.path.partition("?")[0]].reply(("text", "Hello.")).events:
            self.wfile.write(event)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler)
    print("ready", flush=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()
