"""The agent's access to the files in a session's directories."""

import asyncio
import json
import os

import pytest

from dragoman.client.permission.action import WriteAction
from dragoman.client.permission.policy import ReadGuard, allow_all, allow_reads, ask_user, deny_all, rules
from dragoman.client.services import files
from dragoman.client.services.files import FileService
from dragoman.errors import ErrorCode
from dragoman.files import Boundary
from dragoman.protocol import v1
from tests.client.driving import END, read, session_with, text
from tests.client.policies import Asker, only
from tests.commands import raw
from tests.errors import refused_with


class Ground:
    def __init__(self, tmp_path):
        self.root, self.second, self.outside = (tmp_path / name for name in ("project", "second", "outside"))
        for directory in (self.root, self.second, self.outside):
            directory.mkdir()
        (self.outside / "secret").write_text("secret\n")
        self.boundary = Boundary([str(self.root), str(self.second)])

    def service(self, policy):
        self.asker = Asker(policy)
        guard = policy if isinstance(policy, ReadGuard) else None
        return FileService(only("s", self.boundary), self.asker, guard)

    async def read(self, path, policy=None, **more):
        params = v1.ReadTextFileRequest(session_id="s", path=str(path), **more)
        return (await self.service(policy or deny_all()).read(params)).content

    async def write(self, path, content="new\n", policy=None):
        params = v1.WriteTextFileRequest(session_id="s", path=str(path), content=content)
        await self.service(policy or allow_all()).write(params)


@pytest.fixture
def ground(tmp_path):
    ground = Ground(tmp_path)
    yield ground
    assert sorted(os.listdir(ground.outside)) == ["secret"]
    assert (ground.outside / "secret").read_text() == "secret\n"


async def test_file_is_read_with_its_line_ends(ground):
    (ground.root / "a").write_bytes("ä\r\nb\n\nc".encode())
    assert await ground.read(ground.root / "a") == "ä\r\nb\n\nc"
    (ground.second / "b").write_text("second\n")
    assert await ground.read(ground.second / "b") == "second\n"


@pytest.mark.parametrize(
    ("line", "limit", "content"),
    [
        (1, None, "1\n2\n3"),
        (2, None, "2\n3"),
        (2, 1, "2\n"),
        (None, 2, "1\n2\n"),
        (3, 10, "3"),
        (4, 1, ""),
        (4_000_000_000, None, ""),
        (0, 1, "1\n"),
        (1, 0, ""),
    ],
)
async def test_part_of_a_file_is_read_by_line_and_limit(ground, line, limit, content):
    (ground.root / "a").write_text("1\n2\n3")
    assert await ground.read(ground.root / "a", line=line, limit=limit) == content


async def test_lines_end_with_newlines_only(ground):
    (ground.root / "a").write_text("a\x0cb\u2028c\r\nd\n")
    assert await ground.read(ground.root / "a", line=2) == "d\n"


async def test_part_of_a_too_large_file_can_be_read(ground, monkeypatch):
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 100)
    (ground.root / "a").write_text("x" * 100_000 + "\nlast\n")
    assert await ground.read(ground.root / "a", line=2) == "last\n"
    assert "the limit of 100" in await refused_with(ErrorCode.INVALID_PARAMS, ground.read(ground.root / "a"))
    assert "the limit of 100" in await refused_with(ErrorCode.INVALID_PARAMS, ground.read(ground.root / "a", limit=1))


async def test_a_missing_file_is_not_found(ground):
    problem = await refused_with(ErrorCode.RESOURCE_NOT_FOUND, ground.read(ground.root / "gone"))
    assert "gone" in problem
    assert "does not exist" in problem


