-- The twins of sql/pg/erase.sql.

-- fragment: erasure_columns ()
e.id, e.namespace, e.sort, e.subject, e.secret, e.hash, e.reason, e.by, e.asked, e.phase, e.walked, e.rounds, e.found,
e.later, e.counts, e.retired, e.finished, e.left_over, e.digest, e.verified, e.remains, e.barrier

-- name: erasure_add (id uuid, namespace int, sort smallint, subject text, secret bytea, hash text, reason text, token int, asked bigint, walked uuid)
INSERT INTO erasure (id, namespace, sort, subject, secret, hash, reason, by, asked, phase, walked, rounds, found,
                     later, counts, barrier)
SELECT :id, :namespace, :sort, :subject, :secret, :hash, :reason,
       (SELECT t.name FROM token t WHERE t.id = :token), :asked, 0, :walked, 0, 0, 0, '{}', 0;

-- name: erasure_read (id uuid, namespace int)
-- returns: id uuid, namespace int, sort smallint, subject text?, secret bytea, hash text, reason text, by text?, asked bigint, phase smallint, walked uuid, rounds int, found bigint, later bigint, counts text, retired bigint?, finished bigint?, left_over text?, digest text?, verified bigint?, remains bigint?, barrier bigint
SELECT @{erasure_columns} FROM erasure e WHERE e.id = :id AND e.namespace = :namespace;

-- name: erasure_list (namespace int, after uuid, limit int)
-- returns: id uuid, namespace int, sort smallint, subject text?, secret bytea, hash text, reason text, by text?, asked bigint, phase smallint, walked uuid, rounds int, found bigint, later bigint, counts text, retired bigint?, finished bigint?, left_over text?, digest text?, verified bigint?, remains bigint?, barrier bigint
SELECT @{erasure_columns} FROM erasure e
 WHERE e.namespace = :namespace AND e.id < :after ORDER BY e.id DESC LIMIT :limit;

-- name: erasure_due (batch int, ns int)
-- returns: id uuid, namespace int, sort smallint, subject text?, secret bytea, hash text, reason text, by text?, asked bigint, phase smallint, walked uuid, rounds int, found bigint, later bigint, counts text, retired bigint?, finished bigint?, left_over text?, digest text?, verified bigint?, remains bigint?, barrier bigint
SELECT @{erasure_columns} FROM erasure e
 WHERE e.finished IS NULL AND (:ns = 0 OR e.namespace = :ns) ORDER BY e.id LIMIT :batch;

-- name: erasure_lock (id uuid)
-- returns: id uuid, namespace int, sort smallint, subject text?, secret bytea, hash text, reason text, by text?, asked bigint, phase smallint, walked uuid, rounds int, found bigint, later bigint, counts text, retired bigint?, finished bigint?, left_over text?, digest text?, verified bigint?, remains bigint?, barrier bigint
SELECT @{erasure_columns} FROM erasure e WHERE e.id = :id AND e.finished IS NULL;

-- name: erasure_note (id uuid, phase smallint, walked uuid, rounds int, found bigint, later bigint, counts text, retired bigint?)
UPDATE erasure
   SET phase = :phase, walked = :walked, rounds = :rounds, found = :found, later = :later, counts = :counts,
       retired = :retired
 WHERE id = :id AND finished IS NULL AND (rounds < :rounds OR (rounds = :rounds AND phase <= :phase));

-- name: erasure_end (id uuid, phase smallint, finished bigint?, counts text, left_over text, digest text?)
UPDATE erasure
   SET subject = NULL, phase = :phase, finished = :finished, counts = :counts, left_over = :left_over, digest = :digest
 WHERE id = :id AND finished IS NULL;

-- name: erasure_verified (id uuid, verified bigint, remains bigint)
UPDATE erasure SET verified = :verified, remains = :remains WHERE id = :id;

-- fragment: of_subject (e)
(SELECT q.namespace = :namespace AND (:tag IS NOT NULL OR q.tenant = :tenant) FROM queue q WHERE q.id = @e.queue)
AND (:tag IS NULL OR instr(@e.tags, :tag) > 0)

