"""What an agent may do in `dragoman run` without a terminal, and what is printed about it."""

import json

import pytest

from dragoman.testing import steps
from tests.assistant.profile.test_skills import write_skill
from tests.commands import dragoman, scripted


def run(*options, prompt="go", turn=None, **settings):
    agent = scripted(turn or [steps.AskPermission(title="rm -rf /")])
    return dragoman_run(prompt, *options, "--", *agent, **settings)


def dragoman_run(*arguments, **settings):
    return dragoman("run", *arguments, **settings)


def test_nothing_is_allowed_if_no_user_can_be_asked():
    done = run()
    assert done.stdout == "outcome: selected no\n"
    assert done.stderr == "[not allowed: rm -rf /; no user could be asked; --policy all allows it]\n"
    assert done.returncode == 6


def test_policy_deny_says_so():
    done = run("--policy", "deny")
    assert done.stdout == "outcome: selected no\n"
    assert "--policy deny allows nothing; --policy all allows it]" in done.stderr
    assert done.returncode == 6


def test_policy_all_allows_everything():
    done = run("--policy", "all")
    assert (done.stdout, done.stderr, done.returncode) == ("outcome: selected yes\n", "[rm -rf /]\n", 0)


def test_policy_reads_allows_only_reading():
    done = run("--policy", "reads")
    assert done.stdout == "outcome: selected no\n"
    assert "the session's directory; --policy all allows it]" in done.stderr
    assert done.returncode == 6


def test_our_own_agent_does_only_allowed_things(tmp_path):
    assert dragoman_run("write `hello` into a.txt", cwd=tmp_path).returncode == 6
    assert not (tmp_path / "a.txt").exists()
    assert dragoman_run("write `hello` into a.txt", "--policy", "all", cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.txt").read_text().strip() == "hello"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ((), "no user could be asked"),
        (("--policy", "deny"), "--policy deny allows nothing"),
        (("--policy", "reads"), "--policy reads allows only reading in the session's directory"),
        (("--policy", "allow:read"), "no rule matches a tool of the agent"),
    ],
)
def test_ignored_project_agent_file_suggests_naming_it(tmp_path, options, reason):
    (tmp_path / "dragoman.yaml").write_text("instructions: Be brief.\n")
    done = dragoman_run("hello", *options, cwd=tmp_path)
    [line] = [line for line in done.stderr.splitlines() if "not allowed" in line]
    assert line.startswith(f"[not allowed: Use {tmp_path}/dragoman.yaml; {reason}")
    assert line.endswith("; --agent dragoman.yaml uses it]")
    assert "--policy all" not in done.stderr
    named = dragoman_run("hello", *options, "--agent", "dragoman.yaml", cwd=tmp_path)
    assert ("not allowed" in named.stderr, named.returncode) == (False, 0)


def test_ignored_skills_of_a_project_do_not_fail_the_run(tmp_path):
    write_skill(tmp_path / ".claude/skills")
    done = dragoman_run("hello", cwd=tmp_path)
    assert (
        f"[not allowed: Use {tmp_path}/.claude/skills; no user could be asked; `dragoman chat` asks you]" in done.stderr
    )
    assert done.returncode == 0
    (tmp_path / "dragoman.yaml").write_text("")
    named = dragoman_run("/skills", "--agent", "dragoman.yaml", cwd=tmp_path)
    assert ("`/pdf`" in named.stdout, "not allowed" in named.stderr) == (True, False)


def test_tsagent_file_is_suggested_by_its_name(tmp_path):
    (tmp_path / "tsagent.yaml").write_text("settings: {maxChatTurns: 7}\n")
    assert "; --agent tsagent.yaml uses it]" in dragoman_run("hello", cwd=tmp_path).stderr


def test_first_matching_rule_decides(tmp_path):
    rules = ["--policy", "allow:write:*.md", "--policy", "deny:any"]
    assert dragoman_run("write `hello` into a.md", *rules, cwd=tmp_path).returncode == 0
    assert (tmp_path / "a.md").exists()
    done = dragoman_run("write `hello` into a.txt", *rules, cwd=tmp_path)
    assert done.returncode == 6
    assert "the rule deny:any matches writing" in done.stderr
    assert not (tmp_path / "a.txt").exists()


def test_rules_may_be_lines_of_one_argument(tmp_path):
    rules = "allow:write:*.md\ndeny:any\n"
    assert dragoman_run("write `hello` into a.md", "--policy", rules, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["ask"], "needs a terminal"),
        (["ask:any"], "needs a terminal"),
        (["perhaps"], "'perhaps'"),
        (["all", "deny:any"], "--policy all cannot be combined"),
    ],
)
def test_unusable_policy_is_a_usage_error(given, words):
    done = run(*[part for each in given for part in ("--policy", each)])
    assert done.returncode == 2
    assert words in done.stderr


def test_cancelled_turn_after_a_denial_counts_as_denied():
    done = run(turn=[steps.AskPermission(), steps.Stop("cancelled")])
    assert done.returncode == 6


def test_limit_outweighs_a_denial():
    done = run(turn=[steps.AskPermission(), steps.Stop("max_tokens")])
    assert done.returncode == 3


def test_denials_are_in_the_json():
    done = run("--format", "json")
    assert done.returncode == 6
    answer = json.loads(done.stdout)
    assert answer["denied"] == [{"title": "rm -rf /", "reason": "no user could be asked; --policy all allows it"}]
    assert [call["status"] for call in answer["tool_calls"]] == ["failed"]
