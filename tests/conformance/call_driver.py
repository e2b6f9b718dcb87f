"""The client that the official suite runs, by commands: `python -m tests.conformance.call_driver URL`.

`dragoman mcp --format json` lists the tools, and `dragoman mcp call` calls each, or what the suite names. Nobody is
there to answer forms, and nobody to log in, so scenarios that want that are not run in this way.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance.driver import arguments_for


class Listed:
    """A tool as the command lists it."""

    def __init__(self, row):
        self.name = row["name"]
        self.parameters = row["parameters"]


def dragoman(*arguments, cwd):
    """Run the command, and return what it printed; None when it failed.

    Some servers of the suite offer what they do not have, which is no failure of ours.
    """
    command = [sys.executable, "-m", "dragoman", "mcp", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    print(done.stderr, end="", file=sys.stderr)
    if "Method not found" in done.stderr:
        return {}
    return json.loads(done.stdout) if done.returncode == 0 else None


def main(url):
    """List the tools and call them; 1 when one of the commands failed."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with TemporaryDirectory() as directory:
        Path(directory, "mcp.json").write_text(json.dumps({"mcpServers": {"suite": {"url": url}}}))
        listed = dragoman("--mcp", "mcp.json", "--format", "json", cwd=directory)
        if listed is None:
            return 1
        tools = [Listed(row) for row in listed["servers"][0]["tools"]]
        calls = [(call["name"], call.get("arguments", {})) for call in context.get("toolCalls", [])]
        calls = calls or [(tool.name, arguments_for(tool.parameters, tools)) for tool in tools]
        done = [
            dragoman("call", "--format", "json", "--url", url, name, json.dumps(arguments), cwd=directory)
            for name, arguments in calls
        ]
        return 1 if None in done else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1]))
