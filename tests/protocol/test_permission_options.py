"""The default options of a permission request, and the scopes that an option offers."""

import pytest

from dragoman.protocol import v1
from dragoman.protocol.permission_options import RememberScope, find_default, read_scopes, write_scopes

ALL = ["allow_always", "reject_always", "allow_once", "reject_once"]


@pytest.mark.parametrize(
    ("kinds", "yes", "no"),
    [
        (ALL, 2, 3),
        (ALL[::-1], 1, 0),
        (["allow_always", "reject_always"], None, 1),
        (["allow_always"], None, None),
        (["allow_hour", None, "allow_once"], 2, None),
        (["allow_once", "allow_once"], 0, None),
        ([], None, None),
    ],
)
def test_default_option_is_found_by_kind_and_allows_once(kinds, yes, no):
    assert (find_default(kinds, "allow"), find_default(kinds, "reject")) == (yes, no)


def option(meta):
    return v1.PermissionOption(option_id="a", name="Always", kind="allow_always", meta=meta)


def test_scopes_round_trip():
    scopes = [RememberScope("session", "In this session"), RememberScope("project", "In this project")]
    assert read_scopes(option(write_scopes(scopes))) == scopes


@pytest.mark.parametrize(
    "meta", [None, {}, {"dragoman/remember": "session"}, {"dragoman/remember": [{"scope": 3, "name": "x"}]}]
)
def test_option_without_valid_scopes_has_none(meta):
    assert read_scopes(option(meta)) == []
