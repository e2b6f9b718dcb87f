"""The bridge's own tests of viewers, questions, queues, servers and replays, with viewers on two nodes by turns."""

import sys
from contextlib import asynccontextmanager
from itertools import cycle

import pytest

from tests.bridge.delivery import test_coming_again as coming_again
from tests.bridge.nodes.test_two_nodes import node_of
from tests.bridge.registry import test_attaching as attaching
from tests.bridge.router import test_asking as asking
from tests.bridge.router import test_queue as queue
from tests.bridge.router import test_viewer_servers as servers
from tests.bridge.viewers import agent

TESTS = (
    coming_again.test_a_viewer_that_resumes_where_it_is_misses_nothing,
    coming_again.test_what_a_fork_says_at_once_reaches_whoever_asked_for_it,
    attaching.test_a_viewer_that_comes_in_the_middle_of_a_turn_misses_nothing_and_sees_nothing_twice,
    asking.test_all_are_asked_the_first_answer_counts_and_the_others_are_told,
    asking.test_an_error_settles_only_when_all_have_answered_with_one,
    asking.test_other_requests_go_to_one_viewer_that_can_answer_the_latest_to_have_prompted,
    asking.test_a_request_goes_to_the_next_viewer_when_the_first_leaves_and_to_nobody_in_words,
    queue.test_messages_wait_for_the_turn_and_are_sent_in_order_also_without_their_sender,
    queue.test_a_message_that_is_taken_out_is_answered_and_an_idle_session_lets_none_wait,
    servers.test_a_server_inside_a_viewer_is_asked_through_that_viewer,
    servers.test_its_notifications_reach_the_agent_and_those_of_other_viewers_do_not,
    servers.test_a_request_waits_for_a_viewer_that_comes_back_with_another_id_for_its_server,
    servers.test_a_second_viewer_with_a_server_of_that_name_stands_in_when_the_first_leaves,
    servers.test_a_request_that_the_agent_takes_back_is_cancelled_at_the_viewer,
)


class TwoNodes:
    """Two nodes as tests use a bridge: the first viewer comes to the first node, the next to the other, and so on."""

    def __init__(self, one, two):
        self._one = one
        self._next = cycle((one, two))

    def open_viewer(self, *access):
        return next(self._next).open_viewer(*access)

    def __getattr__(self, name):
        return getattr(self._one, name)


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
async def test_two_nodes_do_as_one_bridge(address, tmp_path, monkeypatch, test):
    @asynccontextmanager
    async def serve(home, *specs, **changes):
        spec = specs or (agent(),)
        async with (
            node_of(address, home, "one", *spec, **changes) as one,
            node_of(address, home, "two", *spec, **changes) as two,
        ):
            yield TwoNodes(one, two)

    monkeypatch.setattr(sys.modules[test.__module__], "serve", serve)
    await test(tmp_path)
