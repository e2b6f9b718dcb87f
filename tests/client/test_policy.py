"""Policies, and the actions on which they decide."""

import asyncio
import json

import pytest

from dragoman.client.permission.action import ActionGroup, OpaqueAction, ReadAction, RunAction, WriteAction, find_action
from dragoman.client.permission.policy import Decision, allow_all, allow_reads, ask_user, choose_outcome, deny_all
from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1
from dragoman.protocol.permission_options import RememberScope, write_scopes
from tests.client.driving import END, read, session_with, text
from tests.client.policies import OPTIONS, diff, located, question_about, question_of, verdict
from tests.commands import raw


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print()\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret\n")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "self").symlink_to("/proc/self/cwd")
    return root


def action_of(root, **call):
    return find_action(ToolCallState("c", **call), [str(root)])


# ── the action of a call ────────────────────────────────────────────────────────────────────────


def test_read_call_with_a_path_is_a_read(root):
    path = str(root / "src/main.py")
    assert action_of(root, kind="read", locations=located(path)) == ReadAction(path, str(root))
    assert action_of(root, kind="read", raw_input={"file_path": "src/main.py", "limit": 5}) == ReadAction(
        path, str(root)
    )
    assert action_of(root, kind="search", raw_input={"path": str(root), "pattern": "x", "-n": True}) == ReadAction(
        str(root), str(root)
    )


def test_read_kind_without_a_path_is_not_a_read(root):
    assert action_of(root, kind="read", title="Read it") == OpaqueAction("Read it")
    assert action_of(root, kind="think", title="Think") == OpaqueAction("Think")


def test_a_diff_is_a_write_whatever_the_kind(root):
    path = str(root / "a.md")
    for kind in ("read", "search", "think", "other", "edit"):
        assert action_of(root, kind=kind, content=(diff(path),), locations=located(path)) == WriteAction(
            path, str(root)
        )


@pytest.mark.parametrize(
    "raw_input",
    [
        {"command": "rm -rf x"},
        {"cmd": ["rm", "-rf", "x"]},
        {"command": ["bash", "-lc", "rm -rf x"]},
        {"command": "rm", "args": ["-rf", "x"]},
        {"options": [{"shellCommand": "rm -rf x"}]},
    ],
)
def test_a_command_in_the_raw_input_runs_whatever_the_kind(root, raw_input):
    raw_input = {"path": "src/main.py", **raw_input}
    assert action_of(root, kind="read", locations=located(root / "src"), raw_input=raw_input) == RunAction("rm -rf x")


def test_read_with_unknown_input_is_opaque(root):
    for more in ({"content": "new text"}, {"payload": "x"}, {"then": [["rm", "x"]]}, {"path": {"delete": "x"}}):
        raw_input = {"file": "src/main.py", **more}
        assert isinstance(
            action_of(root, kind="read", locations=located(root / "src"), raw_input=raw_input), OpaqueAction
        )
    assert isinstance(action_of(root, kind="read", locations=located(root / "src"), raw_input="rm -rf x"), OpaqueAction)


def test_read_with_a_terminal_is_opaque(root):
    content = (v1.Terminal(terminal_id="t"),)
    assert isinstance(action_of(root, kind="read", locations=located(root / "src"), content=content), OpaqueAction)


def test_execute_without_a_command_is_opaque(root):
    path = str(root / "a.md")
    action = action_of(root, kind="execute", title="make", content=(diff(path),))
    assert action == ActionGroup((WriteAction(path, str(root)), OpaqueAction("make")))


def test_every_file_of_a_call_counts(root):
    one, two = str(root / "a.md"), str(root / "src/main.py")
    action = action_of(root, kind="edit", content=(diff(one),), raw_input={"edits": [{"path": two}]})
    assert action == ActionGroup((WriteAction(one, str(root)), WriteAction(two, str(root))))
    moved = action_of(root, kind="move", raw_input={"source": one, "destination": two})
    assert moved == ActionGroup((WriteAction(one, str(root)), WriteAction(two, str(root))))


