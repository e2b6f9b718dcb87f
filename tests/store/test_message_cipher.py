"""The encryption of messages between nodes: only the receiver reads one, as it was sent and where it was put."""

import pytest

from dragoman.store.postgresql.message_cipher import NodeKey, UnreadableMessage

MESSAGE, CONTEXT = b"a message with a secret", b"from here to there, number 1"


def encrypted_for(receiver, sender=None):
    return (sender or NodeKey()).encrypt(MESSAGE, receiver.public, CONTEXT)


def test_the_receiver_reads_what_any_sender_encrypted_for_it():
    receiver = NodeKey()
    for sender in (NodeKey(), NodeKey(), receiver):
        assert receiver.decrypt(encrypted_for(receiver, sender), CONTEXT) == MESSAGE


def test_an_encrypted_message_shows_nothing_and_is_never_the_same_twice():
    sender, receiver = NodeKey(), NodeKey()
    first, second = encrypted_for(receiver, sender), encrypted_for(receiver, sender)
    assert b"secret" not in first
    assert first != second


def test_nobody_else_reads_it_not_even_its_sender():
    sender, receiver = NodeKey(), NodeKey()
    encrypted = encrypted_for(receiver, sender)
    for other in (sender, NodeKey()):
        with pytest.raises(UnreadableMessage):
            other.decrypt(encrypted, CONTEXT)


def test_a_message_that_was_changed_cut_or_moved_is_refused():
    receiver = NodeKey()
    encrypted = encrypted_for(receiver)
    for number in range(len(encrypted)):
        changed = bytearray(encrypted)
        changed[number] ^= 1
        for wrong in (bytes(changed), encrypted[:number]):
            with pytest.raises(UnreadableMessage):
                receiver.decrypt(wrong, CONTEXT)
    with pytest.raises(UnreadableMessage):
        receiver.decrypt(encrypted, b"another place")


def test_a_public_key_that_gives_everybody_the_same_secret_is_refused():
    with pytest.raises(UnreadableMessage):
        NodeKey().decrypt(bytes(32) + encrypted_for(NodeKey())[32:], CONTEXT)
