-- Erasure: orders and receipts, the walk over executions, and what a subject has besides. See
-- src/engine/erase/erase.h.

-- fragment: erasure_columns ()
e.id, e.namespace, e.sort, e.subject, e.secret, e.hash, e.reason, e.by, e.asked, e.phase, e.walked, e.rounds, e.found,
e.later, e.counts, e.retired, e.finished, e.left_over, e.digest, e.verified, e.remains, e.barrier

-- name: erasure_add (id uuid, namespace int, sort smallint, subject text, secret bytea, hash text, reason text, token int, asked bigint, walked uuid)
INSERT INTO weft.erasure (id, namespace, sort, subject, secret, hash, reason, by, asked, phase, walked, rounds, found,
                          later, counts, barrier)
SELECT :id, :namespace, :sort, :subject, :secret, :hash, :reason,
       (SELECT t.name FROM weft.token t WHERE t.id = :token), :asked, 0, :walked, 0, 0, 0, '{}',
       pg_current_xact_id()::text::bigint;

-- name: erasure_read (id uuid, namespace int)
-- returns: id uuid, namespace int, sort smallint, subject text?, secret bytea, hash text, reason text, by text?, asked bigint, phase smallint, walked uuid, rounds int, found bigint, later bigint, counts text, retired bigint?, finished bigint?, left_over text?, digest text?, verified bigint?, remains bigint?, barrier bigint
SELECT @{erasure_columns} FROM weft.erasure e WHERE e.id = :id AND e.namespace = :namespace;

-- name: erasure_list (namespace int, after uuid, limit int)
-- returns: id uuid, namespace int, sort smallint, subject text?, secret bytea, hash text, reason text, by text?, asked bigint, phase smallint, walked uuid, rounds int, found bigint, later bigint, counts text, retired bigint?, finished bigint?, left_over text?, digest text?, verified bigint?, remains bigint?, barrier bigint
-- The newest first.
SELECT @{erasure_columns} FROM weft.erasure e
 WHERE e.namespace = :namespace AND e.id < :after ORDER BY e.namespace DESC, e.id DESC LIMIT :limit;

-- name: erasure_due (batch int, ns int)
-- returns: id uuid, namespace int, sort smallint, subject text?, secret bytea, hash text, reason text, by text?, asked bigint, phase smallint, walked uuid, rounds int, found bigint, later bigint, counts text, retired bigint?, finished bigint?, left_over text?, digest text?, verified bigint?, remains bigint?, barrier bigint
SELECT @{erasure_columns} FROM weft.erasure e
 WHERE e.finished IS NULL AND (:ns = 0 OR e.namespace = :ns) ORDER BY e.id LIMIT :batch;

-- name: erasure_lock (id uuid)
-- returns: id uuid, namespace int, sort smallint, subject text?, secret bytea, hash text, reason text, by text?, asked bigint, phase smallint, walked uuid, rounds int, found bigint, later bigint, counts text, retired bigint?, finished bigint?, left_over text?, digest text?, verified bigint?, remains bigint?, barrier bigint
-- No row: another replica makes a step of it now.
SELECT @{erasure_columns} FROM weft.erasure e WHERE e.id = :id AND e.finished IS NULL FOR UPDATE SKIP LOCKED;

-- name: erasure_note (id uuid, phase smallint, walked uuid, rounds int, found bigint, later bigint, counts text, retired bigint?)
-- A replica that comes late changes nothing.
UPDATE weft.erasure
   SET phase = :phase, walked = :walked, rounds = :rounds, found = :found, later = :later, counts = :counts,
       retired = :retired
 WHERE id = :id AND finished IS NULL AND (rounds < :rounds OR (rounds = :rounds AND phase <= :phase));

-- name: erasure_end (id uuid, phase smallint, finished bigint?, counts text, left_over text, digest text?)
-- From here on the row does not have the subject.
UPDATE weft.erasure
   SET subject = NULL, phase = :phase, finished = :finished, counts = :counts, left_over = :left_over, digest = :digest
 WHERE id = :id AND finished IS NULL;

-- name: erasure_verified (id uuid, verified bigint, remains bigint)
UPDATE weft.erasure SET verified = :verified, remains = :remains WHERE id = :id;

