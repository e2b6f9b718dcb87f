"""Who decides what an agent may do, and on what evidence."""

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.client.action import Foreign, Read, Run, Several, Write, find_action
from dragoman.client.policy import Decision, allow_all, allow_reads, ask, choose_outcome, deny_all, rules
from dragoman.client.rule import BadRule, PolicyRule, parse_rule
from dragoman.client.tool_call import ToolCallState
from dragoman.errors import InvalidParams
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


def deed_of(root, **call):
    return find_action(ToolCallState("c", **call), [str(root)])


# ── what a call does ────────────────────────────────────────────────────────────────────────────


def test_a_read_is_a_call_of_that_kind_that_names_its_file(root):
    path = str(root / "src/main.py")
    assert deed_of(root, kind="read", locations=located(path)) == Read(path, str(root))
    assert deed_of(root, kind="read", raw_input={"file_path": "src/main.py", "limit": 5}) == Read(path, str(root))
    assert deed_of(root, kind="search", raw_input={"path": str(root), "pattern": "x", "-n": True}) == Read(
        str(root), str(root)
    )


def test_the_kind_alone_makes_no_read(root):
    assert deed_of(root, kind="read", title="Read it") == Foreign("Read it")
    assert deed_of(root, kind="think", title="Think") == Foreign("Think")


def test_a_diff_is_a_write_whatever_the_kind(root):
    path = str(root / "a.md")
    for kind in ("read", "search", "think", "other", "edit"):
        assert deed_of(root, kind=kind, content=(diff(path),), locations=located(path)) == Write(path, str(root))


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
    assert deed_of(root, kind="read", locations=located(root / "src"), raw_input=raw_input) == Run("rm -rf x")


def test_a_read_that_says_more_than_is_understood_is_foreign(root):
    for more in ({"content": "new text"}, {"payload": "x"}, {"then": [["rm", "x"]]}, {"path": {"delete": "x"}}):
        raw_input = {"file": "src/main.py", **more}
        assert isinstance(deed_of(root, kind="read", locations=located(root / "src"), raw_input=raw_input), Foreign)
    assert isinstance(deed_of(root, kind="read", locations=located(root / "src"), raw_input="rm -rf x"), Foreign)


def test_a_read_that_shows_a_terminal_is_foreign(root):
    content = (v1.Terminal(terminal_id="t"),)
    assert isinstance(deed_of(root, kind="read", locations=located(root / "src"), content=content), Foreign)


def test_what_is_executed_and_not_shown_is_foreign_too(root):
    path = str(root / "a.md")
    action = deed_of(root, kind="execute", title="make", content=(diff(path),))
    assert action == Several((Write(path, str(root)), Foreign("make")))


def test_every_file_of_a_call_counts(root):
    one, two = str(root / "a.md"), str(root / "src/main.py")
    action = deed_of(root, kind="edit", content=(diff(one),), raw_input={"edits": [{"path": two}]})
    assert action == Several((Write(one, str(root)), Write(two, str(root))))
    moved = deed_of(root, kind="move", raw_input={"source": one, "destination": two})
    assert moved == Several((Write(one, str(root)), Write(two, str(root))))


@pytest.mark.parametrize(
    "path", ["out/secret", "../outside/secret", "/etc/passwd", "/proc/self/cwd/x", "self/x", "~/x"]
)
def test_a_path_that_leads_out_is_outside(root, path, monkeypatch):
    monkeypatch.chdir(root)  # so that what /proc says of us would lie inside
    action = deed_of(root, kind="read", raw_input={"path": path})
    assert isinstance(action, Read)
    assert action.root is None


def test_a_path_is_judged_by_where_it_leads(root):
    (root / "notes.md").symlink_to("src/main.py")
    assert deed_of(root, kind="edit", content=(diff(root / "notes.md"),)) == Write(str(root / "src/main.py"), str(root))
    assert deed_of(root, kind="edit", content=(diff(f"{root}/src/../new.md"),)) == Write(
        str(root / "new.md"), str(root)
    )


