"""The API reference has every public name."""

import importlib
import re
from types import ModuleType

import pytest

from tests.docs.test_documentation import ROOT

PAGES = {
    "dragoman.client": "api-client.md",
    "dragoman.client.errors": "api-client.md",
    "dragoman.client.events": "api-client.md",
    "dragoman.client.policies": "api-client.md",
    "dragoman.agent": "api-agent.md",
    "dragoman.telemetry": "api-agent.md",
    "dragoman.bridge": "api-bridge.md",
    "dragoman.check": "api-check.md",
    "dragoman.testing": "api-testing.md",
}


@pytest.mark.parametrize("module", PAGES)
def test_every_public_name_of_a_module_is_in_the_reference_with_its_meaning(module):
    page = (ROOT / "docs" / PAGES[module]).read_text()
    [part] = re.findall(rf"^## {re.escape(module)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    entries = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", part, re.DOTALL | re.MULTILINE))
    imported = importlib.import_module(module)
    names = [name for name in imported.__all__ if not isinstance(getattr(imported, name), ModuleType)]
    assert list(entries) == names
    assert [name for name, text in entries.items() if not re.search(r"^\w", text, re.MULTILINE)] == []
    assert "async def" not in page


def test_the_index_of_the_reference_names_what_the_pages_have():
    index = (ROOT / "docs/api.md").read_text()
    for page in set(PAGES.values()):
        names = re.findall(r"^### (\w+)", (ROOT / "docs" / page).read_text(), re.MULTILINE)
        assert [name for name in names if f"]({page}#{name.lower()})" not in index] == []


def test_methods_that_are_no_part_of_the_api_are_not_in_the_reference():
    page = (ROOT / "docs/api-client.md").read_text()
    assert "await run(prompt: Prompt" in page
    assert "unless_cancelled" not in page
