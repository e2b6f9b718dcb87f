"""The encryption of messages between nodes. They can contain secrets, which must not be in the database's files.

A node makes a pair of keys when it starts. The public key is in its row, the private key only in its memory. So rows,
the write-ahead log and backups never reveal messages. An attacker who can write to the database could replace a public
key. The database is trusted not to allow that, as it is for the sessions.

An encrypted message is the sender's public key, a random nonce, and the message encrypted by ChaCha20-Poly1305. The key
is derived from the keys of both nodes (X25519, HKDF-SHA256). The message is bound to its context, so it cannot be moved
to another place in the table.
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
"""The number of nodes whose ciphers are cached. Others are computed again."""


class UnreadableMessageError(DragomanError):
    """A message of another node was encrypted for another key, or by another version."""

    def __init__(self) -> None:
        super().__init__("a message of another node cannot be decrypted: it is for another key or of another version")


class NodeKey:
    """The key pair of this node."""

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()
        self._cipher = lru_cache(_MAX_PEERS)(self._make_cipher)

    def encrypt(self, message: bytes, receiver: bytes, context: bytes) -> bytes:
        """Encrypt a message for the node with this public key."""
        nonce = os.urandom(_NONCE_BYTES)
        return self.public + nonce + self._cipher(receiver, self.public + receiver).encrypt(nonce, message, context)

    def decrypt(self, encrypted: bytes, context: bytes) -> bytes:
        """Return the plain text of a message for this node. Raises UnreadableMessageError."""
        sender, rest = encrypted[:_KEY_BYTES], encrypted[_KEY_BYTES:]
        try:
            cipher = self._cipher(sender, sender + self.public)
            return cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError):
            raise UnreadableMessageError from None

    def _make_cipher(self, peer: bytes, direction: bytes) -> ChaCha20Poly1305:
        """Make the cipher for one direction between this node and a peer. `direction` is both public keys in order."""
        shared = self._private.exchange(X25519PublicKey.from_public_bytes(peer))
        return ChaCha20Poly1305(HKDF(SHA256(), _KEY_BYTES, salt=None, info=_PURPOSE + direction).derive(shared))