def test_a_page_is_no_file(root):
    assert deed_of(root, kind="read", raw_input={"uri": "https://example.com/x"}) == Read("https://example.com/x")
    path = str(root / "src/main.py")
    assert deed_of(root, kind="read", raw_input={"uri": f"file://{path}"}) == Read(path, str(root))


def test_without_a_directory_all_is_outside(root):
    call = ToolCallState("c", kind="read", locations=located(root / "src"))
    assert find_action(call) == Read(str(root / "src"))
    assert find_action(call, [str(root / "gone")]) == Read(str(root / "src"))


# ── the ready policies ──────────────────────────────────────────────────────────────────────────


async def test_reads_are_allowed_inside_and_nothing_else(root):
    policy = allow_reads()
    inside, outside = located(root / "src/main.py"), located(root / "out/secret")
    assert await verdict(policy, question_of(root, kind="read", locations=inside)) == "allow"
    assert await verdict(policy, question_of(root, kind="read", locations=outside)) == "deny"
    assert await verdict(policy, question_of(root, kind="read", locations=inside + outside)) == "deny"
    assert await verdict(policy, question_of(root, kind="read", content=(diff(root / "src/main.py"),))) == "deny"
    assert await verdict(policy, question_of(root, kind="read", raw_input={"path": "src", "command": "ls"})) == "deny"
    assert await verdict(policy, question_of(root, kind="read", title="Read")) == "deny"


async def test_all_is_allowed_or_nothing_is(root):
    for action in (Read("/x"), Run("rm -rf /"), Foreign("x")):
        assert await verdict(allow_all(), question_about(action)) == "allow"
        assert await verdict(deny_all(), question_about(action)) == "deny"


@pytest.mark.parametrize("answer", [True, Decision("allow", "always"), asyncio.sleep])
async def test_a_function_decides(answer):
    async def later(question):
        await asyncio.sleep(0)
        return True

    callback = later if answer is asyncio.sleep else lambda question: answer
    decision = await ask(callback).decide(question_about(Run("ls")))
    assert decision.verdict == "allow"
    assert decision.option_id == ("always" if isinstance(answer, Decision) else None)


@pytest.mark.parametrize("answer", [False, None, "yes", 1])
async def test_only_a_clear_yes_of_a_function_allows(answer):
    assert await verdict(ask(lambda question: answer), question_about(Run("ls"))) == "deny"


async def test_what_was_allowed_is_not_asked_again_when_exactly_that_is_done_once():
    asked = []
    policy = ask(lambda question: asked.append(question) or True)
    await policy.decide(question_about(Run("make"), cwd="/p"))
    assert await verdict(policy, question_about(Run("make", "/p"), cwd="/p", options=())) == "allow"
    assert len(asked) == 1
    await policy.decide(question_about(Run("make", "/p"), cwd="/p", options=()))
    assert len(asked) == 2


@pytest.mark.parametrize("other", [Run("make all"), Run("make", "/elsewhere"), Run("make", None, ("LD_PRELOAD",))])
async def test_what_differs_from_what_was_allowed_is_asked_again(other):
    asked = []
    policy = ask(lambda question: asked.append(question) or True)
    await policy.decide(question_about(Run("make")))
    await policy.decide(question_about(other, options=()))
    assert len(asked) == 2


async def test_a_write_of_another_text_than_was_allowed_is_asked_again():
    asked = []
    policy = ask(lambda question: asked.append(question) or True)
    action = Write("/project/a", "/project")
    await policy.decide(question_about(action, content=(diff("/project/a", "good"),)))
    await policy.decide(question_about(action, content=(diff("/project/a", "bad"),), options=()))
    assert len(asked) == 2
    await policy.decide(question_about(action, content=(diff("/project/a", "good"),), options=()))
    assert len(asked) == 2


