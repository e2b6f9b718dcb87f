"""What the first use brings into a process, seen from outside."""

import re
import subprocess
import sys
from pathlib import Path

from dragoman.installation import how_to_add

OPEN = """
import asyncio, sys
from pathlib import Path
from dragoman.assistant.search import SearchIndex, tool_item
async def find():
    index = await SearchIndex.open(Path(sys.argv[1]))
    tools = {"t": ("time", "get_current_time"), "m": ("mail", "send")}
    await index.update([tool_item(key, server=server, name=name) for key, (server, name) in tools.items()])
    return index, await index.search("what time is it?", 1)
"""
SHOW = "index, [hit] = asyncio.run(find())\nprint(index.engine, hit.key)\nprint(index.notice)\n"


def run(program, home, **options):
    command = [sys.executable, "-c", program, str(home)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False, **options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_nothing_heavy_is_imported_before_the_first_use(tmp_path):
    heavy = ("numpy", "sqlite3", "tokenizers", "safetensors", "wordllama")
    assert run(OPEN + f"print([name for name in {heavy} if name in sys.modules])", tmp_path) == ["[]"]
    assert not list(tmp_path.iterdir())


def test_the_network_is_never_touched_nor_a_library_for_it_loaded(tmp_path):
    guard = (
        "def guard(event, arguments):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.gethostbyname', 'socket.sendto'):\n"
        "        raise RuntimeError(event)\n"
        "sys.addaudithook(guard)\n"
    )
    names = "print([name for name in ('requests', 'httpx', 'huggingface_hub', 'wordllama') if name in sys.modules])"
    assert run(OPEN + guard + SHOW + names, tmp_path) == ["semantic t", "None", "[]"]


def test_the_first_use_leaves_logging_and_the_environment_as_they_were(tmp_path):
    before = "import logging, os\nenvironment = dict(os.environ)\n"
    after = "print(logging.root.handlers, logging.root.level == logging.WARNING, environment == dict(os.environ))"
    assert run(OPEN + before + SHOW + after, tmp_path)[2] == "[] True True"


def test_without_wordllama_words_are_used_and_it_is_said(tmp_path):
    engine, notice = run(OPEN + "sys.modules['wordllama'] = None\n" + SHOW, tmp_path)
    assert engine == "lexical t"
    assert "because wordllama is not installed" in notice
    assert how_to_add("search") in notice


def test_with_a_broken_wordllama_words_are_used_and_it_is_said(tmp_path):
    package = tmp_path / "broken" / "wordllama"
    (package / "tokenizers").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('never imported')")
    (package / "tokenizers" / "l2_supercat_tokenizer_config.json").write_text("{}")
    path = f"sys.path.insert(0, {str(package.parent)!r})\n"
    engine, notice = run(OPEN + path + SHOW, tmp_path)
    assert engine == "lexical t"
    assert "because wordllama is installed, but cannot be read" in notice


def test_a_child_process_can_be_started_after_the_first_use_without_a_word(tmp_path):
    child = "import subprocess\nsubprocess.run([sys.executable, '-c', 'print(1)'], check=True)\n"
    assert "1" in run(OPEN + SHOW + child, tmp_path)


def test_the_program_in_the_docs_finds_what_it_says(tmp_path):
    page = Path(__file__).parents[3] / "docs" / "tool-search.md"
    [program] = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    [chosen] = run(program, tmp_path)
    assert chosen.startswith("weather/get_forecast 0.")