-- name: erase_writers (barrier bigint)
-- returns: open bool
-- only: pg, because in SQLite no transaction is open beside the one that writes
-- Whether a transaction is open that writes executions and began before the order was stored. Its number, which
-- pg_locks has in 32 bits, is the lower one by less than half of these.
SELECT EXISTS (SELECT 1 FROM pg_locks w
                 JOIN pg_locks t ON t.virtualtransaction = w.virtualtransaction AND t.locktype = 'transactionid'
                                AND t.mode = 'ExclusiveLock' AND t.granted
                WHERE w.locktype = 'relation' AND w.relation = 'weft.execution'::regclass
                  AND w.mode = 'RowExclusiveLock' AND w.granted
                  AND w.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
                  AND ((:barrier - t.transactionid::text::bigint) & 4294967295) BETWEEN 1 AND 2147483647);

-- fragment: of_subject (e)
-- An execution of the tenant, or with the tag, in the namespace. A tag is searched for as it stands in the
-- canonical text of tags, as lists do.
(SELECT q.namespace = :namespace AND (:tag IS NOT NULL OR q.tenant = :tenant) FROM weft.queue q WHERE q.id = @e.queue)
AND (:tag IS NULL OR strpos(@e.tags, :tag) > 0)

-- name: erase_walk (namespace int, tenant int, tag text?, horizon bigint, after uuid, most int)
-- returns: last uuid?, id uuid?, later bool?, living bool, flow uuid?, ended bool
-- The executions of the subject among the next ones; one row without id if there is none. last: how far that
-- came. later: created after the horizon. Locks nothing.
WITH w AS MATERIALIZED (
    SELECT e.id, e.created, e.queue, e.tags FROM weft.execution e WHERE e.id > :after ORDER BY e.id LIMIT :most
), m AS MATERIALIZED (
    SELECT w.id, w.created FROM w WHERE @{of_subject w}
)
SELECT x.last, m.id, m.created > :horizon, l.id IS NOT NULL, coalesce(l.flow, o.flow), o.id IS NOT NULL
  FROM (SELECT (SELECT w.id FROM w ORDER BY w.id DESC LIMIT 1) AS last) x
  LEFT JOIN m ON true
  LEFT JOIN LATERAL (SELECT id, flow FROM weft.live WHERE id = m.id OFFSET 0) l ON true
  LEFT JOIN LATERAL (SELECT id, flow FROM weft.outcome WHERE id = m.id OFFSET 0) o ON true
 ORDER BY m.id;

-- name: erase_shared (flow uuid, namespace int, tenant int, tag text?, horizon bigint)
-- returns: shared bool
-- Whether a member of the flow is not the subject's, or was added after the horizon.
SELECT EXISTS (SELECT 1 FROM weft.node n
                CROSS JOIN LATERAL (SELECT * FROM weft.execution x WHERE x.id = n.id OFFSET 0) e
                WHERE n.flow = :flow AND n.k >= 0 AND (e.created > :horizon OR (@{of_subject e}) IS NOT TRUE));

-- name: erase_take (id uuid[])
-- returns: id uuid, has smallint, key text?, namespace int, flow uuid?
-- Locks what has ended, of these, as far as no other transaction does, and nothing whose lease is still to be settled.
SELECT o.id, o.has, e.key, q.namespace, o.flow
  FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT x.id, x.has, x.flow FROM weft.outcome x
                      WHERE x.id = i.id
                        AND NOT EXISTS (SELECT 1 FROM weft.ledger g
                                         WHERE g.id = x.id AND coalesce(g.settled, -1) = -1 OFFSET 0)
                        FOR UPDATE SKIP LOCKED) o
 CROSS JOIN LATERAL (SELECT y.key, y.queue FROM weft.execution y WHERE y.id = o.id OFFSET 0) e
 CROSS JOIN LATERAL (SELECT z.namespace FROM weft.queue z WHERE z.id = e.queue OFFSET 0) q;

-- name: erase_ledger (id uuid[])
-- returns: count bigint
-- The record of a budget goes on to add up; it does not say any more what for.
WITH done AS (
    UPDATE weft.ledger g SET id = gen_random_uuid() FROM unnest(:id) AS i(id)
     WHERE g.id BETWEEN i.id AND i.id AND g.settled IS NOT NULL
    RETURNING 1
)
SELECT count(*) FROM done;

