"""The tests of the bridge, with viewers on two nodes in turn: several nodes behave like one bridge.

Every test of these folders that serves an agent runs here as well, unless `ELSEWHERE` has the reason why it cannot. So
each new test of the bridge tests several nodes. CI runs the modules of `IN_CI`, and `make soak` runs all.
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

FOLDERS = ("agent_host", "delivery", "sessions", "router", "versions")

FILES = "files of journals, or their disk. test_failures.py tests database failures"
ONE_AGENT = "viewers that share one agent process, but each node has its own"
BRIDGE = "the bridge around its agents, which is the same in a node"
NOTHING_SERVED = "a part of the bridge, without an agent"
TOLD_LATER = "announcements of a session, which reach other nodes a moment later: see test_lists.py"
AGENTS_LIST = "the agent's own list, but several nodes list the database: see test_lists.py"
LINKS = "links in the memory of one node; of several nodes there is test_access.py"

ELSEWHERE = {
    "delivery/coming_again": {
        "second_load_during_a_history_read_misses_nothing": FILES,
        "history_part_is_read_once": FILES,
    },
    "delivery/full_disk": {
        "bridge_starts_and_reads_journals_on_a_full_disk": FILES,
        "session_can_be_deleted_on_a_full_disk": FILES,
        "our_agent_and_bridge_continue_once_there_is_space": FILES,
        "updates_during_a_full_disk_are_written_later": FILES,
    },
    "delivery/journals": {
        "full_disk_loses_only_updates_beyond_the_buffer": FILES,
        "many_updates_need_few_writes_and_one_sync_per_turn": FILES,
        "full_disk_warns_viewers_and_delays_writes_only": FILES,
        "machine_restart_invalidates_earlier_cursors": FILES,
        "journal_has_original_notifications_turns_and_permissions": FILES,
        "lost_records_invalidate_earlier_cursors": FILES,
        "torn_journal_is_repaired_and_read": FILES,
        "new_journal_replaces_the_old_one_only_once_written": FILES,
        "foreign_files_are_left_unchanged": FILES,
        "home_belongs_to_one_bridge_at_a_time": BRIDGE,
        "setup_params_are_in_no_file": FILES,
        "session_id_may_be_any_string": FILES,
        "idle_sessions_have_no_open_files": FILES,
    },
    "delivery/loop_thread": {
        "reused_session_id_syncs_in_a_thread": FILES,
        "journals_are_searched_in_a_thread": FILES,
    },
    "delivery/viewers": {
        "stream_of_an_unknown_session_is_refused": "a session that cannot be: another node may have it",
        "stalled_viewer_is_dropped_and_can_reconnect": "a moment in which another node may show nothing",
        "session_announcements_do_not_pile_up": TOLD_LATER,
        "too_many_viewers_are_refused": "the limit of viewers, which is one of each node",
    },
    "sessions/attaching": {
        "restarted_agent_is_asked_once_for_a_wanted_session": ONE_AGENT,
        "requests_for_a_session_that_cannot_open_are_refused": ONE_AGENT,
    },
    "sessions/restarting": {
        "temporarily_unreadable_journal_is_kept": FILES,
        "agent_restarted_during_a_journal_read_is_asked": FILES,
        "settings_from_the_agent_do_not_update_the_session_time": FILES,
        "failed_write_replaces_no_history": FILES,
    },
    "sessions/unprompted": {
        "unprompted_journal_is_deleted_after_a_week": FILES,
        "session_is_listed_while_viewed_or_once_prompted": TOLD_LATER,
    },
    "router/answer_links": {
        "link_ends_by_timeout_or_with_its_question": LINKS,
        "link_offers_one_time_options_and_settles_once": LINKS,
        "link_is_made_only_by_a_viewer_that_may_answer": LINKS,
    },
    "router/inspecting": {"wire_log_drops_the_oldest_lines": NOTHING_SERVED},
    "router/labels": {
        "session_that_only_the_agent_lists_can_be_renamed": AGENTS_LIST,
        "agent_with_archive_decides_what_is_archived": AGENTS_LIST,
        "list_filter_is_not_sent_to_agents_without_archive": AGENTS_LIST,
        "unreadable_labels_are_kept_in_a_copy": FILES,
    },
    "router/leaving": {
        "removed_journal_loses_its_history_but_no_viewer": FILES,
        "session_that_failed_to_open_is_in_no_list": "a session that is being opened, of which "
        "other nodes are not notified: see test_lists.py",
    },
    "router/limits": {"unread_http_answers_do_not_pile_up": BRIDGE},
    "router/newer_updates": {
        "login_status_is_requested_and_forwarded": ONE_AGENT,
        "subagent_that_a_viewer_opens_meanwhile_has_one_journal": FILES,
    },
    "router/passing": {"each_agent_has_its_process": BRIDGE},
    "router/readers": {"agent_gets_capabilities_of_viewers_present_at_its_start": ONE_AGENT},
    "router/search": {"reader_of_one_session_searches_only_that_session": TOLD_LATER},
    "router/session_pages": {
        "list_cursor_stays_valid_when_sessions_change": FILES,
        "cursor_of_another_list_is_refused": FILES,
        "reader_of_one_session_sees_no_others": FILES,
        "groups_are_separate_lists_and_follow_the_labels": FILES,
        "projects_have_their_latest_sessions_and_a_cursor": FILES,
        "busy_sessions_are_listed_from_any_page": FILES,
        "session_pages_are_latest_first_without_repeats": FILES,
        "titles_and_projects_of_all_sessions_are_searched": FILES,
    },
    "router/viewer_servers": {
        "restarted_agent_gets_the_same_server_ids": ONE_AGENT,
        "servers_with_equal_ids_get_distinct_ids_at_the_agent": ONE_AGENT,
    },
    "agent_host/crashing": {
        "agent_without_viewers_restarts_only_when_needed": ONE_AGENT,
        "two_loads_during_a_crash_start_one_agent": ONE_AGENT,
        "idle_agent_is_stopped_and_restarted_when_needed": ONE_AGENT,
        "bridge_stop_ends_agents_and_journals_the_end_of_the_turn": BRIDGE,
        "journal_records_the_end_of_a_crashed_turn": FILES,
        "concurrent_initialize_requests_start_one_agent": ONE_AGENT,
    },
    "agent_host/silence": {"signs_of_life_extend_the_wait_without_limit": NOTHING_SERVED},
    "agent_host/stopping": {
        "hanging_disk_does_not_block_close": FILES,
        "all_agents_are_stopped_in_parallel": BRIDGE,
        "journals_are_synced_in_parallel_on_close": FILES,
    },
}
"""Tests that apply to one bridge only, with the reason."""


IN_CI = (
    "delivery/coming_again",
    "sessions/restarting",
    "router/asking",
    "router/leaving",
    "router/newer_updates",
    "router/queue",
    "router/viewer_servers",
    "versions/changes",
)
"""The modules that always run. All together take minutes."""

IS_LONG = bool(os.environ.get("DRAGOMAN_SOAK"))
pytestmark = [pytest.mark.soak] if IS_LONG else []


class TwoNodes:
    """Two nodes with the interface of one bridge. Viewers connect to the nodes in turn."""

    def __init__(self, one, two):
        self._one = one
        self._next = cycle((one, two))

    def open_viewer(self, *access):
        return next(self._next).open_viewer(*access)

    def __getattr__(self, name):
        return getattr(self._one, name)


def find_modules():
    """Yield the test modules that serve an agent, each with its folder and name."""
    for folder in FOLDERS:
        for path in sorted((Path(viewers.__file__).parent / folder).glob("test_*.py")):
            module = importlib.import_module(f"tests.bridge.{folder}.{path.stem}")
            if getattr(module, "serve", None) is viewers.serve:
                yield f"{folder}/{path.stem.removeprefix('test_')}", module


def find_tests(module):
    """Return the tests of a module by name."""
    own = {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return {name.removeprefix("test_"): value for name, value in own.items() if name.startswith("test_")}


def find_fixtures(module):
    return {name: value for name, value in vars(module).items() if type(value) is type(bridge_of_two_nodes)}


@pytest.fixture(scope="session")
def one_database(postgres):
    """Return one database for all these tests, because creating one takes longer than most of them."""
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
    """Replace `serve` in a test of another module, so that it serves its agent on two nodes."""
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


def add_tests(place, module):
    """Add the tests of a module and its fixtures to this module."""
    for name, fixture in find_fixtures(module).items():
        assert name not in globals(), f"there is another fixture {name} already; name that of {place} otherwise"
        globals()[name] = fixture
    for name, test in find_tests(module).items():
        if name not in ELSEWHERE.get(place, {}):
            globals()[f"test_{place}::{name}"] = test


for each in MODULES if IS_LONG else IN_CI:
    add_tests(each, MODULES[each])


def test_skipped_tests_exist():
    named = {(place, name) for place, names in ELSEWHERE.items() for name in names}
    there = {(place, name) for place, module in MODULES.items() for name in find_tests(module)}
    assert named <= there
    assert set(IN_CI) <= MODULES.keys()
