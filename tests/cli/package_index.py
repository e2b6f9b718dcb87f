"""An index of packages on this machine, for npm and pip: small agents in it, and counts of what was fetched."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PYTHON_AGENT = """
import json, os, sys
ANSWERS = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}, "session/new": {"sessionId": "s"},
           "session/prompt": {"stopReason": "end_turn"}}
def main():
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "session/prompt":
            text = {"type": "text", "text": " ".join(["wheel", os.environ.get("MARK", ""), *sys.argv[1:]])}
            update = {"sessionUpdate": "agent_message_chunk", "content": text}
            tell({"method": "session/update", "params": {"sessionId": "s", "update": update}})
        if "id" in message:
            tell({"id": message["id"], "result": ANSWERS.get(message["method"], {})})
def tell(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
"""

NODE_AGENT = """#!/usr/bin/env node
const answers = {initialize: {protocolVersion: 1, agentCapabilities: {}}, "session/new": {sessionId: "s"},
  "session/prompt": {stopReason: "end_turn"}};
const tell = (message) => console.log(JSON.stringify({jsonrpc: "2.0", ...message}));
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  const {id, method} = JSON.parse(line);
  if (method === "session/prompt") {
    const update = {sessionUpdate: "agent_message_chunk", content: {type: "text", text: "node"}};
    tell({method: "session/update", params: {sessionId: "s", update}});
  }
  if (id !== undefined) tell({id, result: answers[method] ?? {}});
});
"""


class PackageIndex:
    """Serves what it is given; a path that is held is not answered before `release`."""

    def __init__(self):
        self.files = {}
        self.held = set()
        self.asked_for_held = threading.Event()
        self.release = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.release.set()
        self._server.shutdown()
        self._server.server_close()

    def environment(self, folder):
        """Return the variables that have npm and pip ask this index alone."""
        return {
            "npm_config_registry": f"{self.url}/npm/",
            "npm_config_fetch_retries": "0",
            "npm_config_cache": str(folder / "npm-cache"),
            "PIP_INDEX_URL": f"{self.url}/simple/",
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "PIP_NO_CACHE_DIR": "1",
        }

    def add_npm(self, name, version="1.2.3", *, script=None, integrity=None):
        """Publish an agent; `script` runs while it is installed."""
        about = {"name": name, "version": version, "bin": {name: "agent.js"}}
        if script:
            about["scripts"] = {"postinstall": script}
        data = _tar({"package/package.json": json.dumps(about), "package/agent.js": NODE_AGENT})
        integrity = integrity or "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        tarball = f"/npm/{name}/-/{name}-{version}.tgz"
        published = {**about, "hasInstallScript": bool(script)}
        published["dist"] = {"tarball": self.url + tarball, "integrity": integrity}
        versions = {"name": name, "dist-tags": {"latest": version}, "versions": {version: published}}
        self.files[f"/npm/{name}"] = ("application/json", json.dumps(versions).encode())
        self.files[tarball] = ("application/octet-stream", data)
        return integrity, tarball

    def add_wheel(self, name, version="1.2.3"):
        """Publish an agent with a command of another name than the package."""
        data = _wheel(name, version)
        digest = hashlib.sha256(data).hexdigest()
        file = f"{name}-{version}-py3-none-any.whl"
        page = f'<a href="/wheels/{file}#sha256={digest}">{file}</a>'
        self.files[f"/simple/{name.replace('_', '-')}/"] = ("text/html", page.encode())
        self.files[f"/wheels/{file}"] = ("application/octet-stream", data)
        return digest

    def _handler(index):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path in index.held:
                    index.asked_for_held.set()
                    index.release.wait()
                kind, data = index.files.get(self.path, ("text/plain", None))
                self.send_response(404 if data is None else 200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *_):
                pass

        return Handler


def _tar(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def _wheel(name, version):
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": PYTHON_AGENT,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[console_scripts]\n{name}-acp = {name}:main\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{each},,\n" for each in (*files, f"{about}/RECORD"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return packed.getvalue()
