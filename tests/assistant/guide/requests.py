"""Plain requests of a newcomer, and what each leads to: calls in their order, or the kind of the answer.

Both halves were written before the rules; the rules were made with `DEVELOPED`, and `HELD_OUT` was run when they were
done. The project is the one that `talking.py` plays. `TALK` asks for nothing that a tool can do.
"""

OVERVIEW = [("list_directory", {"path": "."}), ("read_file", {"path": "README.md"})]
TESTS = [
    ("list_directory", {"path": "."}),
    ("read_file", {"path": "Makefile"}),
    ("run_command", {"command": "make test"}),
]
COMMIT = [
    ("run_command", {"command": "git status --short"}),
    ("run_command", {"command": "git add --all && git commit -m 'Update README.md, src/app.py'"}),
]
PYTHON = [("search_files", {"pattern": r"\.py$", "glob": "*.py"})]
CHANGED = [("run_command", {"command": "git status --short --branch && git diff --stat"})]


def read(path, start=None, count=None):
    lines = {"start_line": start, "line_count": count}
    return [("read_file", {"path": path, **{name: value for name, value in lines.items() if value is not None}})]


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


DEVELOPED = [
    # the project
    ("what is this project", OVERVIEW),
    ("What does this project do?", OVERVIEW),
    ("can you explain this repo to me?", OVERVIEW),
    ("give me an overview", OVERVIEW),
    # looking
    ("list src", ls("src")),
    ("lsit files", ls()),
    ("what's in the src folder?", ls("src")),
    ("show me all python files", PYTHON),
    ("can you please list all the python files", PYTHON),
    ("read README.md", read("README.md")),
    ("could you please open the readme for me", OVERVIEW[1:]),
    ("show me the first 20 lines of README.md", read("README.md", 1, 20)),
    ("find TODO in src", find("TODO", path="src")),
    ("serach for 'def main'", find("def main")),
    ("where is parse_config defined?", find("parse_config")),
    ("which files mention Flask?", find("Flask")),
    ("how many lines are in README.md?", read("README.md")),
    ("how many python files are there?", PYTHON),
    # changing
    ("replace foo by bar in src/app.py", edit("src/app.py", "foo", "bar")),
    (
        "please change 'debug = True' to 'debug = False' in src/app.py",
        edit("src/app.py", "debug = True", "debug = False"),
    ),
    ("create a file notes.txt with the text 'buy milk'", write("notes.txt", "buy milk")),
    ("create a file hello.txt", "ask"),
    ("make an empty file called todo.md", write("todo.md", "")),
    ("delete the file old.txt", run("rm old.txt")),
    ("rename a.txt to b.txt", run("mv a.txt b.txt")),
    ("make a folder called data", run("mkdir -p data")),
    # running
    ("run the tests", TESTS),
    ("can you run teh tests please?", TESTS),
    ("do the tests pass?", TESTS),
    ("run make test", run("make test")),
    ("please run `ls -la`", run("ls -la")),
    # git
    ("what changed", CHANGED),
    ("what did I change?", CHANGED),
    ("git status", run("git status")),
    ("show me the git log", run("git log --oneline -n 20")),
    ("show me the diff", run("git diff")),
    ("commit everything", COMMIT),
    ("please commit my changes with message 'Fix the door'", run("git add --all && git commit -m 'Fix the door'")),
    ("which branch am I on?", run("git branch")),
    # talk
    ("hello", "hello"),
    ("hi there!", "hello"),
    ("Hello! Answer in one short sentence, please.", "hello"),
    ("who are you?", "who"),
    ("help", "help"),
    ("what can you do?", "help"),
    ("thanks!", "thanks"),
    # language
    ("fix the bug in src/app.py", "model"),
    ("write a function that adds two numbers", "model"),
    ("refactor the parser", "model"),
    ("explain src/app.py", "model"),
    ("write unit tests for the parser", "model"),
    ("why does it crash?", "model"),
]

