"""The first requests of a new user, and the guide's reaction to each."""

from tests.assistant.guide.talking import Talk

OVERVIEW = [("list_directory", {"path": "."}), ("read_file", {"path": "README.md"})]
TESTS = [
    ("list_directory", {"path": "."}),
    ("read_file", {"path": "Makefile"}),
    ("run_command", {"command": "make test"}),
]
CHANGED = [("run_command", {"command": "git status --short --branch && git diff --stat"})]


def read(path, **lines):
    return [("read_file", {"path": path, **lines})]


def ls(path="."):
    return [("list_directory", {"path": path})]


def find(pattern, **where):
    return [("search_files", {"pattern": pattern, **where})]


def write(path, content):
    return [("write_file", {"path": path, "content": content})]


def edit(path, old, new):
    return [("edit_file", {"path": path, "edits": [{"old": old, "new": new}]})]


def run(command):
    return [("run_command", {"command": command})]


REQUESTS = [
    ("hello", "Hello!"),
    ("say hello", "Hello!"),
    ("hello, world", "Hello!"),
    ("@src/app.py", [("read_file", {"path": "src/app.py"})]),
    ("Hello! Answer in one short sentence, please.", "Hello!"),
    ("ping", "Pong."),
    ("who are you?", "I am **guide**"),
    ("what can you do?", "`find TODO in src`"),
    ("thanks!", "You're welcome."),
    ("what is this project?", OVERVIEW),
    ("can you explain this repo to me?", OVERVIEW),
    ("list the files here", ls()),
    ("what files are in this directory?", ls()),
    ("list src", ls("src")),
    ("what's in the src folder?", [*ls(), *ls("src")]),
    ("read README.md", read("README.md")),
    ("could you please open the readme for me", read("README.md")),
    ("show lines 5 to 10 of src/app.py", read("src/app.py", start_line=5, line_count=6)),
    ("show me the first 20 lines of README.md", read("README.md", start_line=1, line_count=20)),
    ("find TODO in src", find("TODO", path="src")),
    ("search for 'def main('", find(r"def main\(")),
    ("find all *.py files", find(r"\.py$", glob="*.py")),
    ("which files mention Flask?", find("Flask")),
    ("what changed?", CHANGED),
    ("git status", run("git status")),
    ("show me the diff", run("git diff")),
    ("can you run the tests please?", TESTS),
    ("run make test", run("make test")),
    ("write notes.txt: buy milk, then read it", write("notes.txt", "buy milk, then read it")),
    ("create hello.py with `print('hello')`", write("hello.py", "print('hello')")),
    ("write hello.py:\n```python\nprint('hi')\n```", write("hello.py", "print('hi')\n")),
    ("replace 'milk' by 'bread' in notes.txt", edit("notes.txt", "milk", "bread")),
    ("in README.md, replace teh with the", edit("README.md", "teh", "the")),
    ("get_current_time timezone=Asia/Tokyo", [("time__get_current_time", {"timezone": "Asia/Tokyo"})]),
    ('call add {"a": 1, "b": 2}', [("everything__add", {"a": 1, "b": 2})]),
    ("echo hello there", [("everything__echo", {"message": "hello there"})]),
    ("fix the bug in src/app.py", None),
    ("explain src/app.py", None),
    ("write a function that adds two numbers", None),
    ("create app.py with a login form", None),
    ("run the deployment for all users", None),
    ("what is the meaning of life?", None),
]
"""A request with its calls, or with words of the answer, or None if it needs a language model."""


async def test_requests_of_a_new_user_are_understood():
    failures = []
    for request, expected in REQUESTS:
        talk = Talk()
        said, calls = await talk.say(request)
        if isinstance(expected, list):
            is_right = calls == expected and not talk.stops
        elif expected is None:
            is_right = not calls and talk.stops == ["refusal"] and "without a language model. " in said
            is_right = is_right and "Connect one with" in said
        else:
            is_right = not calls and not talk.stops and expected in said
        if not is_right:
            failures.append((request, calls, talk.stops, said))
    assert failures == []
