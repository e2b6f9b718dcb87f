"""The syntax of policy rules, and the actions that they allow, deny or ask about."""

from pathlib import Path

import pytest

from dragoman.client.permission.action import ActionGroup, OpaqueAction, ReadAction, RunAction, WriteAction
from dragoman.client.permission.policy import rules
from dragoman.client.permission.rule import InvalidRuleError, PolicyRule, parse_rule
from tests.client.policies import question_about, verdict


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
async def test_path_pattern_matches_like_gitignore(rule, path, expected):
    root = "/project" if path.startswith("/project") else None
    assert await verdict(rules([rule]), question_about(WriteAction(path, root))) == expected


async def test_denial_by_name_applies_outside():
    policy = rules(["deny:read:*.pem", "deny:read:.git", "allow:any"])
    assert await verdict(policy, question_about(ReadAction("/etc/ssl/x.pem"))) == "deny"
    assert await verdict(policy, question_about(ReadAction("/project/.git/config", "/project"))) == "deny"
    assert await verdict(policy, question_about(ReadAction("/project/x", "/project"))) == "allow"


async def test_the_first_rule_that_matches_wins():
    policy = rules(["allow:write:docs/**", "deny:write", "allow:write:*.md"])
    assert await verdict(policy, question_about(WriteAction("/project/docs/x", "/project"))) == "allow"
    assert await verdict(policy, question_about(WriteAction("/project/x.md", "/project"))) == "deny"


async def test_every_action_of_a_call_must_be_allowed():
    policy = rules(["allow:write:*.md", "allow:run:make"])
    good, bad = WriteAction("/project/a.md", "/project"), WriteAction("/project/a.py", "/project")
    assert await verdict(policy, question_about(ActionGroup((good, RunAction("make"))))) == "allow"
    assert await verdict(policy, question_about(ActionGroup((good, bad)))) == "deny"
    assert await verdict(policy, question_about(ActionGroup((good, OpaqueAction("x"))))) == "deny"


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
async def test_command_is_allowed_by_its_first_words(command):
    assert (
        await verdict(
            rules(["allow:run:git status", "allow:run:cd *", "allow:run:cat"]), question_about(RunAction(command))
        )
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
        assert await verdict(rules([f"allow:run:{pattern}"]), question_about(RunAction(command))) == "deny"


async def test_command_with_risky_variables_is_not_allowed():
    policy = rules(["allow:run:git *"])
    assert await verdict(policy, question_about(RunAction("git status", None, ("LD_PRELOAD",)))) == "deny"
    assert await verdict(policy, question_about(RunAction("git status", None, ("NO_COLOR",)))) == "allow"


async def test_wrapper_command_is_allowed_only_word_by_word():
    policy = rules(["allow:run:find *", "allow:run:find . -name x"])
    assert await verdict(policy, question_about(RunAction("find . -exec rm {} ;"))) == "deny"
    assert await verdict(policy, question_about(RunAction("find . -name x"))) == "allow"


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
async def test_hidden_denied_command_is_found(command):
    assert await verdict(rules(["deny:run:rm *", "allow:any"]), question_about(RunAction(command))) == "deny"


@pytest.mark.parametrize("command", ["git rm x", "echo rm x", "make | tee log", "ls *.rm", "echo 'rm x'", "[ -f rm ]"])
async def test_another_command_is_not_denied(command):
    assert await verdict(rules(["deny:run:rm *", "allow:any"]), question_about(RunAction(command))) == "allow"


async def test_title_rule_does_not_allow_a_known_action():
    policy = rules([PolicyRule("allow", title="Read*")])
    assert await verdict(policy, question_about(OpaqueAction("Read mail"), title="Read mail")) == "allow"
    assert await verdict(policy, question_about(WriteAction("/project/x", "/project"), title="Read mail")) == "deny"
    assert await verdict(policy, question_about(RunAction("rm x"), title="Read mail")) == "deny"
    denying = rules([PolicyRule("deny", title="Read*"), "allow:any"])
    assert await verdict(denying, question_about(RunAction("ls"), title="Read mail")) == "deny"


async def test_a_title_narrows_a_path_or_a_command():
    policy = rules([PolicyRule("allow", "write", path="*.md", title="Edit*")])
    action = WriteAction("/project/a.md", "/project")
    assert await verdict(policy, question_about(action, title="Edit a.md")) == "allow"
    assert await verdict(policy, question_about(action, title="Patch a.md")) == "deny"


async def test_a_rule_that_asks_asks():
    asked = []
    policy = rules(["allow:read", "ask:run:git *"], ask=lambda question: asked.append(question.action) or True)
    assert await verdict(policy, question_about(RunAction("git push"))) == "allow"
    assert await verdict(policy, question_about(RunAction("git push; rm x"))) == "deny"
    assert asked == [RunAction("git push")]


async def test_unmatched_action_is_denied_by_default():
    asked = []
    question = question_about(OpaqueAction("x"), title="x")
    assert "no rule" in (await rules(["allow:read"]).decide(question)).reason
    assert await verdict(rules([], otherwise="allow"), question) == "allow"
    assert await verdict(rules([], otherwise="ask", ask=lambda q: asked.append(q) or False), question) == "deny"
    assert asked == [question]


async def test_a_denial_names_the_rule_and_the_action():
    decision = await rules(["allow:run:ls", "deny:run:rm *"]).decide(question_about(RunAction("ls; rm x")))
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
        ("allow:any:x", "has a pattern after `any`"),
        ("allow:read:../x", "contains .."),
        ("allow:read:~/x", "~"),
        ("deny:read:!x", "!"),
    ],
)
def test_invalid_rule_says_why(text, problem):
    with pytest.raises(InvalidRuleError) as caught:
        parse_rule(text)
    assert problem in str(caught.value)
    assert "allow:read:src/**" in str(caught.value)


def test_rule_round_trips_through_text():
    for rule in ("allow:read:src/**", "deny:run:rm *", "ask:tool:Search*", "allow:write", "deny:any", "allow:run:a:b"):
        assert str(parse_rule(rule)) == rule


def test_rule_with_a_mismatched_pattern_is_refused():
    with pytest.raises(InvalidRuleError, match="path"):
        PolicyRule("allow", "run", path="*.md")
    with pytest.raises(InvalidRuleError, match="command"):
        PolicyRule("allow", "read", command="ls")


def test_ask_rules_need_an_ask_function():
    with pytest.raises(InvalidRuleError, match="no function can ask"):
        rules(["ask:run"])


def test_every_documented_rule_is_valid():
    text = (Path(__file__).parents[2] / "docs" / "client-policy.md").read_text()
    written = [line.split("  ")[0] for line in text.splitlines() if line.startswith(("allow:", "deny:", "ask:"))]
    assert len(written) >= 6
    assert [str(parse_rule(line)) for line in written] == written