-- name: erase_blank (id uuid[])
-- Queues without a tenant beside those of these executions, which are members of flows.
WITH wanted AS MATERIALIZED (
    SELECT DISTINCT q.namespace, q.lane, q.kind, q.route
      FROM unnest(:id) AS i(id)
     CROSS JOIN LATERAL (SELECT x.queue FROM weft.execution x WHERE x.id = i.id OFFSET 0) e
     CROSS JOIN LATERAL (SELECT * FROM weft.queue z WHERE z.id = e.queue OFFSET 0) q
), kept AS (
    DELETE FROM weft.retired r
     USING weft.queue q, wanted w
     WHERE r.what = @WEFT_INTERNED_QUEUE AND r.id = q.id AND q.namespace = w.namespace AND q.lane = w.lane
       AND q.kind = w.kind AND q.route = w.route AND q.tenant = 0
)
INSERT INTO weft.queue (namespace, lane, kind, route, tenant)
SELECT namespace, lane, kind, route, 0 FROM wanted ORDER BY 1, 2, 3, 4 ON CONFLICT DO NOTHING;

-- name: erase_scrub (id uuid[])
-- returns: count bigint
-- Ended members of flows that others share, locked by erase_take: what they carried goes, the node stays.
WITH m AS MATERIALIZED (
    SELECT i.id, b.id AS queue
      FROM unnest(:id) AS i(id)
     CROSS JOIN LATERAL (SELECT x.queue FROM weft.execution x WHERE x.id = i.id OFFSET 0) e
     CROSS JOIN LATERAL (SELECT * FROM weft.queue z WHERE z.id = e.queue OFFSET 0) q
     CROSS JOIN LATERAL (SELECT z.id FROM weft.queue z
                          WHERE z.namespace = q.namespace AND z.lane = q.lane AND z.kind = q.kind
                            AND z.route = q.route AND z.tenant = 0 OFFSET 0) b
), changed AS (
    UPDATE weft.execution e
       SET queue = m.queue, content_type = NULL, tags = NULL, key = NULL, payload = NULL, gate = NULL
      FROM m WHERE e.id BETWEEN m.id AND m.id
    RETURNING 1
), outcomes AS (
    UPDATE weft.outcome o
       SET queue = m.queue, reason = NULL, error_class = NULL, error_message = NULL, content_type = NULL, result = NULL
      FROM m WHERE o.id BETWEEN m.id AND m.id
), attempts AS (
    UPDATE weft.attempt a
       SET reason = NULL, error_class = NULL, error_message = NULL, content_type = NULL, result = NULL
      FROM m WHERE a.id BETWEEN m.id AND m.id
), notes AS (
    UPDATE weft.progress p SET note = NULL FROM m WHERE p.id BETWEEN m.id AND m.id
), signals AS (
    DELETE FROM weft.signal s USING m WHERE s.id BETWEEN m.id AND m.id
), waitpoints AS (
    DELETE FROM weft.waitpoint w USING m WHERE w.id BETWEEN m.id AND m.id
), resumptions AS (
    DELETE FROM weft.resumption r USING m WHERE r.id BETWEEN m.id AND m.id
), costs AS (
    DELETE FROM weft.cost c USING m WHERE c.id BETWEEN m.id AND m.id
), details AS (
    DELETE FROM weft.detail d USING m WHERE d.id BETWEEN m.id AND m.id
)
SELECT count(*) FROM changed;

-- name: erase_batches (namespace int, after uuid, most int)
-- returns: id uuid, file uuid, metadata text?, created bigint, flow_state smallint?
-- The next batches, also deleted ones. flow_state: NULL when the flow is gone. Locks nothing.
SELECT b.id, b.file, b.metadata, b.created, f.state
  FROM (SELECT x.id, x.file, x.metadata, x.created FROM weft.batch x
         WHERE x.id > :after AND x.namespace = :namespace ORDER BY x.id LIMIT :most) b
  LEFT JOIN LATERAL (SELECT state FROM weft.flow WHERE id = b.id OFFSET 0) f ON true
 ORDER BY b.id;

-- name: erase_file_users (file uuid)
-- returns: metadata text?, created bigint
SELECT b.metadata, b.created FROM weft.batch b WHERE b.file = :file;

-- name: erase_staged (flow uuid)
-- returns: id uuid
-- The flow of a batch that was being written and is deleted: no part of it can come any more.
UPDATE weft.flow SET state = @WEFT_FLOW_REMOVING, key = NULL
 WHERE id = :flow AND state = @WEFT_FLOW_STAGED RETURNING id;

