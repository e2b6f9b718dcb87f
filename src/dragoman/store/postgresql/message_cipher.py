"""Messages between nodes, encrypted for their receiver: they may have secrets, which no file of the database may have.

A node makes a pair of keys when it starts. The public one is in its row; the private one is in its memory alone, so
that rows, the log of writes and backups tell nothing of the messages, also later. Whoever can write to the database can
put another key into a row: the database is trusted for that, as it is for the sessions.

An encrypted message is the sender's public key, a random nonce, and the message by ChaCha20-Poly1305 with a key of both
nodes (X25519, HKDF-SHA256). It is bound to its context, so that it cannot be moved to another place in the table.
"""

import os
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dragoman.errors import DragomanError

_KEY_BYTES = 32
_NONCE_BYTES = 12
_PURPOSE = b"dragoman node messages 1"
_MAX_PEERS = 256
"""Nodes whose ciphers are kept; another one is computed again."""


class UnreadableMessage(DragomanError):
    """A message of another node was not encrypted for this one, or not as this version does it."""

    def __init__(self) -> None:
        super().__init__("a message of another node cannot be decrypted: it is for another key or of another version")


class NodeKey:
    """The keys of this node."""

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()
        self._cipher = lru_cache(_MAX_PEERS)(self._make_cipher)

    def encrypt(self, message: bytes, receiver: bytes, context: bytes) -> bytes:
        """Encrypt a message for the node with this public key."""
        nonce = os.urandom(_NONCE_BYTES)
        return self.public + nonce + self._cipher(receiver, self.public + receiver).encrypt(nonce, message, context)

    def decrypt(self, encrypted: bytes, context: bytes) -> bytes:
        """Return a message that was encrypted for this node; raises UnreadableMessage."""
        sender, rest = encrypted[:_KEY_BYTES], encrypted[_KEY_BYTES:]
        try:
            cipher = self._cipher(sender, sender + self.public)
            return cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError):
            raise UnreadableMessage from None

    def _make_cipher(self, peer: bytes, direction: bytes) -> ChaCha20Poly1305:
        """Make the cipher of one direction between this node and another one, named by both public keys in order."""
        shared = self._private.exchange(X25519PublicKey.from_public_bytes(peer))
        return ChaCha20Poly1305(HKDF(SHA256(), _KEY_BYTES, salt=None, info=_PURPOSE + direction).derive(shared))
