"""The generated API reference has every public name."""

import importlib
import re
from types import ModuleType

from scripts.site import api_pages
from tests.table import each_row

TEXTS = api_pages.generate()
PAGES = {
    "dragoman.client": "api-client.md",
    "dragoman.client.adapters.langgraph": "api-client.md",
    "dragoman.client.adapters.pydantic_ai": "api-client.md",
    "dragoman.client.errors": "api-client.md",
    "dragoman.client.events": "api-client.md",
    "dragoman.client.policies": "api-client.md",
    "dragoman.agent": "api-agent.md",
    "dragoman.telemetry": "api-agent.md",
    "dragoman.bridge": "api-bridge.md",
    "dragoman.check": "api-check.md",
    "dragoman.testing": "api-testing.md",
}


@each_row("module", PAGES)
def test_every_public_name_is_in_the_reference(module):
    page = TEXTS[PAGES[module]]
    [part] = re.findall(rf"^## {re.escape(module)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    entries = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", part, re.DOTALL | re.MULTILINE))
    imported = importlib.import_module(module)
    names = [name for name in imported.__all__ if not isinstance(getattr(imported, name), ModuleType)]
    assert list(entries) == names
    assert [name for name, text in entries.items() if not re.search(r"^\w", text, re.MULTILINE)] == []
    assert "async def" not in page


def test_reference_index_matches_its_pages():
    index = TEXTS["api.md"]
    for page in set(PAGES.values()):
        names = re.findall(r"^### (\w+)", TEXTS[page], re.MULTILINE)
        assert [name for name in names if f"]({page}#{name.lower()})" not in index] == []


def test_internal_methods_are_not_in_the_reference():
    page = TEXTS["api-client.md"]
    assert "await run(prompt: Prompt" in page
    assert "unless_cancelled" not in page
