"""The bridge's own tests, with viewers on two nodes by turns: several nodes do as one bridge.

Every test of these folders that serves an agent runs here too, unless `ELSEWHERE` says why it cannot: a new test of the
bridge is a test of several nodes from its first day. CI runs those of `IN_CI`, `make soak` all.
"""

import asyncio
import importlib
import os
import sys
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path

import psycopg
import pytest

from tests.bridge import viewers
from tests.bridge.nodes.test_two_nodes import node_of
from tests.bridge.viewers import agent
from tests.store.postgres import make_database

FOLDERS = ("delivery", "registry", "router", "supervisor", "versions")

FILES = "the files of journals, or the disk that they are on; of a database in trouble there is test_failures.py"
ONE_AGENT = "viewers that share one process of the agent: each node has its own"
BRIDGE = "the bridge around its agents, of which a node is the same"
NOTHING_SERVED = "a part of the bridge, without an agent"
TOLD_LATER = "news of a session, which other nodes are told a moment later: see test_lists.py"
AGENTS_LIST = "the agent's own list: that of several nodes is of the database, see test_lists.py"
LINKS = "links in the memory of one node; of several nodes there is test_access.py"

ELSEWHERE = {
    "delivery/coming_again": {"a_viewer_that_goes_back_while_history_is_being_read_misses_nothing": FILES},
    "delivery/full_disk": {
        "a_bridge_begins_and_reads_its_journals_on_a_full_disk": FILES,
        "a_session_is_deleted_from_a_full_disk": FILES,
        "our_agent_and_the_bridge_in_one_home_go_on_once_there_is_room": FILES,
        "what_is_said_while_the_disk_is_full_is_there_once_it_is_not": FILES,
    },
    "delivery/journals": {
        "a_disk_that_stays_full_loses_only_what_is_too_much_to_hold": FILES,
        "a_flood_is_written_in_few_writes_and_synced_at_the_end_of_the_turn": FILES,
        "a_full_disk_stops_no_turn_viewers_are_told_and_all_is_written_once_there_is_space": FILES,
        "a_journal_fits_no_cursor_from_before_the_machine_was_started_again": FILES,
        "a_journal_has_every_notification_as_it_came_and_the_turns_and_the_permissions": FILES,
        "a_journal_of_which_something_was_lost_fits_no_cursor_from_before": FILES,
        "a_journal_that_a_crash_has_torn_is_mended_and_read": FILES,
        "a_journal_that_finds_no_space_takes_the_place_of_an_older_one_only_once_it_is_there": FILES,
        "files_that_are_no_journals_are_left_alone": FILES,
        "one_bridge_at_a_time_has_a_home": BRIDGE,
        "what_a_session_was_opened_with_is_in_no_file": FILES,
        "session_ids_may_be_anything": FILES,
        "sessions_that_are_not_at_work_hold_no_files_open": FILES,
    },
    "delivery/viewers": {
        "a_stream_of_a_session_that_cannot_be_is_refused": "a session that cannot be: another node may have it",
        "a_viewer_that_takes_nothing_is_dropped_and_can_come_back": "a moment in which another node may show nothing",
        "news_of_a_session_does_not_pile_up": TOLD_LATER,
        "too_many_viewers_are_refused_in_words": "the limit of viewers, which is one of each node",
    },
    "registry/attaching": {
        "an_agent_that_is_started_again_for_a_viewer_is_asked_once_for_a_session_that_was_wanted": ONE_AGENT,
        "requests_for_a_session_that_cannot_be_opened_are_refused": ONE_AGENT,
    },
    "registry/restarting": {
        "a_journal_that_cannot_be_read_just_now_is_not_given_up": FILES,
        "an_agent_that_is_started_again_while_a_journal_is_read_is_asked_then": FILES,
        "settings_that_the_agent_tells_do_not_make_an_old_session_a_new_one": FILES,
        "what_cannot_be_written_takes_the_place_of_nothing": FILES,
    },
    "registry/unprompted": {
        "its_journal_is_deleted_after_a_week": FILES,
        "lists_have_it_while_somebody_looks_at_it_and_from_its_first_prompt_on": TOLD_LATER,
    },
    "router/answer_links": {
        "a_link_ends_with_its_time_or_with_its_question": LINKS,
        "a_link_offers_what_holds_once_and_settles_the_question_once": LINKS,
        "links_are_made_by_those_who_were_asked_and_may_answer": LINKS,
    },
    "router/inspecting": {"the_wire_log_forgets_the_oldest_lines": NOTHING_SERVED},
    "router/labels": {
        "a_session_that_only_the_agent_lists_can_be_given_a_title": AGENTS_LIST,
        "an_agent_that_archives_is_asked_and_its_list_is_followed": AGENTS_LIST,
        "an_agent_that_does_not_archive_is_not_told_of_the_filter": AGENTS_LIST,
        "labels_that_cannot_be_read_are_kept_aside": FILES,
    },
    "router/leaving": {
        "a_journal_that_was_taken_away_costs_its_history_and_no_viewer": FILES,
        "a_session_that_could_not_be_opened_is_not_left_in_anybodys_list": "a session that is being opened, of which "
        "other nodes are not told: see test_lists.py",
    },
    "router/limits": {"over_http_answers_that_nobody_takes_do_not_pile_up": BRIDGE},
    "router/newer_updates": {"the_state_of_the_login_is_asked_and_told": ONE_AGENT},
    "router/passing": {"several_agents_are_several_processes": BRIDGE},
    "router/readers": {"the_agent_is_told_what_those_can_do_who_are_there_when_it_starts": ONE_AGENT},
    "router/search": {"a_reader_of_one_session_finds_words_of_that_alone": TOLD_LATER},
    "router/session_pages": {
        "a_cursor_holds_when_sessions_come_go_and_move_up": FILES,
        "a_cursor_of_another_list_is_refused": FILES,
        "a_reader_of_one_session_learns_nothing_of_the_others": FILES,
        "groups_are_lists_of_their_own_and_follow_the_labels": FILES,
        "projects_come_with_their_latest_sessions_and_lead_on": FILES,
        "sessions_at_work_are_told_wherever_they_are_in_the_list": FILES,
        "sessions_come_in_pages_the_latest_first_and_each_once": FILES,
        "titles_and_projects_are_searched_in_all_sessions": FILES,
    },
    "router/viewer_servers": {
        "a_new_life_of_the_agent_is_given_the_ids_of_the_one_before": ONE_AGENT,
        "servers_of_one_id_have_two_ids_at_the_agent_and_their_own_at_their_viewers": ONE_AGENT,
    },
    "supervisor/crashing": {
        "an_agent_that_nobody_looks_at_is_started_again_only_when_needed": ONE_AGENT,
        "an_idle_agent_is_stopped_and_comes_back_when_needed": ONE_AGENT,
        "the_bridge_ends_with_its_agents_and_a_turn_under_way_is_ended_in_its_journal": BRIDGE,
        "the_end_of_a_turn_that_a_crash_ended_is_in_the_journal": FILES,
        "two_viewers_that_greet_at_once_share_one_agent": ONE_AGENT,
    },
    "supervisor/silence": {"signs_of_life_are_waited_for_however_long_it_takes": NOTHING_SERVED},
    "supervisor/stopping": {
        "a_disk_that_does_not_answer_does_not_hold_up_the_end": FILES,
        "all_agents_are_told_to_end_before_any_of_them_has": BRIDGE,
        "journals_reach_the_disk_side_by_side_at_the_end": FILES,
    },
}
"""Tests of what holds for one bridge alone, with the reason: what they are about."""


