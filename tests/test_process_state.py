"""Importing and using dragoman does not change the process for other code."""

import json
import logging
import subprocess
import sys

import pytest

from tests.process_state import list_changes, read_process_state

IMPORTS_EVERYTHING = """
import importlib, json, pkgutil, sys
from tests.process_state import read_process_state, list_changes
import dragoman
before = read_process_state()
for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    if not module.name.endswith("__main__") and ".fork_server" not in module.name:
        importlib.import_module(module.name)
own = "('logger', 'psycopg')"  # it sets its logger's level, and is imported only for a database store
json.dump([each for each in list_changes(before, read_process_state()) if not each.startswith(own)], sys.stdout)
"""


@pytest.mark.extended
def test_importing_any_module_does_not_change_the_process():
    done = subprocess.run([sys.executable, "-c", IMPORTS_EVERYTHING], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_change_of_the_process_is_detected(monkeypatch):
    before = read_process_state()
    monkeypatch.setattr(logging.getLogger("client"), "disabled", True)
    monkeypatch.setenv("LEFT_BEHIND", "yes")
    assert len(list_changes(before, read_process_state())) == 2
