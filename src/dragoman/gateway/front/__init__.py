"""The front: the gateway as an ASGI application (`app`), and the server that runs it (`server`)."""
