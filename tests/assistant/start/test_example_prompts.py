"""The prompts of the empty page: five for every directory, all of which `guide` can do."""

import subprocess

import pytest

from dragoman.assistant.models.guide import GuideModel
from dragoman.assistant.start.example_prompts import example_prompts
from dragoman.protocol import v1
from tests.assistant.running import answer_with, running_agent

DIRECTORIES = {
    "empty": {},
    "notes": {"shopping list.txt": "milk\n", "todo.txt": "TODO: buy milk\n"},
    "project": {
        "README.md": "# Door\n\nIt opens.\n",
        "Makefile": "test:\n\techo all 3 passed\n",
        "src/door.py": "# TODO: a bell\n",
    },
    "scripts": {"run.py": "print('hi')\n", "hello.txt": "hello\n", "data/a.csv": "1\n"},
}


@pytest.fixture(params=DIRECTORIES)
def directory(request, tmp_path):
    place = tmp_path / request.param
    place.mkdir()
    for name, text in DIRECTORIES[request.param].items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    if request.param == "project":
        subprocess.run(["git", "init", "-q", str(place)], check=True)
    return place


async def test_guide_answers_each_example_prompt(directory, tmp_path):
    prompts = example_prompts(directory, for_guide=True)
    assert len(set(prompts)) == 5
    async with running_agent(tmp_path / "home", model=GuideModel()) as client:
        answer_with(client, "allow_once")
        await client.initialize()
        session = await client.new_session(str(directory))
        for prompt in prompts:
            before = len(client.updates)
            assert (await client.prompt(session, prompt)).stop_reason == "end_turn"
            updates = [each.update for each in client.updates[before:]]
            said = "".join(each.content.text for each in updates if isinstance(each, v1.AgentMessageChunk))
            assert said, prompt
            failed = [each for each in updates if isinstance(each, v1.ToolCallUpdate) and each.status == "failed"]
            assert failed == [], (prompt, failed)
    assert (directory / "hello.txt").exists() == (directory.name != "project")


def test_language_model_gets_five_other_prompts(directory):
    prompts = example_prompts(directory, for_guide=False)
    assert len(set(prompts)) == 5
    assert not set(prompts) & set(example_prompts(directory, for_guide=True))


def test_prompts_name_existing_files(tmp_path):
    (tmp_path / "README.rst").write_text("x")
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    assert example_prompts(tmp_path, for_guide=True) == [
        "What is this project?",
        "Run the tests",
        "Find TODO in src",
        "Read README.rst",
        'Create hello.txt with "Hello from dragoman"',
    ]


def test_names_with_special_characters_are_in_no_prompt(tmp_path):
    for name in ("readme\u202e.md", "read me.txt", "--help.py"):
        (tmp_path / name).write_text("x")
    prompts = "\n".join([*example_prompts(tmp_path, for_guide=True), *example_prompts(tmp_path, for_guide=False)])
    assert not {"\u202e", "read me", "--help"} & {mark for mark in ("\u202e", "read me", "--help") if mark in prompts}


def test_missing_directory_counts_as_empty(tmp_path):
    assert len(example_prompts(tmp_path / "gone", for_guide=True)) == 5