-- name: erase_walk (namespace int, tenant int, tag text?, horizon bigint, after uuid, most int)
-- returns: last uuid?, id uuid?, later bool?, living bool, flow uuid?, ended bool
WITH w AS MATERIALIZED (
    SELECT num, id, created, queue, tags FROM execution WHERE id > :after ORDER BY id LIMIT :most
), m AS MATERIALIZED (
    SELECT w.num, w.id, w.created FROM w WHERE @{of_subject w}
)
SELECT x.last, m.id, m.created > :horizon, l.num IS NOT NULL, f.id, o.num IS NOT NULL
  FROM (SELECT (SELECT max(id) FROM w) AS last) x
  LEFT JOIN m ON true
  LEFT JOIN live l ON l.num = m.num
  LEFT JOIN outcome o ON o.num = m.num
  LEFT JOIN flow f ON f.num = coalesce(l.flow, o.flow)
 ORDER BY m.id;

-- name: erase_shared (flow uuid, namespace int, tenant int, tag text?, horizon bigint)
-- returns: shared bool
SELECT EXISTS (SELECT 1 FROM flow f CROSS JOIN node n ON n.flow = f.num CROSS JOIN execution e ON e.num = n.num
                WHERE f.id = :flow AND (e.created > :horizon OR (@{of_subject e}) IS NOT TRUE));

-- name: erase_take (id uuid[])
-- returns: id uuid, has smallint, key text?, namespace int, flow uuid?
SELECT e.id, o.has, e.key, q.namespace, f.id
  FROM input i CROSS JOIN execution e ON e.id = i.id CROSS JOIN outcome o ON o.num = e.num
 CROSS JOIN queue q ON q.id = e.queue
  LEFT JOIN flow f ON f.num = o.flow
 WHERE NOT EXISTS (SELECT 1 FROM ledger g WHERE g.id = e.id AND g.settled IS NULL);

-- name: erase_ledger (id uuid[])
-- returns: count bigint
UPDATE ledger SET id = randomblob(16) WHERE id IN (SELECT i.id FROM input i) AND settled IS NOT NULL;
SELECT changes();

-- name: erase_blank (id uuid[])
DELETE FROM retired WHERE what = @WEFT_INTERNED_QUEUE AND id IN (
    SELECT b.id FROM input i CROSS JOIN execution e ON e.id = i.id CROSS JOIN queue q ON q.id = e.queue
     CROSS JOIN queue b ON b.namespace = q.namespace AND b.lane = q.lane AND b.kind = q.kind
                       AND b.route = q.route AND b.tenant = 0);
INSERT OR IGNORE INTO queue (namespace, lane, kind, route, tenant)
SELECT DISTINCT q.namespace, q.lane, q.kind, q.route, 0
  FROM input i CROSS JOIN execution e ON e.id = i.id CROSS JOIN queue q ON q.id = e.queue;

-- fragment: blank_queue (e)
(SELECT b.id FROM queue q CROSS JOIN queue b
  WHERE q.id = @e.queue AND b.namespace = q.namespace AND b.lane = q.lane AND b.kind = q.kind AND b.route = q.route
    AND b.tenant = 0)

-- name: erase_scrub (id uuid[])
-- returns: count bigint
UPDATE outcome
   SET queue = (SELECT @{blank_queue e} FROM execution e WHERE e.num = outcome.num),
       reason = NULL, error_class = NULL, error_message = NULL, content_type = NULL, result = NULL
 WHERE num IN (SELECT e.num FROM input i CROSS JOIN execution e ON e.id = i.id);
UPDATE attempt SET reason = NULL, error_class = NULL, error_message = NULL, content_type = NULL, result = NULL
 WHERE id IN (SELECT i.id FROM input i);
