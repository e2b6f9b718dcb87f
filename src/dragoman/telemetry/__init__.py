"""Traces and metrics by OpenTelemetry, with the names of its conventions for generative AI (1.41.0) and for MCP.

The rest of the package opens operations (`operation.py`) and knows nothing of OpenTelemetry. While telemetry is off, an
operation is one shared object that does nothing, and nothing of OpenTelemetry is imported. It is on once the standard
variables were found in the environment (`setup.py`), or a program has called `enable`.
"""

from dragoman.telemetry.setup import TelemetryUnavailable, enable

__all__ = ["TelemetryUnavailable", "enable"]
