import pytest


@pytest.fixture
def place(tmp_path):
    """Where the session works, and where it is kept."""
    (tmp_path / "project").mkdir()
    return tmp_path / "project", tmp_path / "home"
