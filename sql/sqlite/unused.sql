-- The twins of sql/pg/unused.sql.

-- name: unused_turn ()
-- returns: walker bigint, seen bigint, next bigint
SELECT walker, seen, next FROM unused_walk WHERE one = 1;

-- name: unused_take (walker bigint, now bigint, old_walker bigint, old_seen bigint)
-- returns: walker bigint
UPDATE unused_walk SET walker = :walker, seen = :now
 WHERE one = 1 AND walker = :old_walker AND seen = :old_seen
RETURNING walker;

-- name: unused_end (walker bigint, next bigint)
UPDATE unused_walk SET seen = 0, next = :next WHERE one = 1 AND walker = :walker;

-- name: unused_executions (after uuid, most int)
-- returns: id uuid, queue int, worker int?
SELECT e.id, e.queue, coalesce(l.worker, o.worker)
  FROM execution e LEFT JOIN live l ON l.num = e.num LEFT JOIN outcome o ON o.num = e.num
 WHERE e.id > :after ORDER BY e.id LIMIT :most;

-- name: unused_attempts (id uuid, epoch int, replay smallint, most int)
-- returns: id uuid, epoch int, replay smallint, worker int?
SELECT id, epoch, replay, worker FROM attempt
 WHERE (id, epoch, replay) > (:id, :epoch, :replay) ORDER BY id, epoch, replay LIMIT :most;

-- name: unused_draining (id uuid, epoch int, most int)
-- returns: id uuid, epoch int, queue int, worker int
SELECT id, epoch, queue, worker FROM draining
 WHERE (id, epoch) > (:id, :epoch) ORDER BY id, epoch LIMIT :most;

-- name: unused_workers (after int, most int)
-- returns: name int
SELECT name FROM worker WHERE name > :after ORDER BY name LIMIT :most;

-- name: unused_parts (after int, most int)
-- returns: id int, tenant int, route int
SELECT id, tenant, route FROM queue WHERE id > :after ORDER BY id LIMIT :most;

-- name: unused_names (after int, until int, namespace int, most int)
-- returns: id int, since bigint?, retired bigint?
-- The row with the largest id is never judged, so it stays: SQLite gives a new row the largest id
-- plus one, and no id may be given twice.
SELECT n.id, u.since, r.at
  FROM name n
  LEFT JOIN unused u ON u.what = @WEFT_INTERNED_NAME AND u.id = n.id
  LEFT JOIN retired r ON r.what = @WEFT_INTERNED_NAME AND r.id = n.id
 WHERE n.id > :after AND n.id <= :until AND n.sort IN (@WEFT_NAME_TENANT, @WEFT_NAME_CAPSET, @WEFT_NAME_WORKER)
   AND (:namespace = 0 OR n.namespace = :namespace)
   AND n.id < (SELECT max(id) FROM name)
 ORDER BY n.id LIMIT :most;

-- name: unused_queues (after int, until int, namespace int, most int)
-- returns: id int, since bigint?, retired bigint?
-- The largest id stays, as above.
SELECT q.id, u.since, r.at
  FROM queue q
  LEFT JOIN unused u ON u.what = @WEFT_INTERNED_QUEUE AND u.id = q.id
  LEFT JOIN retired r ON r.what = @WEFT_INTERNED_QUEUE AND r.id = q.id
 WHERE q.id > :after AND q.id <= :until AND (:namespace = 0 OR q.namespace = :namespace)
   AND q.id < (SELECT max(id) FROM queue)
 ORDER BY q.id LIMIT :most;

-- name: unused_last ()
-- returns: id int
SELECT max(coalesce((SELECT max(id) FROM name), 0), coalesce((SELECT max(id) FROM queue), 0));

-- name: unused_note (since bigint, what smallint[], id int[])
INSERT INTO unused (what, id, since) VALUES (:what, :id, :since) ON CONFLICT DO NOTHING;

-- name: unused_forget (what smallint[], id int[])
DELETE FROM unused WHERE what = :what AND id = :id;

-- name: retired_count (what smallint)
-- returns: rows bigint
SELECT count(*) FROM retired WHERE what = :what;

-- name: retired_add (at bigint, what smallint[], id int[])
INSERT INTO retired (what, id, at) VALUES (:what, :id, :at) ON CONFLICT DO NOTHING;

-- name: retired_take (before bigint, what smallint[], id int[])
-- returns: what smallint, id int
DELETE FROM retired WHERE what = :what AND id = :id AND at <= :before RETURNING what, id;

-- name: name_remove (id int[])
DELETE FROM name WHERE id = :id;

-- name: queue_remove (id int[])
DELETE FROM queue WHERE id = :id;

-- name: schema_raise (oldest int)
UPDATE schema SET oldest_binary = :oldest WHERE one = 1 AND oldest_binary < :oldest;
