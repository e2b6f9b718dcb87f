"""Translation between ACP versions 1 and 2: state machines for one connection each, without I/O and without a clock.

    TranslatorForV2Client    a client of version 2  ↔  an agent of version 1
    TranslatorForV1Client    a client of version 1  ↔  an agent of version 2

Messages are parsed JSON. Each is given to `from_client` or `from_agent`, and what is returned is sent in its place: no
message, one, or several, to either side. Ids of requests stay as they are. Peers of one version need no translator.

`docs/protocol-versions.md` has the table of what one version cannot say and what becomes of it. Nothing is dropped in
silence: such a field is carried in `_meta` (see `envelope`) or said in words.
"""

from dragoman.protocol.translate.envelope import Translated
from dragoman.protocol.translate.for_v1_client import TranslatorForV1Client
from dragoman.protocol.translate.for_v2_client import TranslatorForV2Client

__all__ = ["Translated", "TranslatorForV1Client", "TranslatorForV2Client"]
