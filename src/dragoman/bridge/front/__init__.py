"""The front: the bridge as an ASGI application (`app`), and the server that runs it (`server`)."""
