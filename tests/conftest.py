import pytest


@pytest.fixture(autouse=True)
def a_home_of_its_own(tmp_path_factory, monkeypatch):
    """No test, and no child of one, touches the sessions of whoever runs the tests."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path_factory.mktemp("home")))
