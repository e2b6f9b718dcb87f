"""An agent on the experimental version 2 API of the official Python SDK, with the turns of typescript_v2_agent.mjs."""

import asyncio
import uuid

from acp.experimental import v2

CALL = {"toolCallId": "call-1", "title": "Edit notes.txt", "kind": "edit", "status": "pending"}
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


class Session:
    def __init__(self):
        self.history = []
        self.cancelled = asyncio.Event()


class Agent:
    def __init__(self):
        self.sessions = {}
        self.work = set()

    def on_connect(self, connection):
        self.client = connection

    async def initialize(self, protocol_version, **_):
        info = {"name": "python-v2-agent", "version": "1.0.0"}
        return v2.schema.InitializeResponse(protocolVersion=2, capabilities={"session": {}}, info=info)

    async def new_session(self, cwd, **_):
        session_id = str(uuid.uuid4())
        self.sessions[session_id] = Session()
        return v2.schema.NewSessionResponse(sessionId=session_id)

    async def list_sessions(self, **_):
        return v2.schema.ListSessionsResponse(sessions=[{"sessionId": each, "cwd": "/"} for each in self.sessions])

    async def resume_session(self, session_id, cwd, replay_from=None, **_):
        for update in self.sessions[session_id].history if replay_from else []:
            await self.update(session_id, update)
        await self.update(session_id, {"sessionUpdate": "state_update", "state": "idle"})
        return v2.schema.ResumeSessionResponse()

    async def close_session(self, session_id, **_):
        return v2.schema.CloseSessionResponse()

    async def cancel_session(self, session_id, **_):
        self.sessions[session_id].cancelled.set()

    async def prompt(self, session_id, prompt, **_):
        message_id = str(uuid.uuid4())
        content = [each.model_dump(mode="json", by_alias=True, exclude_unset=True) for each in prompt]
        await self.send(session_id, {"sessionUpdate": "user_message", "messageId": message_id, "content": content})
        task = asyncio.create_task(self.run(session_id, prompt[0].text))
        self.work.add(task)
        task.add_done_callback(self.work.discard)
        return v2.schema.PromptResponse(messageId=message_id)

    async def run(self, session_id, name):
        session = self.sessions[session_id]
        session.cancelled.clear()
        await self.update(session_id, {"sessionUpdate": "state_update", "state": "running"})
        await getattr(self, f"turn_{name}")(session_id)
        reason = "cancelled" if session.cancelled.is_set() else "end_turn"
        await self.update(session_id, {"sessionUpdate": "state_update", "state": "idle", "stopReason": reason})

    async def turn_hello(self, session_id):
        message_id = str(uuid.uuid4())
        for text in ("one ", "two ", "three"):
            await self.say(session_id, text, message_id)

    async def turn_wait(self, session_id):
        await self.say(session_id, "waiting")
        await self.sessions[session_id].cancelled.wait()

    async def turn_permission(self, session_id):
        await self.send(session_id, {"sessionUpdate": "tool_call_update", **CALL})
        answer = await self.client.request_permission(
            session_id=session_id,
            title="May I edit notes.txt?",
            subject={"type": "tool_call", "toolCall": CALL},
            options=OPTIONS,
        )
        chosen = getattr(answer.outcome, "option_id", None)
        status = "completed" if chosen == "yes" else "failed"
        await self.send(session_id, {"sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": status})
        await self.say(session_id, f"outcome: selected {chosen}" if chosen else "outcome: cancelled")

    async def say(self, session_id, text, message_id=None):
        content = {"type": "text", "text": text}
        chunk = {
            "sessionUpdate": "agent_message_chunk",
            "messageId": message_id or str(uuid.uuid4()),
            "content": content,
        }
        await self.send(session_id, chunk)

    async def send(self, session_id, update):
        self.sessions[session_id].history.append(update)
        await self.update(session_id, update)

    async def update(self, session_id, update):
        made = v2.schema.UpdateSessionNotification(sessionId=session_id, update=update)
        await self.client.session_update(session_id=session_id, update=made.update)


asyncio.run(v2.run_agent(Agent()))
