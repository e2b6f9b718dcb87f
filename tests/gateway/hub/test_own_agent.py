"""Our own agent, and the scripted one, behind the gateway."""

import os
import signal
import sys

from dragoman.gateway import AgentSpec
from dragoman.testing import dump_turns, steps
from tests.gateway.hub.seeing import eventually, hub_of, seer

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


def agent_pids(hub):
    """Ask the system for the agent's process, which the gateway does not tell."""
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
        home = str(hub.spec.env["DRAGOMAN_HOME"]).encode()
        if b"agent" in words and b"DRAGOMAN_HOME=" + home in environment.split(b"\0"):
            found.append(pid)
    return found


async def plain_prompt(viewer, session, text):
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return await viewer.answer(viewer.request("session/prompt", params))


async def test_our_agent_goes_on_after_it_was_killed_and_after_the_gateway_was_stopped(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    async with hub_of(tmp_path / "home", own_agent(tmp_path), backoff_min_s=0.01) as hub:
        one = await seer(hub, marked=True)
        session = await one.new(str(work))
        assert (await plain_prompt(one, session, "begin"))["result"]["stopReason"] == "end_turn"
        for pid in agent_pids(hub):
            os.kill(pid, signal.SIGKILL)
        await one.until(
            lambda message: message.get("method") == "_dragoman/agent" and message["params"]["state"] == "crashed"
        )
        assert (await plain_prompt(one, session, "a script begins anew"))["result"]["stopReason"] == "end_turn"
        prompt = one.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "write it"}]})
        asked = await one.asked()
        allowed = next(option for option in asked["params"]["options"] if option["kind"] == "allow_once")
        one.choose(asked, allowed["optionId"])
        await one.answer(prompt)
        assert (work / "notes.txt").read_text() == "hello"
        said = "".join(one.said(session))
    async with hub_of(tmp_path / "home", own_agent(tmp_path)) as hub:
        two = await seer(hub)
        listed = (await two.ask("session/list", {"cwd": str(work)}))["result"]["sessions"]
        assert [entry["sessionId"] for entry in listed] == [session]
        answer = await two.load(session, cwd=str(work))
        assert "configOptions" in answer["result"]
        assert "".join(two.said(session)) == said


async def test_the_scripted_agent_is_served_to_several_viewers(tmp_path):
    turns = [[steps.Say("Hello"), steps.AskPermission(), steps.Say("Goodbye")], [steps.WaitForCancel()]]
    spec = AgentSpec("scripted", (sys.executable, "-m", "dragoman.testing", dump_turns(turns)))
    async with hub_of(tmp_path, spec) as hub:
        one, two = await seer(hub), await seer(hub)
        session = await one.new()
        await two.load(session)
        prompt = one.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]})
        two.choose(await two.asked())
        assert (await one.answer(prompt))["result"] == {"stopReason": "end_turn"}
        assert one.said() == ["Hello", "outcome: selected yes", "Goodbye"]
        prompt = one.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "wait"}]})
        await eventually(lambda: hub.sessions[session].turns == 1)
        two.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert (await one.answer(prompt))["result"] == {"stopReason": "cancelled"}
