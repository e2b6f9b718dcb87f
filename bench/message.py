"""One big message, there and back: as a prompt, and as an update."""

from bench.measure import Measure
from bench.pairs import contenders

# Some small prompts and updates first, so that what is built on first use is not counted.
OPTIONS = ("--roundtrips", "50", "--chunks", "100", "--message-bytes", "1000000")

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
