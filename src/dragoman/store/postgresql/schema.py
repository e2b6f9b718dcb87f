"""The tables in PostgreSQL, and how they are made and upgraded.

    dragoman_schema    the version of these tables
    dragoman_node      the processes that use them, each with its heartbeat
    dragoman_session   the header of each session, and the facts that lists show
    dragoman_end       the owner of each session, its fence, the end of its blocks, and their size
    dragoman_block     the blocks, as they are in files (see `store.block`)
    dragoman_approval  the decisions of people that hold for good, by project
    dragoman_task      work that one node does for all, with the node that claimed it last
    dragoman_label     what people said of sessions through a bridge: titles, archives, parents
    dragoman_message   messages between the bridges that share the database
    dragoman_share     what other people may read through these bridges, and until when
    dragoman_code      codes that a browser brings to any of them, each good for one thing, as hashes

A session belongs to a scope: logs and journals of each agent are apart. The end of a session is a table of its own,
narrow and without further indexes, because it changes with every commit: PostgreSQL then writes the new version of the
row beside the old one. Blocks go with the end of their session, by a trigger: a foreign key would lock the row of the
session for each block, an eighth of the time of a write. No block can come behind the deletion, because each is written
with a change of the end, which waits for it.

A version is never changed once it was released: the next one goes behind it.
"""

from typing import TYPE_CHECKING, LiteralString

from dragoman.store.postgresql.errors import DatabaseRefused, SchemaMismatch

if TYPE_CHECKING:
    from dragoman.store.postgresql.database import Database

_VERSION_1: LiteralString = """
CREATE TABLE dragoman_node (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    pid integer NOT NULL,
    lease interval NOT NULL,
    started timestamptz NOT NULL DEFAULT clock_timestamp(),
    beat timestamptz NOT NULL DEFAULT clock_timestamp()
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
    UNIQUE (scope, id)
);
CREATE INDEX dragoman_session_by_time ON dragoman_session (scope, updated DESC, id DESC) WHERE prompted;
CREATE INDEX dragoman_session_by_cwd ON dragoman_session (scope, cwd, updated DESC, id DESC) WHERE prompted;
CREATE INDEX dragoman_session_unprompted ON dragoman_session (scope, updated) WHERE NOT prompted;
CREATE TABLE dragoman_end (
    session bigint PRIMARY KEY REFERENCES dragoman_session ON DELETE CASCADE,
    owner uuid,
    fence bigint NOT NULL DEFAULT 0,
    last bigint NOT NULL DEFAULT 0,
    checksum bigint NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE dragoman_block (
    session bigint NOT NULL REFERENCES dragoman_session ON DELETE CASCADE,
    first bigint NOT NULL,
    last bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (session, first)
);
ALTER TABLE dragoman_block ALTER COLUMN data SET STORAGE EXTERNAL;
"""

_VERSION_2: LiteralString = """
ALTER TABLE dragoman_end ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
UPDATE dragoman_end e SET bytes = coalesce((SELECT sum(length(data)) FROM dragoman_block b
    WHERE b.session = e.session), 0);
CREATE INDEX dragoman_session_by_age ON dragoman_session (updated, key);
CREATE INDEX dragoman_session_by_id ON dragoman_session (id);
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
"""

_VERSION_3: LiteralString = """
ALTER TABLE dragoman_node ADD COLUMN agents text[] NOT NULL DEFAULT '{}';
ALTER TABLE dragoman_session ADD COLUMN shown bytea;
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
"""

_VERSION_4: LiteralString = """
ALTER TABLE dragoman_node ADD COLUMN key bytea;
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
ALTER TABLE dragoman_block DROP CONSTRAINT dragoman_block_session_fkey;
CREATE FUNCTION dragoman_delete_blocks() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN DELETE FROM dragoman_block WHERE session = OLD.session; RETURN NULL; END$$;
CREATE TRIGGER dragoman_end_deleted AFTER DELETE ON dragoman_end
    FOR EACH ROW EXECUTE FUNCTION dragoman_delete_blocks();
"""

_MIGRATIONS: tuple[LiteralString, ...] = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4)

VERSION = len(_MIGRATIONS)
"""The version that this program reads and writes."""

_LOCK = 0x647261676F  # "drago"
_FIND_TABLE = "SELECT to_regclass('dragoman_schema') IS NOT NULL"
_FIND_VERSION = "SELECT coalesce(max(version), 0) FROM dragoman_schema"


async def read_version(database: "Database") -> int:
    """Return the version of the tables; 0 when there are none. Raises DatabaseUnavailable, DatabaseRefused."""
    ((is_there,),) = await database.fetch(_FIND_TABLE)
    if not is_there:
        return 0
    ((version,),) = await database.fetch(_FIND_VERSION)
    return version


async def check(database: "Database") -> None:
    """See that the tables are those that this program knows; raises SchemaMismatch."""
    version = await read_version(database)
    if version != VERSION:
        raise SchemaMismatch(database.name, version, VERSION)


async def migrate(database: "Database") -> tuple[int, int]:
    """Make the tables, or bring them to this version, all or nothing; returns the version before and after.

    Several programs may do so at once: one does it, the others wait for it. Raises SchemaMismatch for newer tables.
    """
    ((encoding,),) = await database.fetch("SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise DatabaseRefused(database.name, f"its encoding is {encoding}, and has to be UTF8: make another database")
    async with database.transaction() as transaction:
        await transaction.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        await transaction.execute(
            "CREATE TABLE IF NOT EXISTS dragoman_schema "
            "(version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
        cursor = await transaction.execute(_FIND_VERSION)
        ((before,),) = await cursor.fetchall()
        if before > VERSION:
            raise SchemaMismatch(database.name, before, VERSION)
        for number, step in enumerate(_MIGRATIONS[before:], before + 1):
            await transaction.execute(step)
            await transaction.execute("INSERT INTO dragoman_schema (version) VALUES (%s)", (number,))
    return before, VERSION
