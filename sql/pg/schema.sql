-- The schema itself: the tables of weft_migrate, and an echo of every type.
--
-- The word weft stands for the schema that the URL names.

-- name: schema_probe ()
-- returns: name text, present bool, ours bool, others bigint
-- Looks before anything of weft's is known to exist. Takes no locks.
SELECT rtrim('weft.', '.') AS name,
       to_regnamespace(rtrim('weft.', '.')) IS NOT NULL AS present,
       EXISTS (SELECT 1 FROM pg_catalog.pg_class
                WHERE relnamespace = to_regnamespace(rtrim('weft.', '.'))
                  AND relname = 'migration' AND relkind = 'r') AS ours,
       (SELECT count(*) FROM pg_catalog.pg_class
         WHERE relnamespace = to_regnamespace(rtrim('weft.', '.'))
           AND relkind IN ('r', 'p', 'v', 'm', 'f')) AS others

-- name: schema_create ()
-- only: pg, because a SQLite file is one schema
-- Run only when the schema is absent: it asks for CREATE on the database even if there is nothing
-- to do.
CREATE SCHEMA IF NOT EXISTS weft

-- name: migration_create ()
CREATE TABLE IF NOT EXISTS weft.migration (
    number     int PRIMARY KEY,
    name       text NOT NULL,
    sha256     text NOT NULL,
    applied_us bigint NOT NULL
)

-- name: version_create ()
CREATE TABLE IF NOT EXISTS weft.schema (
    one           int PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version       int NOT NULL,
    oldest_binary int NOT NULL
)

-- name: migration_patience ()
-- returns: statement_timeout text, lock_timeout text
-- only: pg, because BEGIN IMMEDIATE waits in SQLite
-- A migration may rewrite a large table, and a second migrating process waits for it.
SELECT set_config('statement_timeout', '0', true) AS statement_timeout,
       set_config('lock_timeout', '10min', true) AS lock_timeout

-- name: migration_hurry (lock_timeout text)
-- returns: lock_timeout text
-- only: pg, because a reader never holds up a writer in SQLite
-- While a migration waits for a table, everything that comes after it waits behind it.
SELECT set_config('lock_timeout', :lock_timeout, true) AS lock_timeout

-- name: index_state (name text)
-- returns: valid bool
-- only: pg, because SQLite builds an index in a moment or not at all
-- No row: there is none.
SELECT i.indisvalid AS valid
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
 WHERE c.relname = :name
   AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'weft.migration'::regclass)

-- name: migration_blocker ()
-- returns: pid int, open_us bigint?, application text?
-- only: pg, as migration_hurry
-- The oldest transaction of another session that holds a lock on a table of weft's. Whether and since
-- when it is open is shown to its own role and to members of pg_read_all_stats alone.
SELECT a.pid, (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint AS open_us,
       a.application_name AS application
  FROM pg_locks l
  JOIN pg_class c ON c.oid = l.relation
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_stat_activity a ON a.pid = l.pid
 WHERE n.nspname = (SELECT nspname FROM pg_namespace WHERE oid =
                    (SELECT relnamespace FROM pg_class WHERE oid = 'weft.migration'::regclass))
   AND l.granted AND l.pid <> pg_backend_pid()
 ORDER BY a.xact_start NULLS LAST, a.pid LIMIT 1

-- name: migration_lock ()
-- only: pg, because BEGIN IMMEDIATE is the lock in SQLite
-- The mutex of migrations: it conflicts with itself and with writers, but not with readers, so a
-- dump that runs for hours neither waits for it nor holds it up.
LOCK TABLE weft.migration IN SHARE ROW EXCLUSIVE MODE

-- name: migration_list ()
-- returns: number int, name text, sha256 text
SELECT number, name, sha256 FROM weft.migration ORDER BY number

-- name: migration_add (number int, name text, sha256 text, applied_us bigint)
INSERT INTO weft.migration (number, name, sha256, applied_us)
VALUES (:number, :name, :sha256, :applied_us)

-- name: schema_read ()
-- returns: version int, oldest_binary int
SELECT version, oldest_binary FROM weft.schema WHERE one = 1

-- name: schema_put (version int, oldest_binary int)
INSERT INTO weft.schema (one, version, oldest_binary) VALUES (1, :version, :oldest_binary)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, oldest_binary = excluded.oldest_binary

-- name: grant_submit (role text)
-- only: pg, because SQLite has no roles
-- The role may submit by SQL from now on, and nothing else of weft's.
SELECT FROM weft.grant_submit(:role)

-- name: echo (flag bool?, small smallint?, num int?, big bigint?, id uuid?, word text?, bytes bytea?)
-- returns: flag bool?, small smallint?, num int?, big bigint?, id uuid?, word text?, bytes bytea?
-- Sends a value of every type there and back: the self-test of a driver and of a pooler between
-- it and the database.
SELECT :flag, :small, :num, :big, :id, :word, :bytes

-- name: echo_rows (flag bool?[], small smallint?[], num int?[], big bigint?[], id uuid?[], word text?[], bytes bytea?[])
-- returns: flag bool?, small smallint?, num int?, big bigint?, id uuid?, word text?, bytes bytea?
-- The same for columns; rows come back in the order of the call.
SELECT flag, small, num, big, id, word, bytes
  FROM unnest(:flag, :small, :num, :big, :id, :word, :bytes)
       WITH ORDINALITY AS t (flag, small, num, big, id, word, bytes, ordinal)
 ORDER BY ordinal