# ── rules ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("allow:write:*.md", "/project/docs/a.md", "allow"),
        ("allow:write:*.md", "/project/docs/a.mdx", "deny"),
        ("allow:write:src/**", "/project/src/a/b.py", "allow"),
        ("allow:write:src/**", "/project/lib/src/b.py", "deny"),
        ("allow:write:src", "/project/src/b.py", "allow"),
        ("allow:write", "/project/x", "allow"),
        ("allow:write:*", "/project", "allow"),
        ("allow:read:*", "/project/x", "deny"),
        ("allow:write:/tmp/**", "/tmp/x", "allow"),
        ("allow:write:*", "/tmp/x", "deny"),
        ("allow:write", "/tmp/x", "deny"),
        ("allow:any", "/tmp/x", "allow"),
    ],
)
async def test_a_path_is_matched_as_in_a_gitignore(rule, path, expected):
    root = "/project" if path.startswith("/project") else None
    assert await verdict(rules([rule]), question_about(Write(path, root))) == expected


async def test_a_denial_by_name_holds_outside_too():
    policy = rules(["deny:read:*.pem", "deny:read:.git", "allow:any"])
    assert await verdict(policy, question_about(Read("/etc/ssl/x.pem"))) == "deny"
    assert await verdict(policy, question_about(Read("/project/.git/config", "/project"))) == "deny"
    assert await verdict(policy, question_about(Read("/project/x", "/project"))) == "allow"


async def test_the_first_rule_that_matches_wins():
    policy = rules(["allow:write:docs/**", "deny:write", "allow:write:*.md"])
    assert await verdict(policy, question_about(Write("/project/docs/x", "/project"))) == "allow"
    assert await verdict(policy, question_about(Write("/project/x.md", "/project"))) == "deny"


async def test_every_part_of_a_call_has_to_be_allowed():
    policy = rules(["allow:write:*.md", "allow:run:make"])
    good, bad = Write("/project/a.md", "/project"), Write("/project/a.py", "/project")
    assert await verdict(policy, question_about(Several((good, Run("make"))))) == "allow"
    assert await verdict(policy, question_about(Several((good, bad)))) == "deny"
    assert await verdict(policy, question_about(Several((good, Foreign("x"))))) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "git status -s",
        "cd src && git status",
        "git status 2>&1 | cat 2>/dev/null",
        "sh -c 'git status'",
        "git status --porcelain -- 'a b' \"c\"",
    ],
)
async def test_a_command_is_allowed_by_the_words_that_it_begins_with(command):
    assert (
        await verdict(rules(["allow:run:git status", "allow:run:cd *", "allow:run:cat"]), question_about(Run(command)))
        == "allow"
    )


@pytest.mark.parametrize(
    "command",
    [
        "git statusx",
        "git push",
        "git status; rm -rf x",
        "git status\nrm -rf x",
        "git status & rm -rf x",
        "git status | sh",
        "git status $(rm -rf x)",
        'git status "$(rm -rf x)"',
        "git status `rm -rf x`",
        "git status <(rm -rf x)",
        "git status > ~/.bashrc",
        "git status; > ~/.bashrc",
        "git status &> /dev/null rm -rf x",
        "git status &> x",
        "git status # '\nrm -rf x #'",
        "git status $'\\'' ; rm -rf x #'",
        "PATH=. git status",
        "sh -c 'git status; rm -rf x'",
        'bash -c "$X"',
        "env git status",
        "./git status",
        "'git status'",
        "git() { rm -rf x; }; git status",
        "git status 'unclosed",
        "",
    ],
)
async def test_a_command_that_does_more_is_not_allowed(command):
    for pattern in ("git status", "git status *"):
        assert await verdict(rules([f"allow:run:{pattern}"]), question_about(Run(command))) == "deny"


async def test_a_command_with_variables_that_could_change_it_is_not_allowed():
    policy = rules(["allow:run:git *"])
    assert await verdict(policy, question_about(Run("git status", None, ("LD_PRELOAD",)))) == "deny"
    assert await verdict(policy, question_about(Run("git status", None, ("NO_COLOR",)))) == "allow"


