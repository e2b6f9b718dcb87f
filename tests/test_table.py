"""A test that runs a table reports every row that fails, as separate tests would."""

import pytest

from tests.table import each_row


def test_every_failing_row_is_reported_with_its_values():
    @each_row("a, b", [(1, 1), (1, 2), (3, 3), (4, 3)])
    def compare(a, b):
        assert a == b

    with pytest.raises(ExceptionGroup, match="2 of 4 rows failed") as caught:
        compare()
    assert [error.__notes__ for error in caught.value.exceptions] == [["in the row a=1, b=2"], ["in the row a=4, b=3"]]


def test_each_row_has_its_own_directory(tmp_path):
    @each_row("name", ["a", "b"])
    def write(tmp_path, name):
        tmp_path.joinpath(name).touch()
        assert len(list(tmp_path.iterdir())) == 1

    write(tmp_path=tmp_path)


async def test_two_tables_run_all_combinations_with_fixtures():
    seen = []

    @each_row("a", [1, 2])
    @each_row("b", "xy")
    async def note(where, a, b):
        where.append((a, b))

    await note(where=seen)
    assert seen == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]


def test_empty_table_fails():
    @each_row("a", [])
    def nothing(a):
        """Never runs."""

    with pytest.raises(AssertionError, match="no rows"):
        nothing()
