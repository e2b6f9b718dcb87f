"""The lower limit for any agent in Python: a loop over stdin with the standard library's json."""

import json
import sys

SESSION_ID = "0" * 32

RESULTS = {
    "initialize": {"protocolVersion": 1},
    "session/new": {"sessionId": SESSION_ID},
    "session/prompt": {"stopReason": "end_turn"},
}

for line in sys.stdin:
    request = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": RESULTS[request["method"]]}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
