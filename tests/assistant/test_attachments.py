"""Links in a prompt to files: which are read, how much of them, and what is said of the others."""

import base64
import json
import os

import pytest

from dragoman.assistant.attachments import MAX_MEDIA_BYTES, MAX_TEXT, resolve
from dragoman.assistant.models.message import UserMessage
from dragoman.assistant.models.model import ReplyText
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_PROMPT
from tests.assistant.running import session_in
from tests.assistant.tools.working import READS, Buffers, working

PNG = b"\x89PNG\r\n\x1a\nnot much of a picture"
EVERYTHING = frozenset({"image", "audio", "document"})


def link(uri, **more):
    return v1.ResourceLink(name="it", uri=str(uri), **more)


async def resolved(cwd, *blocks, directories=(), takes=frozenset(), **options):
    async with working(cwd, *directories, **options) as work:
        return await resolve(blocks, work.workspace, takes)


async def text_of(cwd, uri, **options):
    [block] = await resolved(cwd, link(uri), **options)
    assert isinstance(block, v1.EmbeddedResource), block
    assert block.resource.uri == uri
    return block.resource.text


async def why_not(cwd, uri, **options):
    given = link(uri, description="what it is")
    [block] = await resolved(cwd, given, **options)
    assert isinstance(block, v1.ResourceLink), block
    assert (block.name, block.uri) == (given.name, given.uri)
    assert given.description == "what it is"
    return block.description.removeprefix("what it is ")


async def test_a_file_inside_is_given_as_text(tmp_path):
    (tmp_path / "a.txt").write_text("hello\n")
    assert await text_of(tmp_path, (tmp_path / "a.txt").as_uri()) == "hello\n"


async def test_a_file_in_an_additional_directory_is_given(tmp_path):
    (tmp_path / "cwd").mkdir()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("hello\n")
    uri = (tmp_path / "more" / "a.txt").as_uri()
    assert await text_of(tmp_path / "cwd", uri, directories=[tmp_path / "more"]) == "hello\n"


@pytest.mark.parametrize("name", ["with space.txt", "ünïcode.txt", "100%.txt", "a#b?c.txt"])
async def test_a_name_is_decoded(name, tmp_path):
    (tmp_path / name).write_text("hello")
    assert await text_of(tmp_path, (tmp_path / name).as_uri()) == "hello"


