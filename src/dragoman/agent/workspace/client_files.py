"""Files as the client has them, changes included that nobody has saved yet."""

from dragoman.agent.tools.tool import ToolFailure
from dragoman.agent.workspace.client_side import ClientSide
from dragoman.errors import RemoteError
from dragoman.protocol import v1
from dragoman.protocol.methods import FS_READ_TEXT_FILE, FS_WRITE_TEXT_FILE


class ClientFiles:
    """Asks the client for its files, by absolute paths that are known to lie inside the boundary."""

    def __init__(self, client: ClientSide, capabilities: v1.FileSystemCapabilities | None) -> None:
        self.can_read = capabilities is not None and bool(capabilities.read_text_file)
        self.can_write = capabilities is not None and bool(capabilities.write_text_file)
        self._client = client

    async def read(self, path: str) -> str:
        """Return the text of a file; raises ToolFailure."""
        request = v1.ReadTextFileRequest(session_id=self._client.session_id, path=path)
        try:
            return (await self._client.ask(FS_READ_TEXT_FILE, request)).content
        except RemoteError as error:
            raise ToolFailure(f"the client could not read {path}: {error.words}") from None

    async def write(self, path: str, text: str) -> None:
        """Give a file this text; raises ToolFailure."""
        request = v1.WriteTextFileRequest(session_id=self._client.session_id, path=path, content=text)
        try:
            await self._client.ask(FS_WRITE_TEXT_FILE, request)
        except RemoteError as error:
            raise ToolFailure(f"the client refused to write {path}: {error.words}") from None
