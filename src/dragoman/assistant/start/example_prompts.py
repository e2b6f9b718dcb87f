"""Five prompts to try, based on the files in a directory. They work with `guide` and with language models."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from dragoman.assistant.models.guide.routines import TEST_COMMANDS, TEST_TARGET

COUNT = 5

MAX_ENTRIES = 2_000
"""Entries of the directory that are read. A project's directory has some dozens."""
MAX_READ_BYTES = 64 * 1024
"""Bytes of a Makefile that are searched for its targets."""

_TEXTS = (".md", ".txt", ".rst", ".toml", ".yaml", ".yml", ".json", ".py", ".js", ".ts", ".rs", ".go", ".java")
_PLAIN_NAME = re.compile(r"\w[\w.-]*", re.ASCII)
"""A name that needs no quotes in a sentence."""


def example_prompts(directory: Path, *, for_guide: bool) -> list[str]:
    """Return prompts for a directory. Reads it, so call it in a thread."""
    files = DirectoryFacts(directory)
    found = _for_guide(files) if for_guide else _for_language_model(files)
    return [prompt for prompt, _ in zip(found, range(COUNT), strict=False)]


class DirectoryFacts:
    """The facts about a directory that the prompts use. An unreadable directory counts as empty."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.folders, self.files = _list(directory)

    @property
    def readme(self) -> str | None:
        """The README, if there is one."""
        return next((name for name in self.files if name.lower().startswith("readme") and _is_plain(name)), None)

    @property
    def is_project(self) -> bool:
        """Whether there is a README or a manifest."""
        manifests = ("pyproject.toml", "package.json", "Cargo.toml", "go.mod")
        return self.readme is not None or any(name in self.files for name in manifests)

    @property
    def has_tests(self) -> bool:
        """Whether a common test command fits."""
        names = {*self.files, *(f"{name}/" for name in self.folders)}
        return any(file in names and (file != "Makefile" or self._has_test_target()) for file, _ in TEST_COMMANDS)

    @property
    def is_repository(self) -> bool:
        """Whether this is the top of a git repository."""
        return (self._directory / ".git").exists()

    @property
    def source_folder(self) -> str | None:
        """The name of the folder with the sources."""
        return next((name for name in ("src", "lib", "app", "source") if name in self.folders), None)

    @property
    def text_file(self) -> str | None:
        """A file that can be read."""
        return self.readme or next((name for name in self.files if name.endswith(_TEXTS) and _is_plain(name)), None)

    @property
    def folder(self) -> str | None:
        """A folder that can be listed."""
        return self.source_folder or next((name for name in self.folders if _is_plain(name)), None)

    def _has_test_target(self) -> bool:
        try:
            with (self._directory / "Makefile").open("rb") as file:
                text = file.read(MAX_READ_BYTES)
        except OSError:
            return False
        return TEST_TARGET.search(text.decode(errors="replace")) is not None


def _for_guide(facts: DirectoryFacts) -> Iterator[str]:
    # Only prompts that the guide's rules understand, and that succeed in this directory.
    yield "What is this project?" if facts.is_project else "List the files here"
    if facts.has_tests:
        yield "Run the tests"
    if facts.is_repository:
        yield "What changed?"
    if facts.source_folder is not None:
        yield f"Find TODO in {facts.source_folder}"
    if facts.text_file is not None:
        yield f"Read {facts.text_file}"
    if "hello.txt" not in facts.files:
        yield 'Create hello.txt with "Hello from dragoman"'
    if facts.folder is not None:
        yield f"List {facts.folder}"
    yield "Find TODO"
    yield "Help"
    yield "Who are you?"


def _for_language_model(facts: DirectoryFacts) -> Iterator[str]:
    # The prompts about this directory come first. The caller uses the first five, so the general ones fill the rest.
    if facts.is_project:
        yield "What is this project? Answer in five sentences."
    elif facts.files or facts.folders:
        yield "Look at the files here and tell me what they are for."
    if facts.has_tests:
        yield "Run the tests and explain what fails, if anything does."
    if facts.is_repository:
        yield "Summarize the last ten commits."
    if facts.source_folder is not None:
        yield f"Explain how the code in {facts.source_folder} is organized."
    if facts.files or facts.folders:
        yield "Find the TODOs here and say which to do first."
    if facts.files and facts.readme is None:
        yield "Write a README for this directory."
    if facts.text_file is not None:
        yield f"Read {facts.text_file} and suggest three improvements."
    yield "Write a small Python script that counts the lines of the files in this directory."
    yield "Make a plan for a command-line tool that keeps notes, then ask me about it."
    yield "Write a .gitignore for a Python project."
    yield "Create a web page with a clock, in one HTML file."
    yield "Which tools do you have, and which of them ask me first?"


def _list(directory: Path) -> tuple[list[str], list[str]]:
    """Return the sorted names of the folders and of the files."""
    folders: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry, _ in zip(entries, range(MAX_ENTRIES), strict=False):
                if not entry.name.startswith("."):
                    (folders if entry.is_dir() else files).append(entry.name)
    except OSError:
        pass
    return sorted(folders), sorted(files)


def _is_plain(name: str) -> bool:
    return _PLAIN_NAME.fullmatch(name) is not None
