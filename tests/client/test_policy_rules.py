"""Rules of a policy: how they are written, and which actions each allows, denies or asks about."""

from pathlib import Path

import pytest

from dragoman.client.action import Foreign, Read, Run, Several, Write
from dragoman.client.policy import rules
from dragoman.client.rule import BadRule, PolicyRule, parse_rule
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


async def test_a_denial_names_the_rule_and_the_action():
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


def test_every_rule_in_the_documentation_can_be_read():
    text = (Path(__file__).parents[2] / "docs" / "client-policy.md").read_text()
    written = [line.split("  ")[0] for line in text.splitlines() if line.startswith(("allow:", "deny:", "ask:"))]
    assert len(written) >= 6
    assert [str(parse_rule(line)) for line in written] == written
