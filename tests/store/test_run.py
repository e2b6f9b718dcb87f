"""Runs of messages: parts of them, the ids of their events, and copies that are made once."""

import pytest

from dragoman.store.runs import MessageRun, slice_runs


def run_of(first, count):
    return MessageRun(b"".join([b"%d\n" % number for number in range(first, first + count)]), first)


def join(messages, ids):
    return b" ".join(messages) if ids is None else b" ".join([*ids, *messages])


PARTS = [(0, 99, "3 4 5 6"), (3, 99, "4 5 6"), (4, 5, "5"), (0, 3, "3")]


@pytest.mark.parametrize(("after", "until", "numbers"), PARTS)
def test_slice_has_the_messages_between_two_records(after, until, numbers):
    part = run_of(3, 4).part(after, until)
    assert part.messages() == numbers.encode().split()
    assert (part.first, part.last) == (int(numbers[0]), int(numbers[-1]))


def test_full_slice_is_the_run_itself():
    run = run_of(3, 4)
    assert run.part(2, 6) is run
    assert run.fit(8) is run


@pytest.mark.parametrize(("size", "count"), [(0, 1), (1, 1), (3, 1), (4, 2), (7, 3)])
def test_slice_fits_the_room_but_has_at_least_one_message(size, count):
    assert run_of(3, 4).fit(size).messages() == run_of(3, count).messages()


def test_consecutive_slices_leave_nothing_out():
    runs = [run_of(2, 3), run_of(6, 10), run_of(17, 1)]  # the records between them are not for viewers
    wanted = [message for run in runs for message in run.messages()]
    for size in (1, 5, 9, 100):
        seen, at = [], 0
        while at < 20:
            given, given_bytes, at = slice_runs(runs, at, 20, size)
            assert given_bytes == sum(len(run.lines) for run in given)
            seen += [message for run in given for message in run.messages()]
        assert seen == wanted


def test_encoding_is_cached_from_the_second_use_on():
    run = run_of(3, 2)
    told = []
    run.count_copies(told.append)
    forms = [(join,), (join, b"e", 7), (join, b"e", 8)]
    assert [run.encode(*form) for form in forms] == [b"3 4", b"e.3.7 e.4.7 3 4", b"e.3.8 e.4.8 3 4"]
    assert told == []
    for form in forms:
        assert run.encode(*form) is run.encode(*form)
    assert len(told) == 3
    assert run.copied_bytes == sum(told)
    run.forget_copies()
    assert run.copied_bytes == 0
    assert run.encode(join) == b"3 4"


def test_line_ends_inside_a_message_become_spaces():
    assert MessageRun.of_message(b'{"a":\r\n1}').lines == b'{"a":  1}\n'


def test_unchanged_lines_are_checked_once_for_all_viewers():
    run, seen = run_of(3, 4), []

    def keep(lines):
        seen.append(lines)
        return lines

    assert [run.change(keep) for _ in range(3)] == [run, run, run]
    assert seen == [run.lines]
    assert run.change(lambda lines: lines.replace(b"3", b"9")).messages() == [b"9", b"4", b"5", b"6"]
