"""Prompts sent during a turn are queued, can be changed, and run in order."""

import pytest

from tests.bridge.viewers import OPTIONS, agent, join, serve, steps_text


def queue(viewer, session, name, *steps):
    """Send a prompt that may be queued, and return its request id."""
    prompt = [{"type": "text", "text": steps_text(*steps)}]
    mark = {"dragoman": {"queue": name}}
    return viewer.request("session/prompt", {"sessionId": session, "prompt": prompt, "_meta": mark})


async def queued(viewer, *names):
    """Wait until exactly these prompts are queued, and return the announcement."""

    def fits(message):
        params = message.get("params", {})
        return message.get("method") == "_dragoman/queue" and [one["id"] for one in params["prompts"]] == list(names)

    return (await viewer.until(fits))["params"]


async def begin(served):
    """Start a turn that waits for a question. Return the viewer, the session, the prompt and the question."""
    one = await join(served, extensions=True)
    session = await one.new()
    first = one.start_prompt(session, {"ask": OPTIONS})
    return one, session, first, await one.asked()


async def test_queued_prompts_run_in_order_without_their_sender(tmp_path):
    async with serve(tmp_path) as served:
        one, session, first, question = await begin(served)
        two = await join(served, extensions=True)
        await two.load(session)
        queue(one, session, "a", {"say": "A"})
        queue(one, session, "b", {"say": "B"})
        queue(one, session, "c", {"say": "C"})
        waiting = await queued(two, "a", "b", "c")
        assert waiting["held"] is False
        assert waiting["prompts"][0] == {"id": "a", "text": steps_text({"say": "A"}), "attachments": []}
        await two.ask("_dragoman/queue/change", {"sessionId": session, "id": "a", "text": steps_text({"say": "Z"})})
        await two.ask("_dragoman/queue/change", {"sessionId": session, "id": "b"})
        three = await join(served, extensions=True)
        await three.load(session)
        await queued(three, "a", "c")
        one.choose(question)
        await one.answer(first)
        await one.viewer.close()
        await two.until(lambda message: two.said()[-2:] == ["Z", "C"])
        await queued(two)
        late = await two.ask("_dragoman/queue/change", {"sessionId": session, "id": "a", "text": "late"})
        assert "sent or removed" in late["error"]["message"]


async def test_removed_prompt_is_answered_and_an_idle_session_queues_none(tmp_path):
    async with serve(tmp_path) as served:
        one, session, first, question = await begin(served)
        gone = queue(one, session, "a", {"say": "A"})
        await queued(one, "a")
        await one.ask("_dragoman/queue/change", {"sessionId": session, "id": "a"})
        assert (await one.answer(gone))["error"]["code"] == -32800
        one.choose(question)
        await one.answer(first)
        at_once = await one.answer(queue(one, session, "b", {"say": "B"}))
        assert at_once["result"] == {"stopReason": "end_turn"}
        assert one.said()[-1] == "B"


async def test_new_turn_releases_a_held_queue(tmp_path):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"stop": "cancelled"})
        turn = one.start_prompt(session, {"ask": OPTIONS})
        question = await one.asked()
        later = queue(one, session, "a", {"say": "A"})
        assert (await queued(one, "a"))["held"] is False
        one.choose(question)
        await one.answer(turn)
        assert (await one.answer(later))["result"] == {"stopReason": "end_turn"}


@pytest.mark.parametrize("end", [{"error": {"code": -32000, "message": "broke"}}, {"stop": "cancelled"}])
async def test_failed_turn_holds_the_queue_until_it_is_resumed(tmp_path, end):
    async with serve(tmp_path) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        first = one.start_prompt(session, {"ask": OPTIONS}, end)
        question = await one.asked()
        second = queue(one, session, "a", {"say": "A"})
        await queued(one, "a")
        one.choose(question)
        await one.answer(first)
        one.forget()
        two = await join(served, extensions=True)
        await two.load(session)
        assert (await queued(two, "a"))["held"] is True
        await two.ask("_dragoman/queue/resume", {"sessionId": session})
        assert (await one.answer(second))["result"] == {"stopReason": "end_turn"}
        assert one.said() == ["A"]


async def test_closed_session_and_full_queue_refuse_prompts(tmp_path):
    async with serve(tmp_path, agent(capabilities={"sessionCapabilities": {"close": {}}})) as served:
        one, session, first, question = await begin(served)
        waiting = [queue(one, session, f"m{number}", {"say": "x"}) for number in range(20)]
        refused = await one.answer(queue(one, session, "m20", {"say": "x"}))
        assert "20 messages" in refused["error"]["message"]
        one.choose(question)
        await one.answer(first)
        await one.answer(waiting[-1])
        assert one.said().count("x") == 20


@pytest.mark.parametrize(("outcome", "kept"), [("injected", ["Also this"]), ("promptRequired", [])])
async def test_steering_message_is_journalled_once_accepted(tmp_path, outcome, kept):
    async with serve(tmp_path, agent(results={"_session/steering": {"result": {"outcome": outcome}}})) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        prompt = [{"type": "text", "text": "Also this"}]
        answer = await one.ask("_session/steering", {"sessionId": session, "prompt": prompt})
        assert answer["result"] == {"outcome": outcome}
        two = await join(served, extensions=True)
        await two.load(session)
        said = [update for update in two.updates() if update["sessionUpdate"] == "user_message_chunk"]
        assert [update["content"]["text"] for update in said] == kept
