"""The key `search`: how many things the search puts before the model, and how good they must be."""

from typing import Annotated

import msgspec
from msgspec import Meta


class SearchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is found, for the prompt of a turn, among the tools, rules and references of the mode `agent`."""

    top_k: Annotated[
        int, Meta(ge=1, description="How many of the nearest texts are looked at; one rule may have several.")
    ] = 20
    top_n: Annotated[int, Meta(ge=1, description="How many tools, rules and references are put before the model.")] = 8
    min_score: Annotated[
        float, Meta(ge=0, le=1, description="How near something must be to be put before the model, from 0 to 1.")
    ] = 0.1
