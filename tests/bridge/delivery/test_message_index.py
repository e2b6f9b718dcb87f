"""The search index: changed, deleted and replaced histories, and a damaged database."""

import json
import sqlite3

import pytest

from dragoman.bridge.delivery.message_index import IndexedFile, MessageIndex, SearchIndexError
from dragoman.protocol.update_lines import update_lines
from dragoman.store.block import Draft, Header, encode_header
from dragoman.store.block_log import LogPosition, SealedWriter
from dragoman.store.disk import Disk


class StoredSession:
    """The history of a session in a file."""

    def __init__(self, directory, session_id, *texts):
        self.id = session_id
        self._path = directory / f"{session_id}.jsonl"
        self._path.unlink(missing_ok=True)
        self._writer = SealedWriter(Disk(), self._path)
        first, self._sum = encode_header(Header(session_id, "/w", [], "2026-01-01T00:00:00Z"), len(texts))
        self._writer.write(first)
        self._last = 0
        self.file = IndexedFile(session_id, str(self._path), LogPosition(len(first), 0, self._sum))
        for text in texts:
            self.say(text)

    def say(self, text, role="agent"):
        content = {"type": "text", "text": text}
        update = {"sessionUpdate": f"{role}_message_chunk", "messageId": str(self._last), "content": content}
        draft = Draft()
        draft.add_lines(update_lines(self.id, [json.dumps(update).encode()]))
        block, self._sum = draft.seal(self._last + 1, 1, self._sum)
        self._last += 1
        self._writer.write(block)
        self._writer.close()

    def delete(self):
        self._path.unlink()


@pytest.fixture
def index(tmp_path):
    made = MessageIndex(Disk(), tmp_path / "search.db")
    yield made
    made.close()


def found(index, *words):
    return [(each.session_id, each.seq) for each in index.find(words, None, 100)]


def test_latest_change_is_found_first_by_parts_of_words(index, tmp_path):
    one, two = StoredSession(tmp_path, "one", "a Needle"), StoredSession(tmp_path, "two", "hay", "needles")
    index.update([one.file, two.file])
    assert found(index, "eedl") == [("two", 2), ("one", 1)]
    one.say("no more")
    index.update([one.file, two.file])
    assert found(index, "eedl") == [("one", 1), ("two", 2)]
    [first, _] = index.find(["eedl"], None, 100)
    assert index.read([first.number]) == ["a Needle"]
    assert [each.session_id for each in index.find(["eedl"], first.number, 100)] == ["two"]


def test_short_and_foreign_words_are_found(index, tmp_path):
    index.update([StoredSession(tmp_path, "one", "解析器 drops 100% of it", 'the "quoted" part').file])
    assert found(index, "解析") == found(index, "0%") == found(index, "解析器", "of") == [("one", 1)]
    assert found(index, '"quo') == [("one", 2)]
    assert found(index, "1%") == found(index, "__") == []


def test_only_new_part_of_a_large_history_is_read(index, tmp_path):
    session = StoredSession(tmp_path, "one", *["hay " * 50_000 for _ in range(12)])
    session.say("first needle")
    index.update([session.file])
    numbers = {each.seq: each.number for each in index.find(["hay"], None, 100)}
    session.say("second needle")
    index.update([session.file])
    assert sorted(found(index, "needle")) == [("one", 13), ("one", 14)]
    again = {each.seq: each.number for each in index.find(["hay"], None, 100)}
    assert again.keys() == numbers.keys()
    assert again[1] == numbers[1]


def test_removed_and_replaced_histories_leave_the_index(index, tmp_path):
    sessions = [StoredSession(tmp_path, name, "needle") for name in ("one", "two", "three", "four")]
    index.update([each.file for each in sessions])
    index.remove("one")
    sessions[1].delete()
    replaced = StoredSession(tmp_path, "three", "only hay here", "and here")
    index.update([sessions[1].file, replaced.file])
    assert found(index, "needle") == [("four", 1)]
    index.keep_only(["three"])
    assert found(index, "needle") == []
    assert index.sizes.keys() == {"three"}


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0 garbage" * 500])
def test_damaged_database_is_removed_and_built_again(tmp_path, content):
    path = tmp_path / "search.db"
    path.write_bytes(content)
    index = MessageIndex(Disk(), path)
    file = StoredSession(tmp_path, "one", "needle").file
    with pytest.raises(SearchIndexError, match="was removed"):
        index.update([file])
    index.update([file])
    assert found(index, "needle") == [("one", 1)]
    index.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_database_of_another_version_is_built_again(tmp_path):
    path = tmp_path / "search.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE session (a)")
        database.execute("PRAGMA user_version = 99")
    database.close()
    index = MessageIndex(Disk(), path)
    with pytest.raises(SearchIndexError):
        index.find(["needle"], None, 1)
    assert index.find(["needle"], None, 1) == []
    index.close()


def test_sizes_are_known_after_a_restart(index, tmp_path):
    session = StoredSession(tmp_path, "one", "needle")
    index.update([session.file])
    index.close()
    again = MessageIndex(Disk(), tmp_path / "search.db")
    assert [each.session_id for each in again.find(["needle"], None, 1)] == ["one"]
    assert again.sizes == index.sizes
    again.close()


def test_index_leaves_the_last_space_of_a_disk(tiny_disk, tmp_path):
    one = StoredSession(tmp_path, "one", "a needle")
    tiny_disk.path.mkdir()
    index = MessageIndex(Disk(), tiny_disk.path / "search.db")
    with pytest.raises(SearchIndexError, match="less than 64 MiB of the disk are free"):
        index.update([one.file])
    index.close()
    assert list(tiny_disk.path.glob("search.db*")) == []
