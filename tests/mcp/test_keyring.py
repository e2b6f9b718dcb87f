"""Tokens in the operating system's keyring, through the library `keyring` and a test backend."""

import threading

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from dragoman.errors import McpServerError
from dragoman.mcp import keyring as system_keyring
from dragoman.mcp.keyring import SystemKeyring
from dragoman.mcp.token_store import TokenStore

URL, ISSUER = "https://example.org/mcp", "https://issuer.example"
SECRET = {"tokens": {"access_token": "a-secret-token"}}


class MemoryKeyring(KeyringBackend):
    """Stores passwords like a keyring. `trouble` is called before each access."""

    priority = 5

    def __init__(self):
        super().__init__()
        self.entries, self.trouble = {}, lambda: None

    def get_password(self, service, username):
        self.trouble()
        return self.entries.get((service, username))

    def set_password(self, service, username, password):
        self.trouble()
        self.entries[service, username] = password

    def delete_password(self, service, username):
        del self.entries[service, username]


@pytest.fixture
def backend():
    before = keyring.get_keyring()
    backend = MemoryKeyring()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


async def test_available_keyring_stores_the_tokens_instead_of_the_file(backend, tmp_path):
    store = TokenStore(URL, tmp_path, SystemKeyring())
    await store.save(ISSUER, SECRET)
    [file] = tmp_path.glob("*.json")
    assert "a-secret-token" not in file.read_text()
    assert len(backend.entries) == 1
    assert (await store.load())["tokens"] == SECRET["tokens"]
    assert await store.remove()
    assert backend.entries == {}


@pytest.mark.parametrize("is_there", [True, False])
async def test_file_stores_the_tokens_without_a_keyring(backend, tmp_path, is_there, caplog):
    keyring.set_keyring(MemoryKeyring() if is_there else NoKeyring())
    keyring.get_keyring().trouble = lambda: 1 / 0
    store = TokenStore(URL, tmp_path, SystemKeyring())
    await store.save(ISSUER, SECRET)
    await store.save(ISSUER, SECRET)
    assert (await store.load())["tokens"] == SECRET["tokens"]
    warnings = [record.getMessage() for record in caplog.records if "stored in files" in record.getMessage()]
    assert len(warnings) == (1 if is_there else 0)


async def test_hanging_keyring_times_out(backend, tmp_path, monkeypatch):
    monkeypatch.setattr(system_keyring, "TIMEOUT_S", 0.2)
    release = threading.Event()
    backend.trouble = release.wait
    store = TokenStore(URL, tmp_path, SystemKeyring())
    await store.save(ISSUER, SECRET)
    release.set()
    assert (await store.load())["tokens"] == SECRET["tokens"]


async def test_failed_keyring_fails_the_server_with_a_reason(backend, tmp_path):
    await TokenStore(URL, tmp_path, SystemKeyring()).save(ISSUER, SECRET)
    backend.trouble = lambda: 1 / 0
    with pytest.raises(McpServerError, match=r"in the keyring of the operating system: .* failed") as caught:
        await TokenStore(URL, tmp_path, SystemKeyring()).load()
    assert "a-secret-token" not in str(caught.value)


async def test_tokens_that_cannot_be_deleted_stay_known(backend, tmp_path):
    await TokenStore(URL, tmp_path, SystemKeyring()).save(ISSUER, SECRET)
    backend.trouble = lambda: 1 / 0
    with pytest.raises(McpServerError):
        await TokenStore(URL, tmp_path, SystemKeyring()).remove()
    backend.trouble = lambda: None
    assert await TokenStore(URL, tmp_path, SystemKeyring()).remove()
    assert backend.entries == {}
