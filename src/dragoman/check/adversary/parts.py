"""The parts that an adversary can play, by name."""

from dragoman.check.adversary import turns
from dragoman.check.adversary.player import Part

PARTS = {
    each.name: each
    for each in (
        Part("surprises", [turns.surprise]),
        Part("offers", [turns.use_offers]),
        Part("strange-lines", [turns.strange_lines]),
        Part("takes-back", [turns.take_back]),
        Part("is-cancelled", [turns.wait_for_cancel, turns.surprise]),
        Part("offers-all", [turns.linger], is_generous=True),
        Part("fails", [turns.fail]),
        Part("dies", [turns.die]),
        Part("unknown-version", [turns.surprise], version=65_535),
    )
}
"""Those that a client is started with, one after the other."""

TOUR_TURNS = {
    turns.surprise: "say anything, and deny or allow what is asked",
    turns.use_offers: "say anything: your client's files, terminals and forms are used",
    turns.strange_lines: "say anything: lines come that are no messages",
    turns.take_back: "say anything: a question comes and is taken back",
    turns.wait_for_cancel: "say anything, and cancel while you are asked",
    turns.fail: "say anything: the answer is an error",
    turns.die: "say anything: the agent dies",
}
"""For a client that a person drives: each turn of one conversation, and what the person does for it."""

TOUR = Part("tour", list(TOUR_TURNS), is_generous=True)
