"""Phrasings for the built-in tools, and what they must do."""

import pytest

from tests.assistant.guide.talking import first_call, prompt, reply
from tests.assistant.guide.toolbox import BUILT_IN, FOREIGN

FENCED = "write hello.py:\n```python\nprint('hi')\n```"


def read(path, start=None, count=None):
    lines = {"start_line": start, "line_count": count}
    return "read_file", {"path": path, **{name: value for name, value in lines.items() if value is not None}}


def ls(path="."):
    return "list_directory", {"path": path}


def find(pattern, **where):
    return "search_files", {"pattern": pattern, **where}


def write(path, content):
    return "write_file", {"path": path, "content": content}


def edit(path, old, new):
    return "edit_file", {"path": path, "edits": [{"old": old, "new": new}]}


def run(command):
    return "run_command", {"command": command}


PHRASES = [
    # list
    ("list src", ls("src")),
    ("List src.", ls("src")),
    ("list", ls()),
    ("ls", ls()),
    ("ls src", ls("src")),
    ("list .", ls(".")),
    ("list ..", ls("..")),
    ("list /tmp", ls("/tmp")),
    ("list ~/projects", ls("~/projects")),
    ("list files", ls()),
    ("list the files", ls()),
    ("list all files in src", ls("src")),
    ("list the files in the src directory", ls("src")),
    ("list the src folder", ls("src")),
    ("please list src/dragoman", ls("src/dragoman")),
    ("what is in src?", ls("src")),
    ("what's in src/", ls("src/")),
    ("what's in the tests folder?", ls("tests")),
    ("What is in the current directory?", ls()),
    ("what files are in docs", ls("docs")),
    ("what files are there?", ls()),
    ("which files do we have?", ls()),
    ("what is here?", ls()),
    ("show me the files in src", ls("src")),
    ("show me the files", ls()),
    ("show me the contents of the docs folder", ls("docs")),
    ("could you list 'my folder'?", ls("my folder")),
    ("show src/", ls("src/")),
    ("list this directory", ls()),
    ("list my files please", ls()),
    ("show me what is in src", ls("src")),
    # read
    ("show me README.md", read("README.md")),
    ("read README.md", read("README.md")),
    ("Read the file README.md, please", read("README.md")),
    ("cat README.md", read("README.md")),
    ("open src/main.py", read("src/main.py")),
    ("view ./a.txt", read("./a.txt")),
    ("read /etc/hosts", read("/etc/hosts")),
    ("read ~/.bashrc", read("~/.bashrc")),
    ("read Makefile", read("Makefile")),
    ("show LICENSE", read("LICENSE")),
    ("read notes", read("notes")),
    ("read `my notes.txt`", read("my notes.txt")),
    ('read "a b/c d.txt"', read("a b/c d.txt")),
    ("read @README.md", read("README.md")),
    ("what is in README.md?", read("README.md")),
    ("what does README.md say?", read("README.md")),
    ("what does the file pyproject.toml contain", read("pyproject.toml")),
    ("show me the contents of pyproject.toml", read("pyproject.toml")),
    ("print the contents of the file notes.txt", read("notes.txt")),
    ("can you show me setup.cfg?", read("setup.cfg")),
    ("I'd like you to read docs/guide.md.", read("docs/guide.md")),
    ("let me see a.py", read("a.py")),
    ("look at a.py", read("a.py")),
    ("README.md", read("README.md")),
    ("read README.md lines 10-20", read("README.md", 10, 11)),
    ("read lines 10 to 20 of README.md", read("README.md", 10, 11)),
    ("show me lines 5-6 in src/a.py", read("src/a.py", 5, 2)),
    ("show the first 10 lines of README.md", read("README.md", 1, 10)),
    ("first 3 lines of a.txt", read("a.txt", 1, 3)),
    ("read README.md from line 30", read("README.md", 30)),
    ("read line 7 of a.txt", read("a.txt", 7, 1)),
    ("read a.txt:12", read("a.txt", 12, 1)),
    ("read a.txt:12-14", read("a.txt", 12, 3)),
    ("README.md lines 1-2", read("README.md", 1, 2)),
    ("show me the README", read("README")),
    ("what's in the README?", read("README")),
    ("what's the content of a.txt", read("a.txt")),
    # search
    ("find TODO in src", find("TODO", path="src")),
    ("find TODO", find("TODO")),
    ("find all TODOs in src", find("TODO", path="src")),
    ("search for 'def main' in *.py", find("def main", glob="*.py")),
    ("search for TODO", find("TODO")),
    ("search for import in python files", find("import", glob="*.py")),
    ("search src for TODO", find("TODO", path="src")),
    ("search in src/a for 'x y'", find("x y", path="src/a")),
    ("grep TODO in tests", find("TODO", path="tests")),
    ("look for `class Turn` in src", find("class Turn", path="src")),
    ("find the word hello in notes.txt", find("hello", path="notes.txt")),
    ("find 'in a box' in src in *.md", find("in a box", path="src", glob="*.md")),
    ("find every use of `open(` in src", find("open(", path="src")),
    ("find uses of `open(` in src", find("open(", path="src")),
    ('find "then list" in docs', find("then list", path="docs")),
    ("where is find_model defined?", find("find_model")),
    ("which files contain TODO?", find("TODO")),
    ("find *.py", find(".py", glob="*.py")),
    ("find all *.py files in src", find(".py", glob="*.py", path="src")),
    ("find files named conftest.py", find("conftest.py")),
    ("search for TODO everywhere in the project", find("TODO")),
    ("search for TODO in the whole project", find("TODO")),
    ("find TODO in this repo", find("TODO")),
    ("find where Turn is defined", find("Turn")),
    ("in which files is TODO?", find("TODO")),
    # write
    ("write notes.txt: buy milk", write("notes.txt", "buy milk")),
    ("write notes.txt: Buy milk, bread; and eggs.", write("notes.txt", "Buy milk, bread; and eggs.")),
    ("write 'buy milk' to notes.txt", write("notes.txt", "buy milk")),
    ('write "a: b" into src/x.yaml', write("src/x.yaml", "a: b")),
    ("create a file hello.py with print('hi')", write("hello.py", "print('hi')")),
    ("create hello.py with `print('hi')`", write("hello.py", "print('hi')")),
    ("create a new file called a.txt containing hello there", write("a.txt", "hello there")),
    ("create a file named 'my file.txt' with the text hello", write("my file.txt", "hello")),
    ("create an empty file pkg/__init__.py", write("pkg/__init__.py", "")),
    ("save 'x' in a.txt", write("a.txt", "x")),
    (FENCED, write("hello.py", "print('hi')\n")),
    ("create todo.md with:\n- one\n- two", write("todo.md", "- one\n- two")),
    ('write notes.txt: say "hello" to Bob', write("notes.txt", 'say "hello" to Bob')),
    ("write a.txt: first read it then think", write("a.txt", "first read it then think")),
    ("write file notes: hello", write("notes", "hello")),
    ("please write notes.txt: don't panic", write("notes.txt", "don't panic")),
    ("put hello world in hello.txt", write("hello.txt", "hello world")),
    ("make a file x.txt saying hi", write("x.txt", "hi")),
    # edit
    ("replace X by Y in Z", edit("Z", "X", "Y")),
    ("replace X by Y in Z.txt", edit("Z.txt", "X", "Y")),
    ("replace 'X' by 'Y' in Z", edit("Z", "X", "Y")),
    ("change 'a' to 'b' in file.txt", edit("file.txt", "a", "b")),
    ("replace foo with bar in src/a.py", edit("src/a.py", "foo", "bar")),
    ("in src/a.py replace foo with bar", edit("src/a.py", "foo", "bar")),
    ("In a.txt, change `x = 1` to `x = 2`.", edit("a.txt", "x = 1", "x = 2")),
    ('replace "two words" with "" in a.txt', edit("a.txt", "two words", "")),
    ("remove 'debug' from a.py", edit("a.py", "debug", "")),
    ("rename foo to bar in a.py", edit("a.py", "foo", "bar")),
    ("replace 'a then b' by 'c and read d.txt' in e.txt", edit("e.txt", "a then b", "c and read d.txt")),
    ("replace milk -> bread in notes.txt", edit("notes.txt", "milk", "bread")),
    ("edit a.txt: replace x with y", edit("a.txt", "x", "y")),
    # run
    ("run make test", run("make test")),
    ("execute `ls -la`", run("ls -la")),
    ("run the command `ls`", run("ls")),
    ("Please run 'git status'.", run("git status")),
    ("run grep -rn 'foo bar' src", run("grep -rn 'foo bar' src")),
    ("run echo a; echo b", run("echo a; echo b")),
    ("run cd src && ls", run("cd src && ls")),
    ("run `pytest -q` in tests", run("cd tests && pytest -q")),
    ("run for f in *; do echo $f; done", run("for f in *; do echo $f; done")),
    ("$ ls -la", run("ls -la")),
    ("git status", run("git status")),
    ("make test", run("make test")),
    ("ls -la", run("ls -la")),
    ("pytest -q", run("pytest -q")),
    ("can you run `make`?", run("make")),
    ("run: make test", run("make test")),
    ("run `make` and `make test`", run("make && make test")),
    ("Could you run pytest -x tests/agent for me?", run("pytest -x tests/agent")),
    # plan
    (
        "plan: first; second; third",
        (
            "update_plan",
            {
                "entries": [
                    {"content": word, "priority": "medium", "status": "pending"}
                    for word in ("first", "second", "third")
                ]
            },
        ),
    ),
]

