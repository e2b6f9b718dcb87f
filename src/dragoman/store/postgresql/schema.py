"""The tables in PostgreSQL, and how they are created and upgraded.

    dragoman_schema    the version of these tables
    dragoman_node      the processes that use them, each with its heartbeat
    dragoman_session   the header of each session, and the facts that lists show
    dragoman_end       the owner of each session, its fence, the end of its blocks, and their size
    dragoman_block     the blocks, as they are in files (see `store.block`)
    dragoman_approval  the permanent decisions of users, per project
    dragoman_task      work that one node does for all, with the node that claimed it last
    dragoman_label     titles, archiving and parents of sessions that were set through a bridge
    dragoman_message   messages between the bridges that share the database
    dragoman_share     sessions and agents that were shared with other people, and until when
    dragoman_code      the hashes of one-time codes that a browser sends to any bridge

A session belongs to a scope, which separates logs from journals and agents from each other. The end of a session has
its own narrow table without further indexes, because it changes with every commit. PostgreSQL can then write the new
version of a row into the page of the old version. A trigger deletes blocks with the end of their session. A foreign key
would lock the row of the session for each block, which is an eighth of the time of a write. No block can be added after
the deletion, because adding one changes the end, and that change waits for the deletion.

Change `_VERSION_1` until 0.1.0 is released. After that, append a migration for each change.
"""

from typing import TYPE_CHECKING, LiteralString

from dragoman.store.postgresql.errors import DatabaseRefusedError, SchemaMismatchError

if TYPE_CHECKING:
    from dragoman.store.postgresql.database import Database

_VERSION_1: LiteralString = """
CREATE TABLE dragoman_node (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    pid integer NOT NULL,
    lease interval NOT NULL,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    beat timestamptz NOT NULL DEFAULT clock_timestamp(),
    agents text[] NOT NULL DEFAULT '{}',
    key bytea
);
CREATE TABLE dragoman_session (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope text NOT NULL,
    id text NOT NULL,
    header bytea NOT NULL,
    cwd text NOT NULL,
    title text,
    messages integer NOT NULL DEFAULT 0,
    prompted boolean NOT NULL DEFAULT false,
    archived boolean NOT NULL DEFAULT false,
    updated bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    shown bytea,
    UNIQUE (scope, id)
);
CREATE INDEX dragoman_session_by_time ON dragoman_session (scope, updated DESC, id DESC) WHERE prompted;
CREATE INDEX dragoman_session_by_cwd ON dragoman_session (scope, cwd, updated DESC, id DESC) WHERE prompted;
CREATE INDEX dragoman_session_unprompted ON dragoman_session (scope, updated) WHERE NOT prompted;
CREATE INDEX dragoman_session_by_age ON dragoman_session (updated, key);
CREATE INDEX dragoman_session_by_id ON dragoman_session (id);
CREATE TABLE dragoman_end (
    session bigint PRIMARY KEY REFERENCES dragoman_session ON DELETE CASCADE,
    owner uuid,
    fence bigint NOT NULL DEFAULT 0,
    last bigint NOT NULL DEFAULT 0,
    checksum bigint NOT NULL,
    bytes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE dragoman_block (
    session bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (session, first)
);
ALTER TABLE dragoman_block ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE FUNCTION dragoman_delete_blocks() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN DELETE FROM dragoman_block WHERE session = OLD.session; RETURN NULL; END$$;
CREATE TRIGGER dragoman_end_deleted AFTER DELETE ON dragoman_end
    FOR EACH ROW EXECUTE FUNCTION dragoman_delete_blocks();
CREATE TABLE dragoman_task (
    name text PRIMARY KEY,
    node uuid NOT NULL,
    taken timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE dragoman_approval (
    scope text NOT NULL,
    cwd text NOT NULL,
    action bytea NOT NULL,
    decision text NOT NULL,
    decided timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (scope, cwd, action)
);
CREATE TABLE dragoman_label (
    scope text NOT NULL,
    id text NOT NULL,
    label bytea NOT NULL,
    PRIMARY KEY (scope, id)
);
CREATE TABLE dragoman_message (
    receiver uuid NOT NULL,
    sender uuid NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (receiver, sender, number)
);
CREATE TABLE dragoman_share (
    realm text NOT NULL,
    id text NOT NULL,
    created timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires timestamptz NOT NULL,
    agent text,
    session text,
    title text NOT NULL,
    code bytea NOT NULL UNIQUE,
    opened uuid,
    PRIMARY KEY (realm, id)
);
CREATE TABLE dragoman_code (
    hash bytea PRIMARY KEY,
    kind text NOT NULL,
    scope text NOT NULL,
    node uuid,
    created timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires timestamptz NOT NULL,
    used uuid
);
CREATE INDEX dragoman_code_by_scope ON dragoman_code (kind, scope, created);
"""

_MIGRATIONS: tuple[LiteralString, ...] = (_VERSION_1,)

VERSION = len(_MIGRATIONS)
"""The version that this program reads and writes."""

_LOCK = 0x647261676F  # "drago"
_FIND_TABLE = "SELECT to_regclass('dragoman_schema') IS NOT NULL"
_FIND_VERSION = "SELECT coalesce(max(version), 0) FROM dragoman_schema"


async def read_version(database: "Database") -> int:
    """Return the version of the tables, or 0 if there are none.

    Raises DatabaseUnavailableError, DatabaseRefusedError.
    """
    ((is_there,),) = await database.fetch(_FIND_TABLE)
    if not is_there:
        return 0
    ((version,),) = await database.fetch(_FIND_VERSION)
    return version


async def check(database: "Database") -> None:
    """Check that the tables have the version that this program uses. Raises SchemaMismatchError."""
    version = await read_version(database)
    if version != VERSION:
        raise SchemaMismatchError(database.name, version, VERSION)


async def migrate(database: "Database") -> tuple[int, int]:
    """Create the tables or upgrade them to this version, in one transaction. Return the version before and after.

    Several programs can call this at the same time: one does the work, and the others wait for it. Raises
    SchemaMismatchError for newer tables.
    """
    ((encoding,),) = await database.fetch("SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise DatabaseRefusedError(
            database.name, f"its encoding is {encoding}, but must be UTF8; create another database"
        )
    async with database.transaction() as transaction:
        await transaction.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        await transaction.execute(
            "CREATE TABLE IF NOT EXISTS dragoman_schema "
            "(version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
        cursor = await transaction.execute(_FIND_VERSION)
        ((before,),) = await cursor.fetchall()
        if before > VERSION:
            raise SchemaMismatchError(database.name, before, VERSION)
        for number, step in enumerate(_MIGRATIONS[before:], before + 1):
            await transaction.execute(step)
            await transaction.execute("INSERT INTO dragoman_schema (version) VALUES (%s)", (number,))
    return before, VERSION
