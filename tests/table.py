"""Tables of cases that one test runs, because a separate test per row would cost more than the row."""

import functools
import inspect
from contextlib import contextmanager


def each_row(names, rows):
    """Run a test function once per row and report every row that fails. It takes the arguments of `parametrize`.

    Each row has its own `tmp_path` and shares all other fixtures, so use this only for functions that leave nothing
    else behind. Two of these decorators on one function run all combinations.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    tables = [dict(zip(names, row if len(names) > 1 else (row,), strict=True)) for row in rows]

    def decorate(function):
        if inspect.iscoroutinefunction(function):

            async def run(**fixtures):
                with _report(tables) as row:
                    for number, table in enumerate(tables):
                        with row(table):
                            await function(**_own(fixtures, number), **table)
        else:

            def run(**fixtures):
                with _report(tables) as row:
                    for number, table in enumerate(tables):
                        with row(table):
                            function(**_own(fixtures, number), **table)

        functools.update_wrapper(run, function)
        # pytest reads the fixtures from the signature. With `__wrapped__` it would take the columns for fixtures.
        del run.__wrapped__
        signature = inspect.signature(function)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in names]
        run.__signature__ = signature.replace(parameters=fixtures)
        return run

    return decorate


def _own(fixtures, number):
    if "tmp_path" not in fixtures:
        return fixtures
    own = fixtures["tmp_path"] / str(number)
    own.mkdir()
    return {**fixtures, "tmp_path": own}


@contextmanager
def _report(tables):
    failures = []

    @contextmanager
    def row(table):
        try:
            yield
        except Exception as error:  # noqa: BLE001 - all failures are reported together, below
            error.add_note("in the row " + ", ".join(f"{name}={repr(value)[:300]}" for name, value in table.items()))
            failures.append(error)

    yield row
    assert tables, "the table has no rows"
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(tables)} rows failed", failures)
