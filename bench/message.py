"""One big message in each direction: as a prompt and as an update."""

from bench.measure import Measure
from bench.pairs import contenders
from bench.size import size

# Some small prompts and updates come first, so that first-use work is not counted.
OPTIONS = ("--roundtrips", str(size(50, 2)), "--chunks", str(size(100, 2)), "--message-bytes", "1000000")

MEASURES = (
    Measure(
        part="message",
        title="1 MB prompt, answered",
        unit="ms",
        contenders=contenders(OPTIONS, lambda report: 1000 * report["big_message_s"]),
        targets=(),
        rounds=7,
        quick_rounds=3,
    ),
    Measure(
        part="message",
        title="1 MB update",
        unit="ms",
        contenders=contenders(OPTIONS, lambda report: 1000 * report["big_update_s"]),
        targets=(),
        rounds=7,
        quick_rounds=3,
    ),
)