async def test_a_command_that_runs_another_is_allowed_only_word_by_word():
    policy = rules(["allow:run:find *", "allow:run:find . -name x"])
    assert await verdict(policy, question_about(Run("find . -exec rm {} ;"))) == "deny"
    assert await verdict(policy, question_about(Run("find . -name x"))) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "rm",
        "/bin/rm -rf x",
        "\\rm x",
        "r''m x",
        "cd x && rm y",
        "echo $(rm x)",
        'echo "a $(rm x) b" c',
        "sh -c 'rm x'",
        'bash -lc "cd y; rm x"',
        "sudo -u root rm x",
        "find . -exec rm {} ;",
        "X=1 rm x",
        ">out rm x",
        "echo &> out rm x",
        "if true; then rm x; fi",
        "for f in *; do rm $f; done",
        "(cd a; rm x)",
        "{ rm x; }",
        "$X x",
        "/bin/r? x",
        "{rm,-rf,x}",
        "eval 'r''m x'",
        "cat <<END\nEND\nrm x",
        "echo 'a",
        "r\\\nm x",
    ],
)
async def test_a_denied_command_is_found_where_it_hides(command):
    assert await verdict(rules(["deny:run:rm *", "allow:any"]), question_about(Run(command))) == "deny"


@pytest.mark.parametrize("command", ["git rm x", "echo rm x", "make | tee log", "ls *.rm", "echo 'rm x'", "[ -f rm ]"])
async def test_another_command_is_not_denied(command):
    assert await verdict(rules(["deny:run:rm *", "allow:any"]), question_about(Run(command))) == "allow"


async def test_a_title_allows_nothing_of_which_more_is_known():
    policy = rules([PolicyRule("allow", title="Read*")])
    assert await verdict(policy, question_about(Foreign("Read mail"), title="Read mail")) == "allow"
    assert await verdict(policy, question_about(Write("/project/x", "/project"), title="Read mail")) == "deny"
    assert await verdict(policy, question_about(Run("rm x"), title="Read mail")) == "deny"
    denying = rules([PolicyRule("deny", title="Read*"), "allow:any"])
    assert await verdict(denying, question_about(Run("ls"), title="Read mail")) == "deny"


async def test_a_title_narrows_a_path_or_a_command():
    policy = rules([PolicyRule("allow", "write", path="*.md", title="Edit*")])
    action = Write("/project/a.md", "/project")
    assert await verdict(policy, question_about(action, title="Edit a.md")) == "allow"
    assert await verdict(policy, question_about(action, title="Patch a.md")) == "deny"


async def test_a_rule_that_asks_asks():
    asked = []
    policy = rules(["allow:read", "ask:run:git *"], ask=lambda question: asked.append(question.action) or True)
    assert await verdict(policy, question_about(Run("git push"))) == "allow"
    assert await verdict(policy, question_about(Run("git push; rm x"))) == "deny"
    assert asked == [Run("git push")]


async def test_what_no_rule_speaks_of_is_denied_unless_told_otherwise():
    asked = []
    question = question_about(Foreign("x"), title="x")
    assert "no rule" in (await rules(["allow:read"]).decide(question)).reason
    assert await verdict(rules([], otherwise="allow"), question) == "allow"
    assert await verdict(rules([], otherwise="ask", ask=lambda q: asked.append(q) or False), question) == "deny"
    assert asked == [question]


async def test_a_denial_names_the_rule_and_the_deed():
    decision = await rules(["allow:run:ls", "deny:run:rm *"]).decide(question_about(Run("ls; rm x")))
    assert "deny:run:rm *" in decision.reason
    assert "rm x" in decision.reason


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "allow, deny or ask"),
        ("permit:read:x", "'permit'"),
        ("allow", "read, write, run, tool or any"),
        ("allow:reed:x", "'reed'"),
        ("allow:read:", "empty pattern"),
        ("allow:any:x", "gives `any` a pattern"),
        ("allow:read:../x", "goes up"),
        ("allow:read:~/x", "~"),
        ("deny:read:!x", "!"),
    ],
)
def test_a_rule_that_cannot_be_understood_says_why(text, problem):
    with pytest.raises(BadRule) as caught:
        parse_rule(text)
    assert problem in str(caught.value)
    assert "allow:read:src/**" in str(caught.value)


