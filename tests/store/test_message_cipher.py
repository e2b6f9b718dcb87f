"""The encryption of messages between nodes. Only the receiver can decrypt one, and only unchanged and in its place."""

import pytest

from dragoman.store.postgresql.message_cipher import NodeKey, UnreadableMessageError

MESSAGE, CONTEXT = b"a message with a secret", b"from here to there, number 1"


def encrypted_for(receiver, sender=None):
    return (sender or NodeKey()).encrypt(MESSAGE, receiver.public, CONTEXT)


def test_the_receiver_can_decrypt_messages_of_any_sender():
    receiver = NodeKey()
    for sender in (NodeKey(), NodeKey(), receiver):
        assert receiver.decrypt(encrypted_for(receiver, sender), CONTEXT) == MESSAGE


def test_an_encrypted_message_is_opaque_and_never_repeats():
    sender, receiver = NodeKey(), NodeKey()
    first, second = encrypted_for(receiver, sender), encrypted_for(receiver, sender)
    assert b"secret" not in first
    assert first != second


def test_only_the_receiver_can_decrypt_a_message():
    sender, receiver = NodeKey(), NodeKey()
    encrypted = encrypted_for(receiver, sender)
    for other in (sender, NodeKey()):
        with pytest.raises(UnreadableMessageError):
            other.decrypt(encrypted, CONTEXT)


def test_changed_cut_or_moved_messages_are_refused():
    receiver = NodeKey()
    encrypted = encrypted_for(receiver)
    for number in range(len(encrypted)):
        changed = bytearray(encrypted)
        changed[number] ^= 1
        for wrong in (bytes(changed), encrypted[:number]):
            with pytest.raises(UnreadableMessageError):
                receiver.decrypt(wrong, CONTEXT)
    with pytest.raises(UnreadableMessageError):
        receiver.decrypt(encrypted, b"another place")


def test_a_weak_public_key_is_refused():
    with pytest.raises(UnreadableMessageError):
        NodeKey().decrypt(bytes(32) + encrypted_for(NodeKey())[32:], CONTEXT)
