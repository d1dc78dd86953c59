-- Interned rows that no row refers to: how the scanner unused_names finds, retires and removes them.
-- src/engine/names/unused.h has the argument. The walks lock nothing.

-- name: unused_turn ()
-- returns: walker bigint, seen bigint, next bigint
SELECT walker, seen, next FROM weft.unused_walk WHERE one = 1;

-- name: unused_take (walker bigint, now bigint, old_walker bigint, old_seen bigint)
-- returns: walker bigint
-- Of two processes that take the turn at once, the second finds the row changed and gets no row.
UPDATE weft.unused_walk SET walker = :walker, seen = :now
 WHERE one = 1 AND walker = :old_walker AND seen = :old_seen
RETURNING walker;

-- name: unused_end (walker bigint, next bigint)
UPDATE weft.unused_walk SET seen = 0, next = :next WHERE one = 1 AND walker = :walker;

-- name: unused_executions (after uuid, most int)
-- returns: id uuid, queue int, worker int?
-- An execution is in one of live and outcome, so one statement misses no worker between them.
SELECT e.id, e.queue, coalesce(l.worker, o.worker)
  FROM (SELECT id, queue FROM weft.execution WHERE id > :after ORDER BY id LIMIT :most) e
  @{live_or_outcome worker | e.id}
 ORDER BY e.id;

-- name: unused_attempts (id uuid, epoch int, replay smallint, most int)
-- returns: id uuid, epoch int, replay smallint, worker int?
SELECT id, epoch, replay, worker FROM weft.attempt
 WHERE (id, epoch, replay) > (:id, :epoch, :replay) ORDER BY id, epoch, replay LIMIT :most;

-- name: unused_draining (id uuid, epoch int, most int)
-- returns: id uuid, epoch int, queue int, worker int
SELECT id, epoch, queue, worker FROM weft.draining
 WHERE (id, epoch) > (:id, :epoch) ORDER BY id, epoch LIMIT :most;

-- name: unused_workers (after int, most int)
-- returns: name int
SELECT name FROM weft.worker WHERE name > :after ORDER BY name LIMIT :most;

-- name: unused_parts (after int, most int)
-- returns: id int, tenant int, route int
SELECT id, tenant, route FROM weft.queue WHERE id > :after ORDER BY id LIMIT :most;

-- name: unused_names (after int, until int, namespace int, most int)
-- returns: id int, since bigint?, retired bigint?
-- Tenants, routes and workers with an id up to `until`, with their notes.
SELECT n.id, u.since, r.at
  FROM (SELECT id FROM weft.name
         WHERE id > :after AND id <= :until AND sort IN (@WEFT_NAME_TENANT, @WEFT_NAME_CAPSET, @WEFT_NAME_WORKER)
           AND (:namespace = 0 OR namespace = :namespace)
         ORDER BY id LIMIT :most) n
  LEFT JOIN LATERAL (SELECT since FROM weft.unused WHERE what = @WEFT_INTERNED_NAME AND id = n.id OFFSET 0) u ON true
  LEFT JOIN LATERAL (SELECT at FROM weft.retired WHERE what = @WEFT_INTERNED_NAME AND id = n.id OFFSET 0) r ON true
 ORDER BY n.id;

-- name: unused_queues (after int, until int, namespace int, most int)
-- returns: id int, since bigint?, retired bigint?
SELECT q.id, u.since, r.at
  FROM (SELECT id FROM weft.queue
         WHERE id > :after AND id <= :until AND (:namespace = 0 OR namespace = :namespace)
         ORDER BY id LIMIT :most) q
  LEFT JOIN LATERAL (SELECT since FROM weft.unused WHERE what = @WEFT_INTERNED_QUEUE AND id = q.id OFFSET 0) u ON true
  LEFT JOIN LATERAL (SELECT at FROM weft.retired WHERE what = @WEFT_INTERNED_QUEUE AND id = q.id OFFSET 0) r ON true
 ORDER BY q.id;

-- name: unused_last ()
-- returns: id int
-- The largest id of a name or a queue.
SELECT greatest((SELECT max(id) FROM weft.name), (SELECT max(id) FROM weft.queue), 0);

-- name: unused_note (since bigint, what smallint[], id int[])
INSERT INTO weft.unused (what, id, since)
SELECT w.what, w.id, :since FROM unnest(:what, :id) AS w(what, id) ORDER BY 1, 2
    ON CONFLICT DO NOTHING;

-- name: unused_forget (what smallint[], id int[])
DELETE FROM weft.unused u USING unnest(:what, :id) AS w(what, id)
 WHERE u.what = w.what AND u.id = w.id;

-- name: retired_count (what smallint)
-- returns: rows bigint
SELECT count(*) FROM weft.retired WHERE what = :what;

-- name: retired_add (at bigint, what smallint[], id int[])
INSERT INTO weft.retired (what, id, at)
SELECT w.what, w.id, :at FROM unnest(:what, :id) AS w(what, id) ORDER BY 1, 2
    ON CONFLICT DO NOTHING;

-- name: retired_take (before bigint, what smallint[], id int[])
-- returns: what smallint, id int
-- The notes of rows that this transaction then removes. A row whose note an operation is just taking
-- back is wanted, so it is passed over.
WITH taken AS MATERIALIZED (
    SELECT r.what, r.id
      FROM weft.retired r JOIN unnest(:what, :id) AS w(what, id) ON r.what = w.what AND r.id = w.id
     WHERE r.at <= :before
     ORDER BY 1, 2 FOR UPDATE OF r SKIP LOCKED
)
DELETE FROM weft.retired r USING taken t WHERE r.what = t.what AND r.id = t.id
RETURNING r.what, r.id;

-- name: name_remove (id int[])
DELETE FROM weft.name n USING unnest(:id) AS w(id) WHERE n.id = w.id;

-- name: queue_remove (id int[])
DELETE FROM weft.queue q USING unnest(:id) AS w(id) WHERE q.id = w.id;

-- name: schema_raise (oldest int)
-- No older binary may use the store from now on.
UPDATE weft.schema SET oldest_binary = :oldest WHERE one = 1 AND oldest_binary < :oldest;
