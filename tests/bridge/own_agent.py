"""Our own agent on the bridge, for the tests of its parts."""

import os
import signal
import sys

from dragoman.bridge import AgentSpec

SCRIPT = """
- - text: "One. "
- - tool: {name: write_file, arguments: {path: notes.txt, content: hello}}
- - text: "Two. "
"""


def own_agent(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    command = (sys.executable, "-m", "dragoman", "agent", "--model", f"script:{script}")
    return AgentSpec("own", command, env={"DRAGOMAN_HOME": str(tmp_path / "agent-home")})


def agent_pids(served):
    """Return the ids of the agent's processes from the system, because the bridge does not expose them."""
    mine = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    found = []
    for pid in mine:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{pid}/environ", "rb") as file:
                environment = file.read()
        except OSError:
            continue
        home = str(served.spec.env["DRAGOMAN_HOME"]).encode()
        if b"agent" in words and b"DRAGOMAN_HOME=" + home in environment.split(b"\0"):
            found.append(pid)
    return found


async def plain_prompt(viewer, session, text):
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return await viewer.answer(viewer.request("session/prompt", params))


async def kill_agent(served, viewer):
    """Kill the agent, and wait until the viewer is notified."""
    for pid in agent_pids(served):
        os.kill(pid, signal.SIGKILL)
    await viewer.until(
        lambda message: message.get("method") == "_dragoman/agent" and message["params"]["state"] == "crashed"
    )
