import subprocess
import sys

from bench import smoke
from bench.measure import Measure, MissingError

FAILING = "import sys; sys.exit('the reason of the contender')"


def start_failing():
    return subprocess.run([sys.executable, "-c", FAILING], check=True).returncode


def measure(**contenders):
    return Measure("part", "title", "ms", contenders, (), rounds=1, quick_rounds=1)


def test_failure_prints_everything_that_the_contender_reported(capfd):
    one = measure(good=lambda: 1.0, bad=start_failing, late=lambda: 1.0)
    assert smoke.run([one]) == 1
    out, err = capfd.readouterr()
    outcomes = [line.partition("title: ")[2] for line in out.splitlines() if "title: " in line]
    assert outcomes == ["good: ok", "bad: FAILED", "late: ok"]
    assert "CalledProcessError" in out
    assert "the reason of the contender" in out
    assert err == ""


def test_missing_peer_is_no_failure_but_a_missing_figure_is(capfd):
    def find_peer():
        raise MissingError("it is not installed")

    assert smoke.run([measure(peer=find_peer)]) == 0
    assert "peer: not run: it is not installed" in capfd.readouterr().out
    assert smoke.run([measure(endless=lambda: float("nan"))]) == 1


def test_part_that_fails_makes_the_run_fail(capfd):
    assert smoke.run_parts(["no such part"], "") == 1
    out = capfd.readouterr().out
    assert "there is no part 'no such part'" in out
    assert "1 parts, 1 failed" in out
