"""Links to files in a prompt: which are attached, how much of them, and what happens to the others."""

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
from tests.table import each_row

PNG = b"\x89PNG\r\n\x1a\nnot much of a picture"
EVERYTHING = frozenset({"image", "audio", "document"})


def link(uri, **more):
    return v1.ResourceLink(name="it", uri=str(uri), **more)


async def resolved(cwd, *blocks, directories=(), content_types=frozenset(), **options):
    async with working(cwd, *directories, **options) as work:
        return await resolve(blocks, work.workspace, content_types)


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


async def test_file_inside_is_attached_as_text(tmp_path):
    (tmp_path / "a.txt").write_text("hello\n")
    assert await text_of(tmp_path, (tmp_path / "a.txt").as_uri()) == "hello\n"


async def test_file_in_an_additional_directory_is_attached(tmp_path):
    (tmp_path / "cwd").mkdir()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.txt").write_text("hello\n")
    uri = (tmp_path / "more" / "a.txt").as_uri()
    assert await text_of(tmp_path / "cwd", uri, directories=[tmp_path / "more"]) == "hello\n"


@pytest.mark.parametrize("name", ["with space.txt", "ünïcode.txt", "100%.txt", "a#b?c.txt"])
async def test_encoded_name_is_decoded(name, tmp_path):
    (tmp_path / name).write_text("hello")
    assert await text_of(tmp_path, (tmp_path / name).as_uri()) == "hello"


