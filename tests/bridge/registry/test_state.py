"""The state machine of a session: its table, and the events that must not come."""

import pytest

from dragoman.bridge.registry.state import TRANSITIONS, LifeEvent, SessionLife, SessionPhase, WrongTransition

P, E = SessionPhase, LifeEvent


def life_of(*events, begins=P.JOURNAL_ONLY):
    life = SessionLife("s", begins)
    for event in events:
        life.take(event)
    return life


@pytest.mark.parametrize(
    ("begins", "events", "ends"),
    [
        (P.OPENING, [E.RESTORED], P.LIVE),
        (P.JOURNAL_ONLY, [E.REPLAY, E.RESTORED], P.LIVE),
        (P.JOURNAL_ONLY, [E.REPLAY, E.FAILED], P.JOURNAL_ONLY),
        (P.JOURNAL_ONLY, [E.REPLAY, E.REFUSE, E.REPLAY, E.RESTORED], P.LIVE),
        (P.JOURNAL_ONLY, [E.WAKE, E.ASK, E.RESTORED], P.LIVE),
        (P.LIVE, [E.AGENT_ENDED, E.WAKE, E.FAILED], P.ASLEEP),
        (P.LIVE, [E.AGENT_ENDED, E.WAKE, E.ASK, E.ASK, E.RESTORED], P.LIVE),
        (P.LIVE, [E.AGENT_ENDED, E.WAKE, E.ASK, E.SILENCE, E.SILENCE, E.RESTORED], P.LIVE),
        (P.LIVE, [E.AGENT_ENDED, E.WAKE, E.ASK, E.REFUSE], P.GONE),
        (P.LIVE, [E.CLOSE, E.OPEN, E.WAKE], P.WAKING),
        (P.LIVE, [E.WAKE, E.ASK], P.REOPENING),
    ],
)
def test_a_session_goes_through_its_phases(begins, events, ends):
    assert life_of(*events, begins=begins).phase is ends


@pytest.mark.parametrize(
    ("phase", "event"),
    [(phase, event) for phase in SessionPhase for event in LifeEvent if event not in TRANSITIONS[phase]],
)
def test_an_event_that_a_phase_does_not_have_is_an_error_and_changes_nothing(phase, event):
    life = SessionLife("s", phase)
    assert not life.can(event)
    with pytest.raises(WrongTransition, match=f"session s is {phase.name}, which has no {event.name}"):
        life.take(event)
    assert life.phase is phase


def test_every_phase_can_be_reached_and_only_deleted_is_the_end():
    reached = {P.OPENING, P.JOURNAL_ONLY, P.LIVE, P.DELETED}
    while more := {after for phase in reached for after in TRANSITIONS[phase].values()} - reached:
        reached |= more
    assert reached == set(SessionPhase) == set(TRANSITIONS)
    assert [phase for phase in SessionPhase if set(TRANSITIONS[phase].values()) <= {phase}] == [P.DELETED]


def test_a_deleted_session_stays_deleted_whatever_comes_late():
    life = life_of(E.REPLAY)
    life.delete()
    for event in LifeEvent:
        life.take(event)
    assert life.is_deleted


def test_the_reason_of_a_loss_is_told_until_the_agent_is_asked_again():
    life = life_of(E.REPLAY)
    life.take(E.REFUSE, "no such session")
    life.take(E.CLOSE)
    assert life.is_unreachable
    assert life.loss == "no such session"
    life.take(E.REPLAY)
    assert life.loss is None


def test_a_login_is_wanted_until_the_agent_has_the_session():
    life = life_of(E.WAKE, E.ASK, E.FAILED)
    life.login = "log in"
    life.take(E.WAKE)
    assert life.login == "log in"
    life.take(E.RESTORED)
    assert life.login is None
