"""Fixtures of every test of `proc`."""

import pytest

from tests.proc.processes import note_strangers


@pytest.fixture(autouse=True)
def strangers_are_known():
    note_strangers()