TALK = [
    "can you write poetry?",
    "write a poem about the sea",
    "write me a haiku",
    "hello",
    "Hello! What are you?",
    "hi there",
    "who are you?",
    "thanks!",
    "help",
    "what can you do?",
    "list tools",
    "which tools do you have?",
    "make me a sandwich",
    "go to the store",
    "what is the meaning of life?",
    "what is love",
    "show me the weather",
    "read my mind",
    "find me a good restaurant",
    "explain src/main.py to me",
    "fix the bug in the parser",
    "refactor this code",
    "write tests for foo.py",
    "I changed my mind",
    "what do you think about lists?",
    "why is the sky blue",
    "tell me a joke",
    "open the door",
    "run the tests",
    "delete a.txt",
    "rename a.txt to b.txt",
    "what is in it for me?",
    "how do I run this?",
    "",
    "   ",
    "?",
    "...",
    "the quick brown fox",
    "show me the money",
    "write a poem to poem.txt",
    "look into the matter",
    "where is my mind",
    "change the world",
    "yes",
    "search your feelings",
    "search the web for cats",
    "delete the file a.txt",
    "read /etc/passwd; rm -rf /",
    "show me how to list files",
    "I want to read about cats",
    "change port 80 to 8080 in config.yaml",
    "what does the Makefile do",
    "create a directory foo",
    "append 'x' to notes.txt",
]


@pytest.mark.parametrize(("text", "expected"), PHRASES)
async def test_a_phrase_calls_the_tool_with_its_arguments(text, expected):
    call = await first_call(text, BUILT_IN)
    if expected[0] == "update_plan":
        parts = await reply([prompt(text)], BUILT_IN)
        call = next((part.name, part.arguments) for part in parts if hasattr(part, "arguments"))
    assert call == expected


@pytest.mark.parametrize(("text", "expected"), [row for row in PHRASES if row[0] != "git status"])
async def test_the_tools_of_others_do_not_change_what_a_phrase_means(text, expected):
    if expected[0] != "update_plan":
        assert await first_call(text, BUILT_IN + FOREIGN) == expected


@pytest.mark.parametrize("text", TALK)
async def test_talk_calls_no_tool(text):
    parts = await reply([prompt(text)], BUILT_IN)
    assert [part for part in parts if hasattr(part, "arguments")] == []
    assert "".join(part.text for part in parts)


@pytest.mark.parametrize("text", TALK)
async def test_talk_calls_no_tool_of_others_either(text):
    if text not in ("show me the weather", "yes"):
        assert await first_call(text, BUILT_IN + FOREIGN) is None
