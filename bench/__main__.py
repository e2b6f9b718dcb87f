"""`python -m bench [PART…] [--title TEXT] [--quick | --smoke] [--json FILE]`."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench import (
    bridge,
    bridge_load,
    client,
    growth,
    idle,
    kit,
    listing,
    log,
    machine,
    mcp,
    memory,
    message,
    nodes,
    progress,
    replay,
    roundtrip,
    sandbox,
    search,
    session_new,
    smoke,
    start,
    store,
    stream,
    table,
    tap,
    turn,
    versions,
)
from bench.measure import Measure
from bench.rounds import Result, run_rounds

MEASURES = (
    *start.MEASURES,
    *session_new.MEASURES,
    *kit.MEASURES,
    *stream.MEASURES,
    *turn.MEASURES,
    *log.MEASURES,
    *replay.MEASURES,
    *client.MEASURES,
    *roundtrip.MEASURES,
    *message.MEASURES,
    *memory.MEASURES,
    *idle.MEASURES,
    *listing.MEASURES,
    *search.MEASURES,
    *mcp.MEASURES,
    *bridge.MEASURES,
    *bridge_load.MEASURES,
    *growth.MEASURES,
    *versions.MEASURES,
    *store.MEASURES,
    *nodes.MEASURES,
    *tap.MEASURES,
    *sandbox.MEASURES,
)
PARTS = tuple(dict.fromkeys(measure.part for measure in MEASURES))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, and print the table."""
    options = parse_arguments(argv)
    # Installed packages have their bytecode. A checkout has it from its first start, unless the environment forbids it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if options.smoke and len(options.parts) != 1:
        sys.exit(smoke.run_parts(options.parts or PARTS, options.title))
    if options.smoke:
        with tempfile.TemporaryDirectory() as home:
            os.environ["DRAGOMAN_HOME"] = home
            sys.exit(smoke.run(choose(options)))
    described = machine.describe()
    print("\n".join(f"{name}: {value}" for name, value in described.items()), end="\n\n", flush=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ["DRAGOMAN_HOME"] = home  # where the real agent stores its sessions
        results: list[Result] = []
        for measure in choose(options):
            results.append(run_rounds(measure, quick=options.quick, progress=progress.show))
            if options.json:  # after each measure, so that an interrupted run keeps its results
                options.json.write_bytes(to_json(described, results, read_others(options.json, results)))
    progress.clear()
    print(table.render(results))


def choose(options: argparse.Namespace) -> list[Measure]:
    """Return the measures that the command line selects."""
    parts = options.parts or PARTS
    return [measure for measure in MEASURES if measure.part in parts and options.title in measure.title]


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure dragoman beside its peers.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"what to measure: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--title", default="", metavar="TEXT", help="only measures that have this in their title")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for a first look")
    parser.add_argument("--smoke", action="store_true", help="run each once, as small as it can be; print no figures")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="also write all samples to a file, which keeps what is not measured now",
    )
    options = parser.parse_args(argv)
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"there is no part {part!r}; choose from {', '.join(PARTS)}")
    return options


def read_others(path: Path, results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the measures of an earlier run that this run has not repeated."""
    if not path.exists():
        return []
    repeated = {(result.measure.part, result.measure.title) for result in results}
    known = {(measure.part, measure.title) for measure in MEASURES}
    earlier = msgspec.json.decode(path.read_bytes())["measures"]
    return [found for found in earlier if (found["part"], found["title"]) in known - repeated]


def to_json(described: dict[str, str], results: Sequence[Result], others: Sequence[dict[str, Any]] = ()) -> bytes:
    measures = [
        *others,
        *(
            {
                "part": result.measure.part,
                "title": result.measure.title,
                "unit": result.measure.unit,
                "date": result.date,
                "loads": result.loads,
                "outcomes": result.outcomes,
                "targets": [
                    {"target": target, "ratio": result.ratio(target.ours, target.theirs)}
                    for target in result.measure.targets
                ],
            }
            for result in results
        ),
    ]
    return msgspec.json.format(msgspec.json.encode({"machine": described, "measures": measures}))


if __name__ == "__main__":
    main()
