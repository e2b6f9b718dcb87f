import pytest


@pytest.fixture
def place(tmp_path):
    """Return the session's directory and the home."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project", tmp_path / "home"
