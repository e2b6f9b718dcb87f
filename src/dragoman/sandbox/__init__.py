"""The sandbox: commands and agents that the operating system keeps inside the session's directories.

`sandbox.py` says what a command may read, write and reach. `bubblewrap.py` and `seatbelt.py` are the command lines of
the two systems. Everything else is imported only when a command runs in the sandbox.
"""

from typing import Literal

SandboxMode = Literal["off", "workspace", "workspace+network"]
"""`off`: no sandbox. `workspace`: commands write only in the session's directories, without network.
`workspace+network`: the same with network."""

SANDBOX_MODES: tuple[SandboxMode, ...] = ("off", "workspace", "workspace+network")
