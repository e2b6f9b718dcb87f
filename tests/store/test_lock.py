"""One writer per session, with real processes."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest

from dragoman.errors import SessionBusyError
from dragoman.store import FileStore
from dragoman.store.lock import acquire, find_holder
from tests.store.making import new_header, write_session

HOLDER = """
import sys
from pathlib import Path
from dragoman.errors import SessionBusyError
from dragoman.store.lock import acquire

path = Path(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    try:
        lock = acquire(path, "x")
    except SessionBusyError as busy:
        print("busy", busy.pid, flush=True)
    else:
        print("got", flush=True)
        if sys.stdin.readline() == "release\\n":
            lock.release()
        print("released", flush=True)
"""


class Contender:
    def __init__(self, path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.process.pid
        assert self.hear() == ["ready"]

    def say(self, word="go"):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().split()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def contenders(tmp_path):
    made = [Contender(tmp_path / "session.lock") for _ in range(3)]
    yield made
    for contender in made:
        contender.kill()


def test_one_process_wins_a_race_and_the_others_name_it(contenders):
    for _ in range(30):
        for contender in contenders:
            contender.say()
        said = {contender.pid: contender.hear() for contender in contenders}
        (winner,) = [pid for pid, words in said.items() if words == ["got"]]
        assert [words for pid, words in said.items() if pid != winner] == [["busy", str(winner)]] * 2
        holder = next(contender for contender in contenders if contender.pid == winner)
        holder.say("release")
        assert holder.hear() == ["released"]


def test_a_dead_holders_lock_is_free_at_once(contenders):
    first, second, third = contenders
    first.say()
    assert first.hear() == ["got"]
    first.kill()
    second.say()
    assert second.hear() == ["got"]
    third.say()
    assert third.hear() == ["busy", str(second.pid)]


def test_concurrent_acquire_and_release_never_make_two_holders(contenders, tmp_path):
    turns = {contender.pid: 0 for contender in contenders}
    for _ in range(100):
        for contender in contenders:
            contender.say()
            contender.say("release")
        for contender in contenders:
            words = contender.hear()
            if words[0] == "got":
                turns[contender.pid] += 1
                assert contender.hear() == ["released"]
            else:
                # It understood "release" as a second attempt.
                if contender.hear() == ["got"]:
                    contender.say("release")
                    assert contender.hear() == ["released"]
    assert sum(turns.values()) >= 100
    assert not (tmp_path / "session.lock").exists()


def test_lock_survives_garbage_in_and_removal_of_the_file(tmp_path):
    path = tmp_path / "session.lock"
    path.write_bytes(b"garbage")
    lock = acquire(path, "x")
    with pytest.raises(SessionBusyError) as caught:
        acquire(path, "x")
    assert caught.value.pid == os.getpid()
    path.unlink()
    with pytest.raises(SessionBusyError):
        acquire(path, "x")
    lock.release()
    acquire(path, "x").release()
    assert not path.exists()


def test_thousands_of_locks_need_one_descriptor(tmp_path, contenders):
    before = len(os.listdir("/dev/fd"))
    locks = [acquire(tmp_path / f"{number}.lock", "x") for number in range(2_000)]
    assert len(os.listdir("/dev/fd")) == before + 1
    for lock in locks[1:]:
        lock.release()
    with pytest.raises(SessionBusyError):
        acquire(tmp_path / "0.lock", "x")
    contenders[0].say()
    assert contenders[0].hear() == ["got"]
    with pytest.raises(SessionBusyError) as caught:
        acquire(tmp_path / "session.lock", "x")
    assert caught.value.pid == contenders[0].pid
    locks[0].release()
    assert len(os.listdir("/dev/fd")) == before


def test_links_to_a_directory_lead_to_the_same_locks(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    lock = acquire(tmp_path / "home" / "a.lock", "x")
    with pytest.raises(SessionBusyError):
        acquire(tmp_path / "link" / "a.lock", "x")
    acquire(tmp_path / "link" / "b.lock", "x").release()
    assert find_holder(tmp_path / "link" / "a.lock").pid == os.getpid()
    done = subprocess.run(
        [sys.executable, "-c", HOLDER, str(tmp_path / "home" / "a.lock")], input="go\n", capture_output=True, text=True
    )
    assert done.stdout.split("\n")[1] == f"busy {os.getpid()}"
    lock.release()
    assert find_holder(tmp_path / "home" / "a.lock") is None


def test_an_unreadable_holder_still_holds_the_lock(tmp_path):
    path = tmp_path / "session.lock"
    lock = acquire(path, "x")
    path.write_bytes(b"")
    with pytest.raises(SessionBusyError, match="in use by another process") as caught:
        acquire(path, "x")
    assert (caught.value.pid, caught.value.host) == (None, None)
    lock.release()


def test_a_dead_process_is_never_named_as_the_holder(tmp_path):
    path = tmp_path / "session.lock"
    gone = subprocess.Popen(["true"])
    gone.wait()
    lock = acquire(path, "x")
    path.write_text(json.dumps({"pid": gone.pid, "host": os.uname().nodename, "since": ""}))
    with pytest.raises(SessionBusyError) as caught:
        acquire(path, "x")
    assert caught.value.pid is None
    lock.release()


def test_children_do_not_inherit_a_lock(tmp_path):
    path = tmp_path / "session.lock"
    program = """
import os, subprocess, sys
from pathlib import Path
from dragoman.store.lock import acquire

lock = acquire(Path(sys.argv[1]), "x")
child = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(child.pid, flush=True)
os._exit(0)
"""
    done = subprocess.run([sys.executable, "-c", program, path], stdout=subprocess.PIPE, text=True, check=True)
    try:
        acquire(path, "x").release()
    finally:
        os.kill(int(done.stdout), signal.SIGKILL)


OPENER = """
import asyncio, sys
from pathlib import Path
from dragoman.errors import SessionBusyError
from dragoman.store import FileStore

async def main():
    store = FileStore(Path(sys.argv[1]))
    sys.stdin.readline()
    try:
        log = await store.open(sys.argv[2])
    except SessionBusyError as busy:
        print("busy", busy.pid, busy.host, flush=True)
    else:
        print("got", flush=True)
        sys.stdin.readline()
        await log.close()

asyncio.run(main())
"""


async def test_two_processes_that_open_one_session_have_one_winner(tmp_path):
    store = FileStore(tmp_path)
    header = await write_session(store, new_header())
    command = [sys.executable, "-c", OPENER, str(tmp_path), header.id]
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    children = [await asyncio.create_subprocess_exec(*command, **pipes) for _ in range(2)]
    for child in children:
        child.stdin.write(b"\n")
    said = [(await child.stdout.readline()).decode().split() for child in children]
    winner = next(child for child, words in zip(children, said, strict=True) if words == ["got"])
    (loser,) = [words for words in said if words != ["got"]]
    assert loser == ["busy", str(winner.pid), os.uname().nodename]
    with pytest.raises(SessionBusyError, match=f"process {winner.pid} on {os.uname().nodename}"):
        await store.open(header.id)
    winner.stdin.write(b"\n")
    for child in children:
        await child.communicate()
    await (await store.open(header.id)).close()
    await store.close()
