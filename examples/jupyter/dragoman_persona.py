"""A Jupyter AI persona that runs dragoman. Put it into `.jupyter/personas/` of Jupyter's start directory.

Any other ACP agent takes the same lines; `DRAGOMAN_PERSONA` may have its command, such as
`dragoman attach https://host:8421`, for sessions that outlive Jupyter.
"""

import os
import shlex
import shutil
from pathlib import Path
from typing import Any

from jupyter_ai_acp_client.base_acp_persona import BaseAcpPersona
from jupyter_ai_persona_manager import PersonaDefaults, PersonaRequirementsUnmet

COMMAND = shlex.split(os.environ.get("DRAGOMAN_PERSONA", "dragoman agent"))

if shutil.which(COMMAND[0]) is None:
    raise PersonaRequirementsUnmet(f"There is no command {COMMAND[0]}; install it: pip install dragoman")


class DragomanPersona(BaseAcpPersona):
    """Starts the agent once for all chats. Each chat is a separate session."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, executable=COMMAND, **kwargs)

    @property
    def defaults(self) -> PersonaDefaults:
        return PersonaDefaults(
            name="Dragoman",
            description="An ACP agent with your own model and your own MCP tools.",
            avatar_path=str(Path(__file__).parent / "dragoman.svg"),
            system_prompt="unused",
        )
