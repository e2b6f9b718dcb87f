"""A prompt that is answered at once."""

from bench.measure import PYTHON_SDK, Measure, Target
from bench.pairs import OURS, contenders

PROMPTS = 2000

MEASURES = (
    Measure(
        part="roundtrip",
        title="round trip, p50",
        unit="µs",
        contenders=contenders(("--roundtrips", str(PROMPTS)), lambda report: 1e6 * report["roundtrip_p50_s"]),
        targets=(Target(OURS, PYTHON_SDK, "at most", 1 / 3),),
        rounds=7,
        quick_rounds=3,
    ),
)