def test_a_rule_is_written_as_it_is_read():
    for rule in ("allow:read:src/**", "deny:run:rm *", "ask:tool:Search*", "allow:write", "deny:any", "allow:run:a:b"):
        assert str(parse_rule(rule)) == rule


def test_a_rule_with_a_pattern_for_something_else_is_refused():
    with pytest.raises(BadRule, match="path"):
        PolicyRule("allow", "run", path="*.md")
    with pytest.raises(BadRule, match="command"):
        PolicyRule("allow", "read", command="ls")


def test_rules_that_ask_need_somebody_to_ask():
    with pytest.raises(BadRule, match="nobody to ask"):
        rules(["ask:run"])


# ── the answer ──────────────────────────────────────────────────────────────────────────────────


def selected(option_id):
    return v1.SelectedPermissionOutcome(option_id=option_id)


def test_a_yes_is_the_option_that_allows_once_and_never_one_that_binds_for_longer():
    assert choose_outcome(Decision("allow"), OPTIONS) == selected("yes")
    assert choose_outcome(Decision("allow"), [OPTIONS[0], OPTIONS[3]]) == selected("no")


def test_a_no_is_the_option_that_rejects_once_and_the_other_where_there_is_none():
    assert choose_outcome(Decision("deny"), OPTIONS) == selected("no")
    assert choose_outcome(Decision("deny"), OPTIONS[:3]) == selected("never")


@pytest.mark.parametrize(("remember", "meta"), [("project", {"dragoman/remember": "project"}), ("month", None)])
def test_the_scope_that_was_chosen_is_told_to_an_agent_that_offers_it(remember, meta):
    scopes = write_scopes([RememberScope("session", "Here"), RememberScope("project", "In the project")])
    always = v1.PermissionOption(option_id="always", name="Here", kind="allow_always", meta=scopes)
    outcome = choose_outcome(Decision("allow", "always", remember=remember), [always])
    assert outcome == v1.SelectedPermissionOutcome(option_id="always", meta=meta)
    assert choose_outcome(Decision("allow", "always", remember=remember), OPTIONS).meta is None


def test_the_option_that_was_named_is_chosen_if_it_fits():
    assert choose_outcome(Decision("allow", "always"), OPTIONS) == selected("always")
    assert choose_outcome(Decision("deny", "always"), OPTIONS) == selected("no")
    assert choose_outcome(Decision("deny", "gone"), OPTIONS) == selected("no")


def test_without_a_way_to_say_no_the_question_was_asked_wrongly():
    with pytest.raises(InvalidParams, match="no option that rejects"):
        choose_outcome(Decision("deny"), OPTIONS[:2])


def test_without_a_way_to_say_yes_it_is_a_no():
    assert choose_outcome(Decision("allow"), OPTIONS[2:]) == selected("no")


def test_an_option_of_an_unknown_kind_is_never_chosen():
    strange = v1.PermissionOption(option_id="x", name="Allow for an hour", kind="allow_hour")
    assert choose_outcome(Decision("allow"), [strange, *OPTIONS]) == selected("yes")
    with pytest.raises(InvalidParams):
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
async def test_an_agent_that_claims_to_read_and_does_more_is_told_no(root, claim, option):
    call = {"toolCallId": "c", "title": "Read main.py", "kind": "read", "locations": [{"path": str(root / "src")}]}
    params = {"sessionId": "s", "toolCall": {**call, **claim}, "options": OFFERED}
    ask_us = {"id": 5, "method": "session/request_permission", "params": params}
    async with session_with(raw({}, [ask_us, {"hear": "answer"}, END]), root, policy=allow_reads()) as session:
        events = await read(session.prompt("go"))
    assert json.loads(text(events))["result"]["outcome"] == {"outcome": "selected", "optionId": option}


def test_every_rule_in_the_documentation_can_be_read():
    text = (Path(__file__).parents[2] / "docs" / "client-policy.md").read_text()
    written = [line.split("  ")[0] for line in text.splitlines() if line.startswith(("allow:", "deny:", "ask:"))]
    assert len(written) >= 6
    assert [str(parse_rule(line)) for line in written] == written