@pytest.mark.parametrize(
    "path", ["out/secret", "../outside/secret", "/etc/passwd", "/proc/self/cwd/x", "self/x", "~/x"]
)
def test_path_that_resolves_outside_is_outside(root, path, monkeypatch):
    monkeypatch.chdir(root)  # so that the links of /proc/self would lead inside
    action = action_of(root, kind="read", raw_input={"path": path})
    assert isinstance(action, ReadAction)
    assert action.root is None


def test_path_is_judged_by_its_target(root):
    (root / "notes.md").symlink_to("src/main.py")
    assert action_of(root, kind="edit", content=(diff(root / "notes.md"),)) == WriteAction(
        str(root / "src/main.py"), str(root)
    )
    assert action_of(root, kind="edit", content=(diff(f"{root}/src/../new.md"),)) == WriteAction(
        str(root / "new.md"), str(root)
    )


def test_url_is_not_a_file(root):
    assert action_of(root, kind="read", raw_input={"uri": "https://example.com/x"}) == ReadAction(
        "https://example.com/x"
    )
    path = str(root / "src/main.py")
    assert action_of(root, kind="read", raw_input={"uri": f"file://{path}"}) == ReadAction(path, str(root))


def test_without_directories_every_path_is_outside(root):
    call = ToolCallState("c", kind="read", locations=located(root / "src"))
    assert find_action(call) == ReadAction(str(root / "src"))
    assert find_action(call, [str(root / "gone")]) == ReadAction(str(root / "src"))


# ── the built-in policies ───────────────────────────────────────────────────────────────────────


async def test_allow_reads_only_allows_reads_inside(root):
    policy = allow_reads()
    inside, outside = located(root / "src/main.py"), located(root / "out/secret")
    assert await verdict(policy, question_of(root, kind="read", locations=inside)) == "allow"
    assert await verdict(policy, question_of(root, kind="read", locations=outside)) == "deny"
    assert await verdict(policy, question_of(root, kind="read", locations=inside + outside)) == "deny"
    assert await verdict(policy, question_of(root, kind="read", content=(diff(root / "src/main.py"),))) == "deny"
    assert await verdict(policy, question_of(root, kind="read", raw_input={"path": "src", "command": "ls"})) == "deny"
    assert await verdict(policy, question_of(root, kind="read", title="Read")) == "deny"


async def test_allow_all_and_deny_all(root):
    for action in (ReadAction("/x"), RunAction("rm -rf /"), OpaqueAction("x")):
        assert await verdict(allow_all(), question_about(action)) == "allow"
        assert await verdict(deny_all(), question_about(action)) == "deny"


@pytest.mark.parametrize("answer", [True, Decision("allow", "always"), asyncio.sleep])
async def test_a_function_decides(answer):
    async def later(question):
        await asyncio.sleep(0)
        return True

    callback = later if answer is asyncio.sleep else lambda question: answer
    decision = await ask_user(callback).decide(question_about(RunAction("ls")))
    assert decision.verdict == "allow"
    assert decision.option_id == ("always" if isinstance(answer, Decision) else None)


@pytest.mark.parametrize("answer", [False, None, "yes", 1])
async def test_only_true_or_an_allow_decision_allows(answer):
    assert await verdict(ask_user(lambda question: answer), question_about(RunAction("ls"))) == "deny"


async def test_allowed_action_is_not_asked_again_once():
    asked = []
    policy = ask_user(lambda question: asked.append(question) or True)
    await policy.decide(question_about(RunAction("make"), cwd="/p"))
    assert await verdict(policy, question_about(RunAction("make", "/p"), cwd="/p", options=())) == "allow"
    assert len(asked) == 1
    await policy.decide(question_about(RunAction("make", "/p"), cwd="/p", options=()))
    assert len(asked) == 2


@pytest.mark.parametrize(
    "other", [RunAction("make all"), RunAction("make", "/elsewhere"), RunAction("make", None, ("LD_PRELOAD",))]
)
async def test_different_action_is_asked_again(other):
    asked = []
    policy = ask_user(lambda question: asked.append(question) or True)
    await policy.decide(question_about(RunAction("make")))
    await policy.decide(question_about(other, options=()))
    assert len(asked) == 2


