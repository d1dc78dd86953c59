-- The twins of sql/pg/batch.sql.

-- name: batch_add (now bigint, id uuid, namespace int, file uuid, endpoint text, span text, metadata text?, expires bigint)
INSERT INTO batch (id, namespace, file, endpoint, span, metadata, phase, at, line, requests, flaws, created, expires,
                   succeeded, failed, expired, cancelled)
VALUES (:id, :namespace, :file, :endpoint, :span, :metadata, 0, 0, 0, 0, '', :now, :expires, 0, 0, 0, 0);

-- name: batch_read (namespace int, id uuid)
-- returns: id uuid, file uuid, endpoint text, span text, metadata text?, phase smallint, at bigint, line bigint, last uuid?, requests bigint, flaws text, created bigint, expires bigint, opened bigint?, finished bigint?, frozen bigint?, wanted bigint?, succeeded bigint, failed bigint, expired bigint, cancelled bigint, namespace int, flow_state smallint?, flow_finished bigint?, flow_cancel smallint?, ns text, retried bigint?, retry bigint?, retry_to uuid?, looked bigint, look_at bigint
-- namespace 0: of any.
SELECT b.id, b.file, b.endpoint, b.span, b.metadata, b.phase, b.at, b.line, b.last, b.requests, b.flaws, b.created,
       b.expires, b.opened, b.finished, b.frozen, b.wanted, b.succeeded, b.failed, b.expired, b.cancelled, b.namespace,
       f.state, f.finished, f.cancel, (SELECT x.text FROM name x WHERE x.id = b.namespace),
       b.retried, b.retry, b.retry_to, b.looked, b.look_at
  FROM batch b LEFT JOIN flow f ON f.id = b.id
 WHERE b.id = :id AND (:namespace = 0 OR b.namespace = :namespace) AND b.deleted IS NULL;

-- name: batches_list (namespace int, after uuid, most int)
-- returns: id uuid, file uuid, endpoint text, span text, metadata text?, phase smallint, at bigint, line bigint, last uuid?, requests bigint, flaws text, created bigint, expires bigint, opened bigint?, finished bigint?, frozen bigint?, wanted bigint?, succeeded bigint, failed bigint, expired bigint, cancelled bigint, namespace int, flow_state smallint?, flow_finished bigint?, flow_cancel smallint?, ns text, retried bigint?, retry bigint?, retry_to uuid?, looked bigint, look_at bigint
-- Newest first, behind `after`.
SELECT b.id, b.file, b.endpoint, b.span, b.metadata, b.phase, b.at, b.line, b.last, b.requests, b.flaws, b.created,
       b.expires, b.opened, b.finished, b.frozen, b.wanted, b.succeeded, b.failed, b.expired, b.cancelled, b.namespace,
       f.state, f.finished, f.cancel, (SELECT x.text FROM name x WHERE x.id = b.namespace),
       b.retried, b.retry, b.retry_to, b.looked, b.look_at
  FROM batch b LEFT JOIN flow f ON f.id = b.id
 WHERE b.namespace = :namespace AND b.id < :after AND b.deleted IS NULL
 ORDER BY b.namespace DESC, b.id DESC LIMIT :most;

-- name: batch_move (id uuid, from bigint, at bigint, line bigint, last uuid?, requests bigint)
-- returns: id uuid
-- A part of the file has been read. No row: another process was faster, or the batch is not being written any more.
UPDATE batch SET at = :at, line = :line, last = coalesce(:last, last), requests = requests + :requests
 WHERE id = :id AND at = :from AND phase = 0 AND deleted IS NULL RETURNING id;

-- name: batch_open (now bigint, id uuid)
-- returns: id uuid
UPDATE batch SET phase = 1, opened = :now WHERE id = :id AND phase = 0 AND deleted IS NULL RETURNING id;

-- name: batch_fail (now bigint, id uuid, flaws text)
UPDATE batch SET phase = 3, finished = :now, flaws = :flaws WHERE id = :id AND phase = 0;

-- name: batch_want_cancel (now bigint, id uuid)
UPDATE batch SET wanted = :now WHERE id = :id AND phase < 2 AND wanted IS NULL;

-- name: batch_hold (id uuid)
-- returns: id uuid
-- Waits. A batch whose lines are being brought back has not ended.
SELECT id FROM batch WHERE id = :id AND phase = 1 AND retry IS NULL;

