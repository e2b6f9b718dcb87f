from tests.check.judge.cases.case import Case
from tests.check.judge.talking import ask, prompt, refuse, respond, session

FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
OPEN = [*session(client=FILES), prompt()]
MEAN = [*session(), prompt()]


def read(path: str = "/work/p/a", id_: int = 70, **params: object) -> object:
    return ask(id_, "fs/read_text_file", {"sessionId": "s1", "path": path} | params, "agent")


def write(path: str = "/work/p/a", id_: int = 71) -> object:
    return ask(id_, "fs/write_text_file", {"sessionId": "s1", "path": path, "content": "x"}, "agent")


def content(text: str, id_: int = 70) -> object:
    return respond(id_, {"content": text}, "client")


WRITTEN = [*OPEN, write(), respond(71, None, "client"), read()]

WHOLE = [*OPEN, read(), content("a\nb\nc\n")]

CASES = [
    Case("ACP-FS-001", [*MEAN, read()], [*OPEN, read()]),
    Case("ACP-FS-002", [*MEAN, write()], [*OPEN, write()]),
    Case("ACP-FS-003", [*OPEN, read("a.txt")], [*OPEN, read()]),
    Case("ACP-FS-004", [*OPEN, read(line=0)], [*OPEN, read(line=1)]),
    Case("ACP-FS-005", [*OPEN, ask(70, "fs/read_text_file", {"sessionId": "s1"}, "agent")], [*OPEN, read()]),
    Case("ACP-FS-101", [*WRITTEN, refuse(70, -32002, "client")], [*WRITTEN, content("x")]),
    Case("ACP-FS-101", [*OPEN, write(), refuse(71, -32002, "client")], [*WRITTEN, content("x")]),
    Case("ACP-FS-102", [*OPEN, read(limit=1), content("a\nb\n")], [*OPEN, read(limit=2), content("a\nb\n")]),
    Case("ACP-FS-101", [*WRITTEN, content("")], [*WRITTEN, content("x\n")]),
    *(
        Case("ACP-FS-102", [*WHOLE, read(id_=72, **asked), content(wrong, 72)], [*WHOLE, read(id_=72, **asked), right])
        for asked, wrong, right in (
            ({"line": 2, "limit": 1}, "c\n", content("b", 72)),
            ({"line": 2, "limit": 1}, "a\n", content("b\n", 72)),
            ({"line": 3}, "a\nb\nc\n", content("c", 72)),
        )
    ),
    Case("ACP-FS-103", [*OPEN, read(), respond(70, {"text": "a"}, "client")], [*OPEN, read(), content("a")]),
]
