"""Random commands in the real shell: every script that runs is bound to its content."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dragoman.assistant.tools.scripts import bind
from tests.assistant.tools.rewriting import Project

SOAK = bool(os.environ.get("DRAGOMAN_SOAK"))


def seldom(common, rare):
    """Choose mostly common values, because one rare value makes a whole command unclear."""
    return st.integers(0, 11).flatmap(lambda number: st.sampled_from(rare if number == 0 else common))


paths = st.sampled_from(
    ["./run.sh", "./sub/../run.sh", "sub/run.sh", "link/run.sh", "{cwd}/run.sh", "./run", "bin/tool"]
)
scripts = st.one_of(paths, st.sampled_from(["run.sh", "deep/run.sh", "../run.sh", "made/run.sh"]))
quotes = seldom(
    ["{0}", "'{0}'", '"{0}"', "{0}''"], ["\\{0}", "$'{0}'", "${{X-{0}}}", "`echo {0}`", "{0}*", "{0} # it's"]
)
launchers = seldom(
    [
        "",
        "timeout 5 ",
        "env ",
        "env -C sub ",
        "env --chdir=link ",
        "env -C sub env -C deep ",
        "nice -n 1 ",
        "CI=1 ",
        "< /dev/null ",
        "2>&1 ",
        "test -e ",
    ],
    [". ", "exec ", "eval ", "X=1 ", "PATH=.:/bin ", "env PATH=sub:/bin ", "xargs -a plain.txt ", "! ", "time "],
)
shells = seldom(
    ["sh ", "bash -e ", "sh < ", "timeout 5 sh ", "env -C sub sh ", "nice sh -eu ", "cat "], ["sh -- ", "sh -s < "]
)
endings = seldom(["", " x", " > /dev/null", " 2>&1", " | cat", "\t", " | head -n 1"], [" | sh", " | xargs sh", " &"])
moves = seldom(
    ["cd sub", "cd link", "cd sub/deep", "cd deep", "cd missing", "true", "false", "cat plain.txt", "cp -r sub made"],
    ["cd ..", "cd -", "(cd sub)", "X=run", "cp sub/run.sh made.sh", "chdir sub"],
)
joins = seldom([" && ", " || ", "; ", "\n", ";", "&&", " &&\n"], [" | ", " & "])


def quoted(launcher, quote, path, ending):
    return launcher + quote.format(path) + ending


runs = st.one_of(
    st.builds(quoted, launchers, quotes, paths, endings), st.builds(quoted, shells, quotes, scripts, endings)
)
steps = st.one_of(runs, moves, moves)
lines = st.builds(
    lambda moved, last: "".join(step + join for step, join in moved) + last,
    st.lists(st.tuples(steps, joins), max_size=4),
    runs,
)
wrappers = seldom(
    ["sh -c '{0}'", "bash -ec '{0}'", "env sh -c '{0}'", "env -C sub sh -c '{0}'"],
    ["({0})", "{{ {0}\n}}", "if true; then {0}\nfi"],
)
nested = st.builds(lambda wrapper, text: wrapper.format(text.replace("'", '"')), wrappers, lines)
commands = st.one_of(lines, lines, nested, st.builds(lambda *parts: "".join(parts), nested, joins, lines))


@pytest.mark.extended
@settings(max_examples=20_000 if SOAK else 100, deadline=None, derandomize=not SOAK)
@given(commands)
@example("cd sub || cd missing && ./run.sh")
@example("cd sub && true || cd sub/deep && sh run.sh")
def test_every_script_that_runs_is_bound(command):
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        cwd = str(project.cwd)
        command = command.replace("{cwd}", cwd)
        before = bind(command, cwd, [cwd])
        assume(before.certain)
        for script in project.run(command):
            project.restore()
            assert bind(command, cwd, [cwd]) == before
            project.rewrite(script, "rewritten")
            assert bind(command, cwd, [cwd]) != before, f"{script} ran and is not bound"