IN_CI = (
    "delivery/coming_again",
    "registry/restarting",
    "router/asking",
    "router/leaving",
    "router/newer_updates",
    "router/queue",
    "router/viewer_servers",
    "versions/changes",
)
"""The modules that run each time: together the rest takes minutes."""

IS_LONG = bool(os.environ.get("DRAGOMAN_SOAK"))
pytestmark = [pytest.mark.soak] if IS_LONG else []


class TwoNodes:
    """Two nodes as tests use a bridge: the first viewer comes to the first node, the next to the other, and so on."""

    def __init__(self, one, two):
        self._one = one
        self._next = cycle((one, two))

    def open_viewer(self, *access):
        return next(self._next).open_viewer(*access)

    def __getattr__(self, name):
        return getattr(self._one, name)


def find_modules():
    """Give the modules of tests that serve an agent, each with its folder and name."""
    for folder in FOLDERS:
        for path in sorted((Path(viewers.__file__).parent / folder).glob("test_*.py")):
            module = importlib.import_module(f"tests.bridge.{folder}.{path.stem}")
            if getattr(module, "serve", None) is viewers.serve:
                yield f"{folder}/{path.stem.removeprefix('test_')}", module


def find_tests(module):
    """Give the tests of a module by their names."""
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return {name.removeprefix("test_"): value for name, value in own.items() if name.startswith("test_")}


def find_fixtures(module):
    return {name: value for name, value in vars(module).items() if type(value) is type(bridge_of_two_nodes)}


@pytest.fixture(scope="session")
def one_database(postgres):
    """A database for all these tests: to make one takes longer than most of them."""
    return asyncio.run(make_database(postgres))


@pytest.fixture
def empty_database(one_database):
    with psycopg.connect(one_database, autocommit=True) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'dragoman_%'").fetchall()
        emptied = sorted({name for (name,) in tables} - {"dragoman_schema"})
        connection.execute(f"TRUNCATE {', '.join(emptied)} CASCADE")
    return one_database


@pytest.fixture(autouse=True)
def bridge_of_two_nodes(request, empty_database, monkeypatch):
    """Have a test of another module serve its agent on two nodes."""
    module, address, served = sys.modules[request.function.__module__], empty_database, []
    if module is sys.modules[__name__]:
        yield
        return

    @asynccontextmanager
    async def serve(home, *specs, **changes):
        spec = specs or (agent(),)
        served.append(spec)
        async with (
            node_of(address, home, "one", *spec, **changes) as one,
            node_of(address, home, "two", *spec, **changes) as two,
        ):
            yield TwoNodes(one, two)

    monkeypatch.setattr(module, "serve", serve)
    yield
    assert served, "this test serves no agent: name it in ELSEWHERE"


MODULES = dict(find_modules())


def take_over(place, module):
    """Have the tests of a module collected here, with its fixtures."""
    for name, fixture in find_fixtures(module).items():
        assert name not in globals(), f"there is another fixture {name} already; name that of {place} otherwise"
        globals()[name] = fixture
    for name, test in find_tests(module).items():
        if name not in ELSEWHERE.get(place, {}):
            globals()[f"test_{place}::{name}"] = test


for each in MODULES if IS_LONG else IN_CI:
    take_over(each, MODULES[each])


def test_every_test_that_holds_for_one_bridge_alone_is_there():
    named = {(place, name) for place, names in ELSEWHERE.items() for name in names}
    there = {(place, name) for place, module in MODULES.items() for name in find_tests(module)}
    assert named <= there
    assert set(IN_CI) <= MODULES.keys()