HELD_OUT = [
    # the project
    ("tell me about this project", OVERVIEW),
    ("what am I looking at here?", OVERVIEW),
    ("summarize this repository", OVERVIEW),
    ("What's this codebase about?", OVERVIEW),
    # looking
    ("show files", ls()),
    ("what files are in this directory?", ls()),
    ("can you list the contents of tests", ls("tests")),
    ("ls tests", ls("tests")),
    ("find all *.py files", PYTHON),
    ("list every markdown file", [("search_files", {"pattern": r"\.md$", "glob": "*.md"})]),
    ("display README.md please", read("README.md")),
    ("raed src/app.py", read("src/app.py")),
    ("I want to see pyproject.toml", read("pyproject.toml")),
    ("show lines 5 to 10 of src/app.py", read("src/app.py", 5, 6)),
    ("what does Makefile contain?", read("Makefile")),
    ("search the code for import os", find("import os")),
    ("look for FIXME in tests", find("FIXME", path="tests")),
    ("are there any TODOs?", find("TODO")),
    ("where do we use load_user?", find("load_user")),
    ("count the lines of src/app.py", read("src/app.py")),
    # changing
    ("in README.md, replace 'teh' with 'the'", edit("README.md", "teh", "the")),
    ('swap "red" for "blue" in style.css', edit("style.css", "red", "blue")),
    ("can you create hello.py with `print('hello')`", write("hello.py", "print('hello')")),
    ("write 'remember the eggs' into shopping.txt", write("shopping.txt", "remember the eggs")),
    ("create a new file", "ask"),
    ("remove temp.log", run("rm temp.log")),
    ("move a.txt to docs/a.txt", run("mv a.txt docs/a.txt")),
    ("create a directory named build", run("mkdir -p build")),
    # running
    ("run tests", TESTS),
    ("test it", TESTS),
    ("Please execute all the unit tests", TESTS),
    ("run python --version", run("python --version")),
    ("execute ./deploy.sh", run("./deploy.sh")),
    # git
    ("what has changed since the last commit?", CHANGED),
    ("show me my changes", CHANGED),
    ("git diff", run("git diff")),
    ("who committed last?", run("git log --oneline -n 20")),
    ("show the commit history", run("git log --oneline -n 20")),
    ("commit all my work", COMMIT),
    ("commit this as 'First draft'", run("git add --all && git commit -m 'First draft'")),
    ("what's the git staus", run("git status")),
    ("push my changes", run("git push")),
    # talk
    ("hey", "hello"),
    ("good morning", "hello"),
    ("what are you?", "who"),
    ("are you chatgpt?", "who"),
    ("what do I do now?", "help"),
    ("how do I use this?", "help"),
    ("thank you so much", "thanks"),
    # language
    ("can you fix the failing test?", "model"),
    ("add a docstring to every function", "model"),
    ("write me a python script that sorts a list", "model"),
    ("improve the performance of src/app.py", "model"),
    ("add dark mode", "model"),
    ("what is the meaning of life?", "model"),
]

FENCED = "write hello.py:\n```python\nprint('hi')\n```"

PHRASES = [
    # found when it was tried
    ("make a commit", COMMIT),
    ("check if the tests pass", TESTS),
    ("whats in src", ls("src")),
    ("show me src", [*ls(), *ls("src")]),
    ("go to the src folder", [*ls(), *ls("src")]),
    ("wich files changed", CHANGED),
    ("cat src/app.py | head -3", run("cat src/app.py | head -3")),
    ("grep -n TODO src/app.py", run("grep -n TODO src/app.py")),
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
    ("show me the README", read("README.md")),
    ("what's in the README?", read("README.md")),
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
    ("find every use of `open(` in src", find(r"open\(", path="src")),
    ("find uses of `open(` in src", find(r"open\(", path="src")),
    ('find "then list" in docs', find("then list", path="docs")),
    ("where is find_model defined?", find("find_model")),
    ("which files contain TODO?", find("TODO")),
    ("find *.py", find(r"\.py$", glob="*.py")),
    ("find all *.py files in src", find(r"\.py$", glob="*.py", path="src")),
    ("find files named conftest.py", find(r"conftest\.py")),
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
    ("create hello.py with `print('hi')`", write("hello.py", "print('hi')")),
    ("create an empty file pkg/__init__.py", write("pkg/__init__.py", "")),
    ("save 'x' in a.txt", write("a.txt", "x")),
    (FENCED, write("hello.py", "print('hi')\n")),
    ("create todo.md with:\n- one\n- two", write("todo.md", "- one\n- two")),
    ('write notes.txt: say "hello" to Bob', write("notes.txt", 'say "hello" to Bob')),
    ("write a.txt: first read it then think", write("a.txt", "first read it then think")),
    ("write file notes: hello", write("notes", "hello")),
    ("please write notes.txt: don't panic", write("notes.txt", "don't panic")),
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
    ("Could you run pytest -x tests/agent for me?", run("pytest -x tests/agent")),
]

"""Other phrasings for the built-in tools; those about files were there before the rules."""

TALK = [
    "read",
    "go fix bugs",
    "make a cake",
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
    "read /etc/passwd; rm -rf /",
    "show me how to list files",
    "I want to read about cats",
    "change port 80 to 8080 in config.yaml",
    "what does the Makefile do",
]
"""Words that no built-in tool can do anything about."""

UNMARKED = [
    "create a file app.py with a login form",
    "create a new file called a.txt containing hello there",
    "write a poem to poem.txt",
    "put hello world in hello.txt",
    "write something nice into notes.txt",
    "create hello.py that prints hello",
    "add a file to git",
    "add a docstring to src/app.py",
    "save this conversation to notes.txt",
]
"""Requests to write what is not there in quotes, in a code block or behind a colon."""

ANSWERED = {
    "ask": "I write no text of my own",
    "hello": "Hello! I am **guide**",
    "who": "I am **guide**, the model built into dragoman. I am no language model",
    "help": "in plain words I can use these tools",
    "thanks": "You are welcome.",
    "model": "is beyond me: I am no language model",
}
"""Words of each kind of answer."""