async def test_binary_file_is_refused_with_a_reason(ground):
    (ground.root / "binary").write_bytes(b"\0\1")
    os.mkfifo(ground.root / "fifo")
    assert "not UTF-8" in await refused_with(ErrorCode.INVALID_PARAMS, ground.read(ground.root / "binary"))
    assert "directory" in await refused_with(ErrorCode.INVALID_PARAMS, ground.read(ground.root))
    assert "fifo" in await refused_with(ErrorCode.INVALID_PARAMS, ground.read(ground.root / "fifo"))


@pytest.fixture
def traps(ground, monkeypatch):
    (ground.root / "link").symlink_to(ground.outside / "secret")
    (ground.root / "new").symlink_to(ground.outside / "new")
    (ground.root / "directory").symlink_to(ground.outside)
    (ground.root / "proc").symlink_to("/proc/self/root")
    monkeypatch.chdir(ground.root)
    return ground


OUTWARD = [
    "link",
    "new",
    "directory/secret",
    "directory/new",
    "../outside/secret",
    "x/../../outside/secret",
    "proc/etc/passwd",
]


@pytest.mark.parametrize("path", OUTWARD)
async def test_no_path_escapes_the_directories(traps, path):
    await refused_with(ErrorCode.INVALID_PARAMS, traps.read(traps.root / "." / path))
    await refused_with(ErrorCode.INVALID_PARAMS, traps.read(f"{traps.root}/{path}", rules(["allow:any"])))
    problem = await refused_with(ErrorCode.INVALID_PARAMS, traps.write(f"{traps.root}/{path}"))
    assert "outside" in problem
    assert not traps.asker.questions


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/self/environ", "/proc/self/cwd/a", "/dev/null"])
async def test_path_in_another_directory_is_outside(traps, path):
    (traps.root / "a").write_text("a")
    assert "outside" in await refused_with(ErrorCode.INVALID_PARAMS, traps.read(path))
    assert "outside" in await refused_with(ErrorCode.INVALID_PARAMS, traps.write(path))


@pytest.mark.parametrize("path", ["a", "~/a", ""])
async def test_relative_path_is_refused(ground, path):
    assert "not absolute" in await refused_with(ErrorCode.INVALID_PARAMS, ground.read(path))
    assert "not absolute" in await refused_with(ErrorCode.INVALID_PARAMS, ground.write(path))


async def test_unopened_session_has_no_files(ground):
    params = v1.ReadTextFileRequest(session_id="other", path=str(ground.root / "a"))
    await refused_with(ErrorCode.RESOURCE_NOT_FOUND, ground.service(allow_all()).read(params))


async def test_write_creates_missing_directories(ground):
    await ground.write(ground.root / "a/b/c.txt", "ä\r\n")
    assert (ground.root / "a/b/c.txt").read_bytes() == "ä\r\n".encode()
    await ground.write(ground.root / "a/b/c.txt", "")
    assert (ground.root / "a/b/c.txt").read_bytes() == b""


async def test_policy_sees_the_diff_of_a_write(ground):
    (ground.root / "a").write_text("old\n")
    await ground.write(ground.root / "a")
    (question,) = ground.asker.questions
    path = str(ground.root / "a")
    assert question.action == WriteAction(path, str(ground.root))
    assert question.tool_call.content == (v1.Diff(path=path, old_text="old\n", new_text="new\n"),)
    assert question.cwd == str(ground.root)


@pytest.mark.parametrize("policy", [deny_all, allow_reads])
async def test_denied_write_changes_nothing(ground, policy):
    (ground.root / "a").write_text("old\n")
    problem = await refused_with(ErrorCode.INVALID_REQUEST, ground.write(ground.root / "a", policy=policy()))
    assert "not allowed" in problem
    assert (ground.root / "a").read_text() == "old\n"


async def test_write_through_a_link_is_judged_by_its_target(ground):
    (ground.root / "notes.md").symlink_to("main.py")
    (ground.root / "main.py").write_text("old\n")
    policy = rules(["allow:write:*.md"])
    await refused_with(ErrorCode.INVALID_REQUEST, ground.write(ground.root / "notes.md", policy=policy))
    assert (ground.root / "main.py").read_text() == "old\n"
    await ground.write(ground.root / "real.md", policy=policy)
    assert (ground.root / "real.md").read_text() == "new\n"