async def test_write_of_another_text_is_asked_again():
    asked = []
    policy = ask_user(lambda question: asked.append(question) or True)
    action = WriteAction("/project/a", "/project")
    await policy.decide(question_about(action, content=(diff("/project/a", "good"),)))
    await policy.decide(question_about(action, content=(diff("/project/a", "bad"),), options=()))
    assert len(asked) == 2
    await policy.decide(question_about(action, content=(diff("/project/a", "good"),), options=()))
    assert len(asked) == 2


# ── the answer ──────────────────────────────────────────────────────────────────────────────────


def selected(option_id):
    return v1.SelectedPermissionOutcome(option_id=option_id)


def test_allow_selects_the_allow_once_option():
    assert choose_outcome(Decision("allow"), OPTIONS) == selected("yes")
    assert choose_outcome(Decision("allow"), [OPTIONS[0], OPTIONS[3]]) == selected("no")


def test_deny_prefers_the_reject_once_option():
    assert choose_outcome(Decision("deny"), OPTIONS) == selected("no")
    assert choose_outcome(Decision("deny"), OPTIONS[:3]) == selected("never")


@pytest.mark.parametrize(("remember", "meta"), [("project", {"dragoman/remember": "project"}), ("month", None)])
def test_chosen_scope_is_sent_if_the_option_offers_it(remember, meta):
    scopes = write_scopes([RememberScope("session", "Here"), RememberScope("project", "In the project")])
    always = v1.PermissionOption(option_id="always", name="Here", kind="allow_always", meta=scopes)
    outcome = choose_outcome(Decision("allow", "always", remember=remember), [always])
    assert outcome == v1.SelectedPermissionOutcome(option_id="always", meta=meta)
    assert choose_outcome(Decision("allow", "always", remember=remember), OPTIONS).meta is None


def test_named_option_is_chosen_if_it_fits():
    assert choose_outcome(Decision("allow", "always"), OPTIONS) == selected("always")
    assert choose_outcome(Decision("deny", "always"), OPTIONS) == selected("no")
    assert choose_outcome(Decision("deny", "gone"), OPTIONS) == selected("no")


def test_denial_without_a_reject_option_is_invalid_params():
    with pytest.raises(InvalidParamsError, match="offered no reject option"):
        choose_outcome(Decision("deny"), OPTIONS[:2])


def test_allow_without_an_allow_option_rejects():
    assert choose_outcome(Decision("allow"), OPTIONS[2:]) == selected("no")


def test_an_option_of_an_unknown_kind_is_never_chosen():
    strange = v1.PermissionOption(option_id="x", name="Allow for an hour", kind="allow_hour")
    assert choose_outcome(Decision("allow"), [strange, *OPTIONS]) == selected("yes")
    with pytest.raises(InvalidParamsError):
        choose_outcome(Decision("allow"), [strange])


# ── over the wire ───────────────────────────────────────────────────────────────────────────────

OFFERED = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]


@pytest.mark.parametrize(
    ("claim", "option"),
    [
        ({}, "allow_once"),
        ({"content": [{"type": "diff", "path": "main.py", "newText": "x"}]}, "reject_once"),
        ({"rawInput": {"path": "main.py", "command": "rm main.py"}}, "reject_once"),
        ({"locations": [{"path": "/etc/passwd"}]}, "reject_once"),
        ({"locations": []}, "reject_once"),
    ],
)
async def test_claimed_read_that_does_more_is_denied(root, claim, option):
    call = {"toolCallId": "c", "title": "Read main.py", "kind": "read", "locations": [{"path": str(root / "src")}]}
    params = {"sessionId": "s", "toolCall": {**call, **claim}, "options": OFFERED}
    ask_us = {"id": 5, "method": "session/request_permission", "params": params}
    async with session_with(raw({}, [ask_us, {"hear": "answer"}, END]), root, policy=allow_reads()) as session:
        events = await read(session.prompt("go"))
    assert json.loads(text(events))["result"]["outcome"] == {"outcome": "selected", "optionId": option}
