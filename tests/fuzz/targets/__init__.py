"""Each target: `check(data)` judges raw bytes, `check_made(provider)` judges inputs made from the fuzzer's bytes."""

from tests.fuzz.targets import conversation, decoder, framing

TARGETS = {"framing": framing, "decoder": decoder, "conversation": conversation}