-- name: batch_freeze (now bigint, id uuid, finished bigint, succeeded bigint, failed bigint, expired bigint, cancelled bigint)
-- Under batch_hold.
UPDATE batch SET phase = 2, frozen = :now, finished = :finished, succeeded = :succeeded, failed = :failed,
       expired = :expired, cancelled = :cancelled
 WHERE id = :id;

-- name: batches_thaw (flow uuid[])
UPDATE flow SET cancel = 0, reason = NULL, drained = NULL, backlog = 0
 WHERE id = :flow AND state > 0
   AND EXISTS (SELECT 1 FROM batch b WHERE b.id = :flow AND (b.phase = 2 OR (b.phase = 1 AND b.wanted IS NULL)));
UPDATE batch SET phase = 1, frozen = NULL, finished = NULL, wanted = CASE WHEN phase = 1 THEN wanted END
 WHERE id = :flow AND phase BETWEEN 1 AND 2;

-- name: batch_lock (id uuid)
-- returns: id uuid
SELECT id FROM batch WHERE id = :id AND deleted IS NULL;

-- name: batch_bad_count (id uuid)
-- returns: number bigint, latest bigint?
SELECT count(*), max(o.finished)
  FROM node n CROSS JOIN outcome o ON o.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :id) AND o.state <> @succeeded;

-- name: batch_retry (id uuid, now bigint, moment bigint, expires bigint)
UPDATE batch SET phase = 1, frozen = NULL, finished = NULL, wanted = NULL, retried = :now, retry = :moment,
       retry_to = NULL, expires = :expires
 WHERE id = :id;

-- name: batch_bad (batch uuid, after uuid, moment bigint, most int)
-- returns: id uuid, bad bool
SELECT e.id, coalesce(o.state <> @succeeded AND o.finished <= :moment, 0)
  FROM node n CROSS JOIN execution e ON e.num = n.num LEFT JOIN outcome o ON o.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :batch)
   AND n.num > coalesce((SELECT num FROM execution WHERE id = :after), -1)
 ORDER BY n.num LIMIT :most;

-- name: batch_retry_move (id uuid, moment bigint, to uuid, done bool)
UPDATE batch SET retry = CASE WHEN :done THEN NULL ELSE retry END, retry_to = :to
 WHERE id = :id AND retry = :moment AND (retry_to IS NULL OR retry_to <= :to);

-- name: batch_remove (now bigint, id uuid)
-- returns: id uuid
UPDATE batch SET deleted = :now WHERE id = :id AND deleted IS NULL RETURNING id;

-- name: batches_active (ns int, after uuid, most int)
-- returns: id uuid, phase smallint, flow_state smallint?, flow_cancel smallint?, wanted bigint?, retry bigint?, left_over bool, ns text, look_at bigint
-- Batches that are being written, or whose flow is open or has just ended, in the order of their ids.
SELECT b.id, b.phase, f.state, f.cancel, b.wanted, b.retry,
       b.deleted IS NOT NULL AND coalesce(f.state >= 0 AND f.deleted IS NULL, 0),
       (SELECT x.text FROM name x WHERE x.id = b.namespace), b.look_at
  FROM batch b LEFT JOIN flow f ON f.id = b.id
 WHERE b.phase < 2 AND b.id > :after AND (:ns = 0 OR b.namespace = :ns)
   AND (b.deleted IS NULL OR (f.state >= 0 AND f.deleted IS NULL))
 ORDER BY b.id LIMIT :most;

-- name: batch_lines (batch uuid, after uuid, good bool, most int)
-- returns: id uuid, name text, state smallint?, result bytea?, error_class text?, error_message text?, epoch int?
SELECT e.id, n.name, o.state, CASE WHEN :good AND o.state = @succeeded THEN o.result END, o.error_class, o.error_message,
       o.epoch
  FROM node n CROSS JOIN execution e ON e.num = n.num LEFT JOIN outcome o ON o.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :batch)
   AND n.num > coalesce((SELECT num FROM execution WHERE id = :after), -1)
 ORDER BY n.num LIMIT :most;

-- name: model_put (namespace int, name text, endpoint text, lane text, escalate_to text?)
INSERT INTO model (namespace, name, endpoint, lane, escalate_to)
VALUES (:namespace, :name, :endpoint, :lane, :escalate_to)
    ON CONFLICT (namespace, name) DO UPDATE SET endpoint = excluded.endpoint, lane = excluded.lane,
                  escalate_to = excluded.escalate_to;

-- name: model_remove (namespace int, name text)
-- returns: name text, endpoint text, lane text, escalate_to text?
DELETE FROM model WHERE namespace = :namespace AND name = :name RETURNING name, endpoint, lane, escalate_to;

