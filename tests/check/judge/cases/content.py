from tests.check.judge.cases.case import Case
from tests.check.judge.talking import chunk, prompt, session, update

OPEN = [*session(), prompt()]
ABLE = session({"promptCapabilities": {"image": True}})


def image(data: str) -> dict[str, object]:
    return {"type": "image", "data": data, "mimeType": "image/png"}


def link(uri: str) -> dict[str, object]:
    return {"type": "resource_link", "uri": uri, "name": "a"}


def say(content: object) -> object:
    return update("agent_message_chunk", content=content)


CASES = [
    Case("ACP-CONTENT-001", [*OPEN, say({"type": "text", "content": "a"})], [*OPEN, chunk()]),
    Case("ACP-CONTENT-002", [*OPEN, say(image("<png>"))], [*OPEN, say(image("aGk="))]),
    Case("ACP-CONTENT-003", [*OPEN, say(link("/work/a"))], [*OPEN, say(link("file:///work/a"))]),
    Case("ACP-CONTENT-101", [*session(), prompt(prompt=[{"type": "text"}])], [*session(), prompt()]),
    Case("ACP-CONTENT-102", [*ABLE, prompt(prompt=[image("<png>")])], [*ABLE, prompt(prompt=[image("aGk=")])]),
    Case("ACP-CONTENT-103", [*ABLE, prompt(prompt=[link("/work/a")])], [*ABLE, prompt(prompt=[link("file:///a")])]),
]