UPDATE progress SET note = NULL WHERE id IN (SELECT i.id FROM input i);
DELETE FROM signal WHERE id IN (SELECT i.id FROM input i);
DELETE FROM waitpoint WHERE id IN (SELECT i.id FROM input i);
DELETE FROM resumption WHERE id IN (SELECT i.id FROM input i);
DELETE FROM cost WHERE id IN (SELECT i.id FROM input i);
DELETE FROM detail WHERE id IN (SELECT i.id FROM input i);
UPDATE execution
   SET queue = @{blank_queue execution}, content_type = NULL, tags = NULL, key = NULL, payload = NULL, gate = NULL
 WHERE id IN (SELECT i.id FROM input i);
SELECT changes();

-- name: erase_batches (namespace int, after uuid, most int)
-- returns: id uuid, file uuid, metadata text?, created bigint, flow_state smallint?
SELECT b.id, b.file, b.metadata, b.created, f.state
  FROM (SELECT id, file, metadata, created FROM batch
         WHERE id > :after AND namespace = :namespace ORDER BY id LIMIT :most) b
  LEFT JOIN flow f ON f.id = b.id
 ORDER BY b.id;

-- name: erase_file_users (file uuid)
-- returns: metadata text?, created bigint
SELECT metadata, created FROM batch WHERE file = :file;

-- name: erase_staged (flow uuid)
-- returns: id uuid
UPDATE flow SET state = @WEFT_FLOW_REMOVING, key = NULL
 WHERE id = :flow AND state = @WEFT_FLOW_STAGED RETURNING id;

-- name: erase_chunks (file uuid, most int)
-- returns: count bigint
DELETE FROM file_chunk
 WHERE num IN (SELECT num FROM file_chunk WHERE file = :file ORDER BY at LIMIT :most);
SELECT changes();

-- name: erase_file (file uuid)
-- returns: id uuid
DELETE FROM file WHERE id = :file RETURNING id;

-- name: erase_batch_mark (now bigint, id uuid)
-- returns: id uuid
-- Hides it; from here on no part of it is written, and `purge` may remove it when its flow is gone.
UPDATE batch SET deleted = :now WHERE id = :id AND deleted IS NULL RETURNING id;

-- name: erase_batch (now bigint, id uuid)
-- Whatever it carried goes; the row is left to `purge`.
DELETE FROM batch_model WHERE batch = :id;
UPDATE batch SET deleted = coalesce(deleted, :now), metadata = NULL, flaws = '' WHERE id = :id;

-- name: erase_budgets (namespace int, tenant text, instead text)
-- returns: count bigint
UPDATE budget_version SET version = version + 1
 WHERE EXISTS (SELECT 1 FROM budget WHERE namespace = :namespace AND tenant = :tenant);
UPDATE budget SET tenant = :instead WHERE namespace = :namespace AND tenant = :tenant;
SELECT changes();

-- name: erase_budget_tenants (namespace int)
-- returns: tenant text
SELECT b.tenant FROM budget b WHERE b.namespace = :namespace AND b.tenant IS NOT NULL;

-- name: erase_tenants (namespace int, after int, most int)
-- returns: id int, text text
SELECT n.id, n.text FROM name n
 WHERE n.id > :after AND n.sort = @WEFT_NAME_TENANT AND n.namespace = :namespace ORDER BY n.id LIMIT :most;

-- name: erase_queues (tenant int)
-- returns: id int
SELECT id FROM queue WHERE tenant = :tenant ORDER BY id;

-- name: erase_retired (what smallint[], id int[])
-- returns: what smallint, id int
SELECT r.what, r.id FROM input i CROSS JOIN retired r ON r.what = i.what AND r.id = i.id;

-- name: name_rename (id int, text text)
UPDATE name SET text = :text WHERE id = :id;

-- name: erase_tags (after uuid, most int)
-- returns: id uuid, created bigint, namespace int, tags text?
SELECT e.id, e.created, q.namespace, e.tags
  FROM (SELECT id, created, queue, tags FROM execution WHERE id > :after ORDER BY id LIMIT :most) e
 CROSS JOIN queue q ON q.id = e.queue
 ORDER BY e.id;
