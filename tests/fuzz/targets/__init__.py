"""The targets. `check(data)` tests raw bytes, and `check_made(provider)` inputs built from the fuzzer's bytes."""

from tests.fuzz.targets import archive, conversation, decoder, framing, shown

TARGETS = {"framing": framing, "decoder": decoder, "conversation": conversation, "archive": archive, "shown": shown}
