"""Fixtures for all tests of `proc`."""

import pytest

from tests.proc.processes import record_unrelated_children


@pytest.fixture(autouse=True)
def unrelated_children_are_recorded():
    record_unrelated_children()
