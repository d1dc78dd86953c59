-- The schema itself: the tables of weft_migrate, and an echo of every type.

-- name: schema_probe ()
-- returns: name text, present bool, ours bool, others bigint
-- Looks before anything of weft's is known to exist.
SELECT 'main' AS name,
       1 AS present,
       EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration') AS ours,
       (SELECT count(*) FROM sqlite_schema WHERE type IN ('table', 'view')) AS others

-- name: migration_create ()
-- The application id is the word "weft"; it tells files of weft from others.
PRAGMA application_id = 0x77656674;
CREATE TABLE IF NOT EXISTS migration (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    applied_us INTEGER NOT NULL
)

-- name: version_create ()
CREATE TABLE IF NOT EXISTS schema (
    one           INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version       INTEGER NOT NULL,
    oldest_binary INTEGER NOT NULL
)

-- name: migration_list ()
-- returns: number int, name text, sha256 text
SELECT number, name, sha256 FROM migration ORDER BY number

-- name: migration_add (number int, name text, sha256 text, applied_us bigint)
INSERT INTO migration (number, name, sha256, applied_us)
VALUES (:number, :name, :sha256, :applied_us)

-- name: schema_read ()
-- returns: version int, oldest_binary int
SELECT version, oldest_binary FROM schema WHERE one = 1

-- name: schema_put (version int, oldest_binary int)
INSERT INTO schema (one, version, oldest_binary) VALUES (1, :version, :oldest_binary)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, oldest_binary = excluded.oldest_binary

-- name: echo (flag bool?, small smallint?, num int?, big bigint?, id uuid?, word text?, bytes bytea?)
-- returns: flag bool?, small smallint?, num int?, big bigint?, id uuid?, word text?, bytes bytea?
-- Sends a value of every type there and back: the self-test of a driver.
SELECT :flag, :small, :num, :big, :id, :word, :bytes

-- name: echo_rows (flag bool?[], small smallint?[], num int?[], big bigint?[], id uuid?[], word text?[], bytes bytea?[])
-- returns: flag bool?, small smallint?, num int?, big bigint?, id uuid?, word text?, bytes bytea?
-- The same for columns; rows come back in the order of the call.
SELECT i.flag, i.small, i.num, i.big, i.id, i.word, i.bytes FROM input i