-- name: erase_chunks (file uuid, most int)
-- returns: count bigint
WITH gone AS (
    DELETE FROM weft.file_chunk c
     USING (SELECT x.file, x.at FROM weft.file_chunk x WHERE x.file = :file ORDER BY x.at LIMIT :most) d
     WHERE c.file = d.file AND c.at = d.at
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: erase_file (file uuid)
-- returns: id uuid
DELETE FROM weft.file WHERE id = :file RETURNING id;

-- name: erase_batch_mark (now bigint, id uuid)
-- returns: id uuid
-- Hides it; from here on no part of it is written, and `purge` may remove it when its flow is gone.
UPDATE weft.batch SET deleted = :now WHERE id = :id AND deleted IS NULL RETURNING id;

-- name: erase_batch (now bigint, id uuid)
-- Whatever it carried goes; the row is left to `purge`.
WITH models AS (DELETE FROM weft.batch_model WHERE batch = :id)
UPDATE weft.batch SET deleted = coalesce(deleted, :now), metadata = NULL, flaws = '' WHERE id = :id;

-- name: erase_inbox (namespace text, after uuid, until uuid, most int)
-- returns: id uuid, tenant text?, tags text?
-- only: pg, because SQLite has no inbox
-- Rows that were written before the request: their ids begin with the time.
SELECT i.id, i.tenant, i.tags FROM weft.inbox i
 WHERE i.namespace = :namespace AND i.id > :after AND i.id < :until ORDER BY i.id LIMIT :most;

-- name: erase_inbox_remove (id uuid[])
-- returns: id uuid
-- only: pg, because SQLite has no inbox
-- Waits for an intake that is taking one of these: see src/engine/erase/erase_name.c.
DELETE FROM weft.inbox b USING unnest(:id) AS i(id) WHERE b.id = i.id RETURNING b.id;

-- name: erase_notes (id uuid[])
-- returns: count bigint
-- only: pg, because SQLite has no inbox
-- Notes of executions that intake refused.
WITH gone AS (
    DELETE FROM weft.inbox_refused r WHERE r.id = ANY(:id) RETURNING 1
)
SELECT count(*) FROM gone;

-- name: erase_budgets (namespace int, tenant text, instead text)
-- returns: count bigint
-- Budgets that match the tenant match no tenant from now on.
WITH done AS (
    UPDATE weft.budget SET tenant = :instead WHERE namespace = :namespace AND tenant = :tenant RETURNING 1
), version AS (
    UPDATE weft.budget_version SET version = version + 1 WHERE EXISTS (SELECT 1 FROM done)
)
SELECT count(*) FROM done;

-- name: erase_budget_tenants (namespace int)
-- returns: tenant text
SELECT b.tenant FROM weft.budget b WHERE b.namespace = :namespace AND b.tenant IS NOT NULL;

-- name: erase_tenants (namespace int, after int, most int)
-- returns: id int, text text
SELECT n.id, n.text FROM weft.name n
 WHERE n.id > :after AND n.sort = @WEFT_NAME_TENANT AND n.namespace = :namespace ORDER BY n.id LIMIT :most;

-- name: erase_queues (tenant int)
-- returns: id int
SELECT q.id FROM weft.queue q WHERE q.tenant = :tenant ORDER BY q.id;

-- name: erase_retired (what smallint[], id int[])
-- returns: what smallint, id int
-- Locks notes of retired rows; a note that is missing, or that an operation is taking back, is of a row that is wanted.
SELECT r.what, r.id
  FROM weft.retired r JOIN unnest(:what, :id) AS w(what, id) ON r.what = w.what AND r.id = w.id
 ORDER BY 1, 2 FOR UPDATE OF r SKIP LOCKED;

-- name: name_rename (id int, text text)
UPDATE weft.name SET text = :text WHERE id = :id;

-- name: erase_tags (after uuid, most int)
-- returns: id uuid, created bigint, namespace int, tags text?
-- A walk over all executions, for a look at their tags.
SELECT e.id, e.created, q.namespace, e.tags
  FROM (SELECT x.id, x.created, x.queue, x.tags FROM weft.execution x WHERE x.id > :after ORDER BY x.id LIMIT :most) e
 CROSS JOIN LATERAL (SELECT z.namespace FROM weft.queue z WHERE z.id = e.queue OFFSET 0) q
 ORDER BY e.id;
