"""Translation between ACP versions 1 and 2: one state machine per connection, without I/O and without a clock.

    TranslatorForV2Client    a client of version 2  ↔  an agent of version 1
    TranslatorForV1Client    a client of version 1  ↔  an agent of version 2

Messages are parsed JSON. Pass each to `from_client` or `from_agent`, and send the returned messages instead: none, one
or several, to either side. Request ids do not change. Peers of the same version need no translator.

`docs/protocol-versions.md` lists what one version cannot express and how it is translated. No field is dropped
silently. It is carried in `_meta` (see `envelope`) or expressed as text.
"""

from dragoman.protocol.translate.for_v1_client import TranslatorForV1Client
from dragoman.protocol.translate.for_v2_client import TranslatorForV2Client

__all__ = ["TranslatorForV1Client", "TranslatorForV2Client"]
