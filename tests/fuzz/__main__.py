"""Run the fuzz targets in sequence. Exit with 1 and the reproducer after a finding."""

import argparse
import sys

from tests.fuzz import campaign
from tests.fuzz.targets import TARGETS


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long each target runs (default: %(default)s)")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} (default: all)")
    options = parser.parse_args()
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    if not campaign.is_possible():
        sys.exit(campaign.WHY_NOT)
    results = [_fuzz(target, options.seconds) for target in options.targets or TARGETS]
    sys.exit(0 if all(results) else 1)


def _fuzz(target, seconds):
    print(f"{target}: {seconds} s", flush=True)
    outcome = campaign.run(target, seconds)
    if outcome.exit_code == 0:
        print(f"{target}: {outcome.inputs:,} inputs, nothing found", flush=True)
        return True
    print(outcome.output)
    print(
        f"{target}: found something; to see it again:\n  {campaign.replay_command(target, outcome.output)}", flush=True
    )
    return False


if __name__ == "__main__":
    main()
