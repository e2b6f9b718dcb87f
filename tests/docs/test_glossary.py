"""The glossary names modules and classes that exist, and each word once."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "dragoman"
ROW = re.compile(r"^\| (?P<word>[^|]+) \| (?P<meaning>[^|]+) \| (?P<where>[^|]+) \|$", re.MULTILINE)
ROWS = [
    match for match in ROW.finditer((ROOT / "docs/glossary.md").read_text()) if match["word"] not in ("word", "---")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["word"])
def test_a_word_names_a_module_and_a_class_that_exist(row):
    module, *classes = re.findall(r"`([^`]+)`", row["where"])
    tree = ast.parse((SOURCE / module).read_text())
    assert set(classes) <= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def test_each_word_and_each_meaning_is_there_once():
    for column in ("word", "meaning"):
        counts = Counter(row[column].lower() for row in ROWS)
        assert [text for text, count in counts.items() if count > 1] == []
