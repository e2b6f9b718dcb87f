"""What a file is by its first bytes, as far as models can be given it."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def sniff(head: bytes) -> str | None:
    """Return the media type of a picture, a sound or a document that begins like this; None for anything else."""
    if head.startswith(b"RIFF"):
        return _RIFF.get(head[8:12])
    return next((media_type for signature, media_type in _SIGNATURES if head.startswith(signature)), None)
