"""Traces and metrics by OpenTelemetry, with the names of its conventions for generative AI (1.41.0) and for MCP.

The rest of the package opens operations (`operation.py`) without knowing OpenTelemetry. While telemetry is off, every
operation is one shared object that does nothing, and OpenTelemetry is not imported. Telemetry is on if the environment
has the standard variables (`setup.py`), or after a program has called `enable`.
"""

from dragoman.telemetry.setup import TelemetryError, enable

__all__ = ["TelemetryError", "enable"]
