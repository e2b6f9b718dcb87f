"""The size of a benchmark: full, or with `--smoke` just enough to show that it runs."""

import sys

# Sizes are module constants, so this is known before those modules are imported.
IS_SMOKE = "--smoke" in sys.argv


def size(full: int, smallest: int) -> int:
    """Return a repetition count or an amount for the current size."""
    return smallest if IS_SMOKE else full
