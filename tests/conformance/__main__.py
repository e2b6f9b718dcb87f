"""Runs every scenario of the official client suite for `make conformance`. Exits with 1 on an unexpected result."""

import asyncio
import os
import sys

from tests.conformance.suite import expected_failures, is_installed, list_scenarios, run_scenario


async def main(wanted):
    """Run the scenarios whose names contain one of the words, or all without words."""
    if not is_installed():
        sys.exit("the suite is not installed: `make conformance` does that, and needs npm")
    known = expected_failures()
    scenarios = [each for each in await list_scenarios() if not wanted or any(word in each.name for word in wanted)]
    slots = asyncio.Semaphore(os.cpu_count() or 1)

    async def judge(scenario):
        async with slots:
            passed, out = await run_scenario(scenario)
        reason = known.get(str(scenario))
        word = "passed" if passed else "failed"
        print(f"{word}  {scenario}{f'  (expected to fail: {reason})' if reason else ''}", flush=True)
        if passed is (reason is not None):
            if not passed:
                print(out)
            return scenario
        return None

    surprises = [each for each in await asyncio.gather(*map(judge, scenarios)) if each is not None]
    print(f"{len(scenarios)} scenarios, {len(known)} expected to fail, {len(surprises)} not as expected")
    for each in surprises:
        print(f"  not as expected: {each}")
    return 1 if surprises else 0


sys.exit(asyncio.run(main(sys.argv[1:])))
