"""Dragoman is a library as well: importing and using it changes nothing for others in the same process."""

import json
import logging
import subprocess
import sys

from tests.process_state import read_process_state, tell_changes

IMPORTS_EVERYTHING = """
import importlib, json, pkgutil, sys
from tests.process_state import read_process_state, tell_changes
import dragoman
before = read_process_state()
for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
    if not module.name.endswith("__main__") and ".fork_server" not in module.name:
        importlib.import_module(module.name)
own = "('logger', 'psycopg')"  # which sets the level of its own logger, and comes only with a store in a database
json.dump([each for each in tell_changes(before, read_process_state()) if not each.startswith(own)], sys.stdout)
"""


def test_importing_any_module_changes_nothing_for_the_process():
    done = subprocess.run([sys.executable, "-c", IMPORTS_EVERYTHING], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_change_of_the_process_is_noticed(monkeypatch):
    before = read_process_state()
    monkeypatch.setattr(logging.getLogger("client"), "disabled", True)
    monkeypatch.setenv("LEFT_BEHIND", "yes")
    assert len(tell_changes(before, read_process_state())) == 2