async def test_the_local_host_may_be_named(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    assert await text_of(tmp_path, f"file://localhost{tmp_path}/a.txt") == "hello"


@pytest.mark.parametrize(
    "uri", ["https://example.com/a.txt", "zed:///agent/thread/1", "notes", "", "file://[bad", "FILES:///a"]
)
async def test_links_to_anything_else_are_left_alone(uri, tmp_path):
    given = link(uri)
    assert await resolved(tmp_path, given) == [given]


@pytest.mark.parametrize(
    ("fragment", "lines"),
    [
        ("L2", "two\n"),
        ("L2-3", "two\nthree\n"),
        ("L2:3", "two\nthree\n"),
        ("L2-L3", "two\nthree\n"),
        ("L2C1-L3C4", "two\nthree\n"),
        ("L3-L2", "two\nthree\n"),
        ("L3-900", "three\nfour"),
        ("L0-1", "one\n"),
        ("section", "one\ntwo\nthree\nfour"),
        ("", "one\ntwo\nthree\nfour"),
    ],
)
async def test_lines_that_are_named_are_given_alone(fragment, lines, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour")
    assert await text_of(tmp_path, f"{(tmp_path / 'a.txt').as_uri()}#{fragment}") == lines


async def test_lines_are_those_of_editors(tmp_path):
    (tmp_path / "a.txt").write_text("one\fstill one\ntwo\n")
    assert await text_of(tmp_path, f"{(tmp_path / 'a.txt').as_uri()}#L2") == "two\n"


async def test_lines_that_are_not_there_are_told(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    assert await why_not(tmp_path, f"{(tmp_path / 'a.txt').as_uri()}#L5") == (
        "[not attached: it has 1 lines, so none from line 5 on]"
    )


@pytest.mark.parametrize("how", ["absolute", "dots", "link", "encoded dots", "directory link"])
async def test_what_is_outside_stays_a_link(how, tmp_path):
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    (cwd / "link").symlink_to(secret)
    (cwd / "up").symlink_to(tmp_path)
    uri = {
        "absolute": secret.as_uri(),
        "dots": f"file://{cwd}/../secret.txt",
        "link": (cwd / "link").as_uri(),
        "encoded dots": f"file://{cwd}/%2e%2e/secret.txt",
        "directory link": f"file://{cwd}/up/secret.txt",
    }[how]
    words = await why_not(cwd, uri)
    assert words.startswith("[not attached: it is outside the session's directories")
    assert "SECRET" not in words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.txt", "does not exist"),
        ("directory", "is a directory, not a file"),
        ("binary", "is not UTF-8 text"),
        ("fifo", "is a FIFO, not a file"),
        ("a%00b", "NUL"),
    ],
)
async def test_what_cannot_be_read_stays_a_link_with_the_reason(name, words, tmp_path):
    (tmp_path / "directory").mkdir()
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(tmp_path / "fifo")
    assert words in await why_not(tmp_path, f"file://{tmp_path}/{name}")


async def test_another_machine_is_not_this_one(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    assert "another machine, far.example" in await why_not(tmp_path, f"file://far.example{tmp_path}/a.txt")


async def test_changes_that_are_not_saved_yet_are_given(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    buffers = Buffers(**{str(path): "new"})
    assert await text_of(tmp_path, path.as_uri(), capabilities=READS, set_up=buffers.set_up) == "new"


async def test_a_file_that_only_the_client_has_is_given(tmp_path):
    buffers = Buffers(**{str(tmp_path / "unsaved.txt"): "new"})
    uri = (tmp_path / "unsaved.txt").as_uri()
    assert await text_of(tmp_path, uri, capabilities=READS, set_up=buffers.set_up) == "new"


async def test_a_client_is_not_asked_for_what_is_outside(tmp_path):
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    (tmp_path / "secret.txt").write_text("SECRET")
    buffers = Buffers()
    await why_not(cwd, (tmp_path / "secret.txt").as_uri(), capabilities=READS, set_up=buffers.set_up)
    assert buffers.read == []


async def test_a_long_text_is_cut_with_a_word(tmp_path):
    (tmp_path / "a.txt").write_text("x" * (MAX_TEXT + 5))
    text = await text_of(tmp_path, (tmp_path / "a.txt").as_uri())
    assert text == "x" * MAX_TEXT + (
        f"\n[cut: these are {MAX_TEXT:,} of {MAX_TEXT + 5:,} characters; read the rest where it is needed]"
    )


async def test_all_texts_of_a_prompt_share_the_room(tmp_path):
    (tmp_path / "a.txt").write_text("x" * (MAX_TEXT - 10))
    (tmp_path / "b.txt").write_text("y" * 20)
    (tmp_path / "c.txt").write_text("z")
    first, second, third = await resolved(tmp_path, *[link((tmp_path / f"{n}.txt").as_uri()) for n in "abc"])
    assert first.resource.text == "x" * (MAX_TEXT - 10)
    assert second.resource.text.startswith("y" * 10 + "\n[cut: these are 10 of 20")
    assert "no room left" in third.description


async def test_lines_of_a_long_file_are_found_beyond_the_cut(tmp_path):
    (tmp_path / "a.txt").write_text("x" * MAX_TEXT + "\nneedle\n")
    assert await text_of(tmp_path, f"{(tmp_path / 'a.txt').as_uri()}#L2") == "needle\n"


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0 jpeg", "image/jpeg"),
        (b"GIF89a more", "image/gif"),
        (b"RIFF\1\2\3\4WEBPVP8 ", "image/webp"),
        (b"RIFF\1\2\3\4WAVEfmt ", "audio/wav"),
        (b"ID3\3\0\0", "audio/mpeg"),
    ],
)
async def test_pictures_and_sounds_go_to_models_that_take_them(head, media_type, tmp_path):
    (tmp_path / "named.txt").write_bytes(head)
    [block] = await resolved(tmp_path, link((tmp_path / "named.txt").as_uri()), takes=EVERYTHING)
    assert isinstance(block, v1.ImageContent if media_type.startswith("image") else v1.AudioContent)
    assert (base64.b64decode(block.data), block.mime_type) == (head, media_type)


async def test_a_document_goes_to_models_that_take_it(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 \0")
    [block] = await resolved(tmp_path, link((tmp_path / "a.pdf").as_uri()), takes=EVERYTHING)
    assert base64.b64decode(block.resource.blob) == b"%PDF-1.7 \0"
    assert block.resource.mime_type == "application/pdf"


async def test_a_picture_is_not_given_to_a_model_that_is_blind(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    words = await why_not(tmp_path, (tmp_path / "a.png").as_uri(), takes=frozenset({"audio"}))
    assert words == "[not attached: it is image/png, which this model cannot be given]"


async def test_a_picture_that_is_too_large_stays_a_link(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG + b"\0" * MAX_MEDIA_BYTES)
    assert f"the limit is {MAX_MEDIA_BYTES:,}" in await why_not(
        tmp_path, (tmp_path / "a.png").as_uri(), takes=EVERYTHING
    )


async def test_a_name_does_not_make_a_picture(tmp_path):
    (tmp_path / "a.png").write_text("no picture")
    given = link((tmp_path / "a.png").as_uri(), mime_type="image/png")
    [block] = await resolved(tmp_path, given, takes=EVERYTHING)
    assert block.resource.text == "no picture"


async def test_embedded_text_is_held_to_the_same_room(tmp_path):
    long = v1.EmbeddedResource(resource=v1.TextResourceContents(uri="buffer:1", text="x" * (MAX_TEXT + 1)))
    short = v1.EmbeddedResource(resource=v1.TextResourceContents(uri="buffer:2", text="y"))
    first, second = await resolved(tmp_path, long, short)
    assert len(first.resource.text) < MAX_TEXT + 200
    assert "[cut: these are 0 of 1 characters" in second.resource.text


async def test_an_embedded_blob_that_is_text_becomes_text(tmp_path):
    blob = v1.BlobResourceContents(uri="buffer:1", blob="aGk=", mime_type="text/plain")
    [block] = await resolved(tmp_path, v1.EmbeddedResource(resource=blob))
    assert block.resource == v1.TextResourceContents(uri="buffer:1", text="hi", mime_type="text/plain")


async def test_everything_else_stays_as_it_is(tmp_path):
    blocks = [
        v1.TextContent(text="hi"),
        v1.ImageContent(data="aGk=", mime_type="image/png"),
        v1.EmbeddedResource(resource=v1.BlobResourceContents(uri="buffer:1", blob="aGk=")),
    ]
    assert await resolved(tmp_path, *blocks) == blocks


# ── in a turn ───────────────────────────────────────────────────────────────────────────────────────


class Listener:
    """A model that keeps what it is told."""

    name = "listener"
    context_size = 1000
    takes = frozenset()
    thought_levels = ()
    summarises = False

    def __init__(self):
        self.told = []

    def start(self):
        return self

    async def close(self):
        pass

    async def reply(self, request):
        self.told = list(request.messages)
        yield ReplyText("ok")


async def send(client, session_id, *blocks):
    request = v1.PromptRequest(session_id=session_id, prompt=list(blocks))
    return await client.connection.call(SESSION_PROMPT, request)


async def test_the_model_has_the_file_and_the_client_its_own_prompt(tmp_path):
    (tmp_path / "a.txt").write_text("what the file says")
    uri = (tmp_path / "a.txt").as_uri()
    model = Listener()
    async with session_in(tmp_path, model=model) as (client, session_id):
        await send(client, session_id, v1.TextContent(text="explain"), link(uri))
    embedded = v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text="what the file says"))
    assert model.told[0] == UserMessage([v1.TextContent(text="explain"), embedded])
    [log] = (tmp_path / ".home").glob("projects/*/*.jsonl")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    chunks = [record["params"]["update"] for record in records if "params" in record]
    sent = [chunk["content"] for chunk in chunks if chunk["sessionUpdate"] == "user_message_chunk"]
    assert [block["type"] for block in sent] == ["text", "resource_link"]


@pytest.mark.parametrize(("fragment", "said"), [("", "one\ntwo\nthree"), ("#L2-3", "two\nthree"), ("#L2", "two")])
async def test_the_guide_reads_what_a_prompt_links_to(fragment, said, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n" if fragment else "one\ntwo\nthree\n")
    async with session_in(tmp_path) as (client, session_id):
        await client.prompt(session_id, "/model guide")
        await send(client, session_id, link(f"{(tmp_path / 'a.txt').as_uri()}{fragment}"))
        calls = [update for update in client.conversation() if isinstance(update, v1.ToolCall)]
        results = [update for update in client.conversation() if isinstance(update, v1.ToolCallProgress)]
    assert len(calls) == 1
    shown = results[-1].content[0].content.text
    assert said in shown
    assert ("four" in shown) is False
    assert ("one" in shown) is (not fragment)
