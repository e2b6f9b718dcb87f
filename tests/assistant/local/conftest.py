from pathlib import Path

import pytest

from tests.assistant.local.smollm import smollm


@pytest.fixture(scope="session")
def model_file() -> Path:
    """The file of a real, small model."""
    return smollm()
