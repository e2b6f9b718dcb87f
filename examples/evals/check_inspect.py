"""Run the Inspect task against our agent with a scripted model. The exit code is 0 if the score is correct."""

import sys
import tempfile

from inspect_ai import eval as evaluate
from inspect_task import arithmetic

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        [log] = evaluate(arithmetic(), model="mockllm/model", log_dir=folder, display="plain")
        assert log.status == "success", log.error
        [score] = log.samples[0].scores.values()
        print(f"Inspect: {log.status}, scored {score.value}, answer {log.samples[0].output.completion!r}")
    sys.exit(0 if score.value == "C" else 1)
