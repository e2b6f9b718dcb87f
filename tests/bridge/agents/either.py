"""`either.py FILE JSON`: an agent that speaks the ACP version named in FILE at its start."""

import os
import sys
from pathlib import Path

version = Path(sys.argv[1]).read_text().strip()
name = {"1": "agent.py", "2": "agent_v2.py"}[version]
os.execv(sys.executable, [sys.executable, str(Path(__file__).parent / name), sys.argv[2]])