-- name: models_read (namespace int, first text, after text, most int)
-- returns: name text, endpoint text, lane text, escalate_to text?
SELECT name, endpoint, lane, escalate_to FROM model
 WHERE namespace = :namespace AND name >= :first AND name > :after ORDER BY name LIMIT :most;

-- name: batch_counts (batch uuid, since bigint)
-- returns: model smallint?, state smallint, number bigint, late bigint
SELECT n.model, coalesce(l.state, o.state) AS state, count(*), count(*) FILTER (WHERE o.finished >= :since)
  FROM node n LEFT JOIN live l ON l.num = n.num LEFT JOIN outcome o ON o.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :batch)
 GROUP BY 1, 2;

-- name: batch_models_read (batch uuid)
-- returns: number smallint, name text, escalated text?
SELECT number, name, escalated FROM batch_model WHERE batch = :batch ORDER BY number;

-- name: batch_model_add (batch uuid[], number smallint[], name text[])
INSERT INTO batch_model (batch, number, name) VALUES (:batch, :number, :name);

-- name: batches_orphaned (now bigint, flow uuid[])
UPDATE batch SET deleted = :now WHERE id = :flow AND phase <> 3 AND deleted IS NULL;

-- name: batches_old (now bigint, until bigint, batch int, ns int, first int, last int)
-- returns: id uuid
UPDATE batch SET deleted = :now
 WHERE num IN (SELECT b.num FROM batch b
                WHERE b.phase = 3 AND b.deleted IS NULL AND b.finished <= :until AND @{of_flow b}
                ORDER BY b.finished LIMIT :batch)
RETURNING id;

-- name: batches_removing (batch int, ns int, first int, last int)
-- returns: id uuid
SELECT b.id FROM batch b
 WHERE b.deleted IS NOT NULL AND @{of_flow b}
   AND NOT EXISTS (SELECT 1 FROM flow f WHERE f.id = b.id)
 ORDER BY b.id LIMIT :batch;

-- name: purge_batches (batch uuid[], most int)
-- returns: id uuid
DELETE FROM batch_model WHERE batch IN (SELECT i.batch FROM input i LIMIT :most);
DELETE FROM batch WHERE id IN (SELECT i.batch FROM input i LIMIT :most) AND deleted IS NOT NULL RETURNING id;

-- name: batch_look (id uuid, was bigint, looked bigint, look_at bigint)
-- returns: id uuid
UPDATE batch SET looked = :looked, look_at = :look_at
 WHERE id = :id AND look_at = :was AND phase = 1 AND deleted IS NULL RETURNING id;

-- name: batch_pace (batch uuid, since bigint, priority smallint)
-- returns: waiting bigint, raised bigint, ended bigint
SELECT count(*) FILTER (WHERE l.state = @ready), count(*) FILTER (WHERE l.state = @ready AND l.priority >= :priority),
       count(*) FILTER (WHERE o.finished >= :since)
  FROM node n LEFT JOIN live l ON l.num = n.num LEFT JOIN outcome o ON o.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :batch);

-- name: batch_waiting (batch uuid, priority smallint, most int)
-- returns: id uuid
SELECT e.id FROM node n CROSS JOIN live l ON l.num = n.num CROSS JOIN execution e ON e.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :batch) AND +l.state = @ready AND l.priority < :priority
 ORDER BY n.num LIMIT :most;

-- name: batch_movable (batch uuid, model smallint, after uuid, most int)
-- returns: id uuid, ready bool, payload bytea?
SELECT e.id, l.state = @ready, e.payload
  FROM node n CROSS JOIN live l ON l.num = n.num CROSS JOIN execution e ON e.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :batch) AND n.model = :model AND +l.state IN (@ready, @delayed)
   AND n.num > coalesce((SELECT num FROM execution WHERE id = :after), -1)
 ORDER BY n.num LIMIT :most;

-- name: batch_line_move (id uuid[], queue int[], lane int[], model smallint?[], payload bytea[], size int[])
UPDATE live SET queue = :queue, lane = :lane, size = :size WHERE num = (SELECT num FROM execution WHERE id = :id);
UPDATE node SET model = :model WHERE num = (SELECT num FROM execution WHERE id = :id);
UPDATE execution SET queue = :queue, payload = :payload WHERE id = :id;

-- name: batch_model_escalated (batch uuid, number smallint, name text)
UPDATE batch_model SET escalated = :name WHERE batch = :batch AND number = :number;