async def test_localhost_may_be_the_host(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    assert await text_of(tmp_path, f"file://localhost{tmp_path}/a.txt") == "hello"


@pytest.mark.parametrize(
    "uri", ["https://example.com/a.txt", "zed:///agent/thread/1", "notes", "", "file://[bad", "FILES:///a"]
)
async def test_links_that_are_not_to_files_are_unchanged(uri, tmp_path):
    given = link(uri)
    assert await resolved(tmp_path, given) == [given]


@each_row(
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
async def test_only_the_named_lines_are_attached(fragment, lines, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour")
    assert await text_of(tmp_path, f"{(tmp_path / 'a.txt').as_uri()}#{fragment}") == lines


async def test_lines_are_counted_as_in_editors(tmp_path):
    (tmp_path / "a.txt").write_text("one\fstill one\ntwo\n")
    assert await text_of(tmp_path, f"{(tmp_path / 'a.txt').as_uri()}#L2") == "two\n"


async def test_missing_lines_are_reported(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    assert await why_not(tmp_path, f"{(tmp_path / 'a.txt').as_uri()}#L5") == (
        "[not attached: it has 1 lines, so line 5 does not exist]"
    )


@pytest.mark.parametrize("how", ["absolute", "dots", "link", "encoded dots", "directory link"])
async def test_file_outside_stays_a_link(how, tmp_path):
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
async def test_unreadable_file_stays_a_link_with_the_reason(name, words, tmp_path):
    (tmp_path / "directory").mkdir()
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(tmp_path / "fifo")
    assert words in await why_not(tmp_path, f"file://{tmp_path}/{name}")


async def test_file_on_another_machine_stays_a_link(tmp_path):
    (tmp_path / "a.txt").write_text("hello")
    assert "another machine, far.example" in await why_not(tmp_path, f"file://far.example{tmp_path}/a.txt")


async def test_unsaved_changes_are_attached(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    buffers = Buffers(**{str(path): "new"})
    assert await text_of(tmp_path, path.as_uri(), capabilities=READS, set_up=buffers.set_up) == "new"


async def test_file_that_only_the_client_has_is_attached(tmp_path):
    buffers = Buffers(**{str(tmp_path / "unsaved.txt"): "new"})
    uri = (tmp_path / "unsaved.txt").as_uri()
    assert await text_of(tmp_path, uri, capabilities=READS, set_up=buffers.set_up) == "new"


async def test_client_is_not_asked_for_files_outside(tmp_path):
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    (tmp_path / "secret.txt").write_text("SECRET")
    buffers = Buffers()
    await why_not(cwd, (tmp_path / "secret.txt").as_uri(), capabilities=READS, set_up=buffers.set_up)
    assert buffers.read == []


async def test_long_text_is_cut_with_a_note(tmp_path):
    (tmp_path / "a.txt").write_text("x" * (MAX_TEXT + 5))
    text = await text_of(tmp_path, (tmp_path / "a.txt").as_uri())
    assert text == "x" * MAX_TEXT + (
        f"\n[cut: these are {MAX_TEXT:,} of {MAX_TEXT + 5:,} characters; read the rest if you need it]"
    )


async def test_all_texts_of_a_prompt_share_the_limit(tmp_path):
    (tmp_path / "a.txt").write_text("x" * (MAX_TEXT - 10))
    (tmp_path / "b.txt").write_text("y" * 20)
    (tmp_path / "c.txt").write_text("z")
    first, second, third = await resolved(tmp_path, *[link((tmp_path / f"{n}.txt").as_uri()) for n in "abc"])
    assert first.resource.text == "x" * (MAX_TEXT - 10)
    assert second.resource.text.startswith("y" * 10 + "\n[cut: these are 10 of 20")
    assert "no room left" in third.description


async def test_lines_beyond_the_limit_can_be_named(tmp_path):
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
async def test_pictures_and_sounds_go_to_models_that_accept_them(head, media_type, tmp_path):
    (tmp_path / "named.txt").write_bytes(head)
    [block] = await resolved(tmp_path, link((tmp_path / "named.txt").as_uri()), content_types=EVERYTHING)
    assert isinstance(block, v1.ImageContent if media_type.startswith("image") else v1.AudioContent)
    assert (base64.b64decode(block.data), block.mime_type) == (head, media_type)


async def test_document_goes_to_a_model_that_accepts_it(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 \0")
    [block] = await resolved(tmp_path, link((tmp_path / "a.pdf").as_uri()), content_types=EVERYTHING)
    assert base64.b64decode(block.resource.blob) == b"%PDF-1.7 \0"
    assert block.resource.mime_type == "application/pdf"


async def test_picture_stays_a_link_for_a_model_without_image_input(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    words = await why_not(tmp_path, (tmp_path / "a.png").as_uri(), content_types=frozenset({"audio"}))
    assert words == "[not attached: it is image/png, which this model does not accept]"


async def test_too_large_picture_stays_a_link(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG + b"\0" * MAX_MEDIA_BYTES)
    assert f"over the limit of {MAX_MEDIA_BYTES:,}" in await why_not(
        tmp_path, (tmp_path / "a.png").as_uri(), content_types=EVERYTHING
    )


async def test_file_name_does_not_make_a_picture(tmp_path):
    (tmp_path / "a.png").write_text("no picture")
    given = link((tmp_path / "a.png").as_uri(), mime_type="image/png")
    [block] = await resolved(tmp_path, given, content_types=EVERYTHING)
    assert block.resource.text == "no picture"


async def test_embedded_text_counts_toward_the_limit(tmp_path):
    long = v1.EmbeddedResource(resource=v1.TextResourceContents(uri="buffer:1", text="x" * (MAX_TEXT + 1)))
    short = v1.EmbeddedResource(resource=v1.TextResourceContents(uri="buffer:2", text="y"))
    first, second = await resolved(tmp_path, long, short)
    assert len(first.resource.text) < MAX_TEXT + 200
    assert "[cut: these are 0 of 1 characters" in second.resource.text


async def test_embedded_textual_blob_becomes_text(tmp_path):
    blob = v1.BlobResourceContents(uri="buffer:1", blob="aGk=", mime_type="text/plain")
    [block] = await resolved(tmp_path, v1.EmbeddedResource(resource=blob))
    assert block.resource == v1.TextResourceContents(uri="buffer:1", text="hi", mime_type="text/plain")


async def test_other_content_is_unchanged(tmp_path):
    blocks = [
        v1.TextContent(text="hi"),
        v1.ImageContent(data="aGk=", mime_type="image/png"),
        v1.EmbeddedResource(resource=v1.BlobResourceContents(uri="buffer:1", blob="aGk=")),
    ]
    assert await resolved(tmp_path, *blocks) == blocks


# ── in a turn ───────────────────────────────────────────────────────────────────────────────────────


class Listener:
    """A model that records its messages."""

    name = "listener"
    context_size = 1000
    content_types = frozenset()
    thought_levels = ()
    summarises = False

    def __init__(self):
        self.messages = []

    def start(self):
        return self

    async def close(self):
        pass

    async def reply(self, request):
        self.messages = list(request.messages)
        yield ReplyText("ok")


async def send(client, session_id, *blocks):
    request = v1.PromptRequest(session_id=session_id, prompt=list(blocks))
    return await client.connection.call(SESSION_PROMPT, request)


async def test_model_gets_the_file_and_the_log_the_original_prompt(tmp_path):
    (tmp_path / "a.txt").write_text("what the file says")
    uri = (tmp_path / "a.txt").as_uri()
    model = Listener()
    async with session_in(tmp_path, model=model) as (client, session_id):
        await send(client, session_id, v1.TextContent(text="explain"), link(uri))
    embedded = v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text="what the file says"))
    assert model.messages[0] == UserMessage([v1.TextContent(text="explain"), embedded])
    [log] = (tmp_path / ".home").glob("projects/*/*.jsonl")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    chunks = [record["params"]["update"] for record in records if "params" in record]
    sent = [chunk["content"] for chunk in chunks if chunk["sessionUpdate"] == "user_message_chunk"]
    assert [block["type"] for block in sent] == ["text", "resource_link"]


@pytest.mark.parametrize(("fragment", "said"), [("", "one\ntwo\nthree"), ("#L2-3", "two\nthree"), ("#L2", "two")])
async def test_guide_shows_a_linked_file(fragment, said, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n" if fragment else "one\ntwo\nthree\n")
    async with session_in(tmp_path) as (client, session_id):
        await client.prompt(session_id, "/model guide")
        await send(client, session_id, link(f"{(tmp_path / 'a.txt').as_uri()}{fragment}"))
        chunks = [update for update in client.conversation() if isinstance(update, v1.AgentMessageChunk)]
    shown = "".join(chunk.content.text for chunk in chunks)
    assert said in shown
    assert ("four" in shown) is False
    assert ("one" in shown) is (not fragment)