async def test_path_changed_after_permission_is_not_written(ground):
    (ground.root / "main.py").write_text("old\n")

    def swap(question):
        (ground.root / "notes.md").symlink_to("main.py")
        return True

    problem = await refused_with(
        ErrorCode.INVALID_PARAMS, ground.write(ground.root / "notes.md", policy=ask_user(swap))
    )
    assert "now leads to another file" in problem
    assert (ground.root / "main.py").read_text() == "old\n"


async def test_a_cancelled_turn_writes_nothing(ground):
    async def nobody(question):
        return None

    service = FileService(only("s", ground.boundary), nobody)
    params = v1.WriteTextFileRequest(session_id="s", path=str(ground.root / "a"), content="x")
    await refused_with(ErrorCode.REQUEST_CANCELLED, service.write(params))
    assert not (ground.root / "a").exists()


async def test_read_denial_applies_to_the_clients_files(ground):
    policy = rules(["deny:read:.env"])
    (ground.root / ".env").write_text("KEY=1")
    (ground.root / "harmless").symlink_to(".env")
    (ground.root / "a").write_text("a")
    for name in (".env", "harmless"):
        assert "deny:read:.env" in await refused_with(
            ErrorCode.INVALID_REQUEST, ground.read(ground.root / name, policy)
        )
    assert await ground.read(ground.root / "a", policy) == "a"


async def test_too_large_text_is_not_written(ground, monkeypatch):
    monkeypatch.setattr(files, "MAX_FILE_BYTES", 10)
    await refused_with(ErrorCode.INVALID_PARAMS, ground.write(ground.root / "a", "x" * 11))
    assert not (ground.root / "a").exists()


async def test_running_write_finishes_before_its_cancellation(ground):
    writing = asyncio.create_task(ground.write(ground.root / "a", "x" * 1_000_000))
    while not ground.root.joinpath("a").exists() and not any(ground.root.iterdir()):
        await asyncio.sleep(0)
    writing.cancel()
    await asyncio.wait([writing])
    assert [path.name for path in ground.root.iterdir()] == ["a"]


# ── over the wire ───────────────────────────────────────────────────────────────────────────────


async def told(root, method, params, **options):
    ask_us = {"id": 5, "method": method, "params": {"sessionId": "s", **params}}
    async with session_with(raw({}, [ask_us, {"hear": "answer"}, END]), root, **options) as session:
        return json.loads(text(await read(session.prompt("go"))))


async def test_agent_reads_and_writes_through_the_client(ground):
    path = str(ground.root / "a")
    options = {"policy": allow_all(), "files": "write"}
    assert (await told(ground.root, "fs/write_text_file", {"path": path, "content": "x\n"}, **options))["result"] == {}
    read_back = await told(ground.root, "fs/read_text_file", {"path": path, "line": 1}, **options)
    assert read_back["result"] == {"content": "x\n"}


async def test_agent_gets_an_error_about_its_path(ground):
    missing = await told(ground.root, "fs/read_text_file", {"path": str(ground.root / "gone")}, files="read")
    assert missing["error"]["code"] == ErrorCode.RESOURCE_NOT_FOUND
    outside = await told(ground.root, "fs/read_text_file", {"path": str(ground.outside / "secret")}, files="read")
    assert outside["error"]["code"] == ErrorCode.INVALID_PARAMS
    assert "is outside" in outside["error"]["data"]["problem"]


async def test_read_only_files_cannot_be_written(ground):
    params = {"path": str(ground.root / "a"), "content": "x"}
    answer = await told(ground.root, "fs/write_text_file", params, files="read", policy=allow_all())
    assert answer["error"]["code"] == ErrorCode.METHOD_NOT_FOUND
    assert not (ground.root / "a").exists()
