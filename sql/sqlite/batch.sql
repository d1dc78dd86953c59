-- The twins of sql/pg/batch.sql.

-- name: batch_add (now bigint, id uuid, namespace int, file uuid, endpoint text, span text, metadata text?, expires bigint)
INSERT INTO batch (id, namespace, file, endpoint, span, metadata, phase, at, line, requests, flaws, created, expires,
                   succeeded, failed, expired, cancelled)
VALUES (:id, :namespace, :file, :endpoint, :span, :metadata, 0, 0, 0, 0, '', :now, :expires, 0, 0, 0, 0);

-- name: batch_read (namespace int, id uuid)
-- returns: id uuid, file uuid, endpoint text, span text, metadata text?, phase smallint, at bigint, line bigint, last uuid?, requests bigint, flaws text, created bigint, expires bigint, opened bigint?, finished bigint?, frozen bigint?, wanted bigint?, succeeded bigint, failed bigint, expired bigint, cancelled bigint, namespace int, flow_state smallint?, flow_finished bigint?, flow_cancel smallint?, ns text
-- namespace 0: of any.
SELECT b.id, b.file, b.endpoint, b.span, b.metadata, b.phase, b.at, b.line, b.last, b.requests, b.flaws, b.created,
       b.expires, b.opened, b.finished, b.frozen, b.wanted, b.succeeded, b.failed, b.expired, b.cancelled, b.namespace,
       f.state, f.finished, f.cancel, (SELECT x.text FROM name x WHERE x.id = b.namespace)
  FROM batch b LEFT JOIN flow f ON f.id = b.id
 WHERE b.id = :id AND (:namespace = 0 OR b.namespace = :namespace) AND b.deleted IS NULL;

-- name: batches_list (namespace int, after uuid, most int)
-- returns: id uuid, file uuid, endpoint text, span text, metadata text?, phase smallint, at bigint, line bigint, last uuid?, requests bigint, flaws text, created bigint, expires bigint, opened bigint?, finished bigint?, frozen bigint?, wanted bigint?, succeeded bigint, failed bigint, expired bigint, cancelled bigint, namespace int, flow_state smallint?, flow_finished bigint?, flow_cancel smallint?, ns text
-- Newest first, behind `after`.
SELECT b.id, b.file, b.endpoint, b.span, b.metadata, b.phase, b.at, b.line, b.last, b.requests, b.flaws, b.created,
       b.expires, b.opened, b.finished, b.frozen, b.wanted, b.succeeded, b.failed, b.expired, b.cancelled, b.namespace,
       f.state, f.finished, f.cancel, (SELECT x.text FROM name x WHERE x.id = b.namespace)
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
-- Waits.
SELECT id FROM batch WHERE id = :id AND phase = 1;

-- name: batch_freeze (now bigint, id uuid, finished bigint, succeeded bigint, failed bigint, expired bigint, cancelled bigint)
-- Under batch_hold.
UPDATE batch SET phase = 2, frozen = :now, finished = :finished, succeeded = :succeeded, failed = :failed,
       expired = :expired, cancelled = :cancelled
 WHERE id = :id;

-- name: batch_thaw (id uuid, expires bigint?)
-- Lines are tried again.
UPDATE batch SET phase = 1, frozen = NULL, finished = NULL, expires = coalesce(:expires, expires), wanted = NULL
 WHERE id = :id AND phase BETWEEN 1 AND 2;

-- name: batch_remove (now bigint, id uuid)
UPDATE batch SET deleted = :now WHERE id = :id AND deleted IS NULL;

-- name: batches_active (ns int, after uuid, most int)
-- returns: id uuid, phase smallint, flow_state smallint?, flow_cancel smallint?, wanted bigint?
-- Batches that are being written, or whose flow is open or has just ended, in the order of their ids.
SELECT b.id, b.phase, f.state, f.cancel, b.wanted
  FROM batch b LEFT JOIN flow f ON f.id = b.id
 WHERE b.phase < 2 AND b.id > :after AND (:ns = 0 OR b.namespace = :ns)
 ORDER BY b.id LIMIT :most;

-- name: batch_lines (batch uuid, after uuid, good bool, most int, bytes bigint)
-- returns: id uuid, name text, state smallint?, result bytea?, error_class text?, error_message text?
-- The sums are made of lengths alone, which are known without the bytes.
SELECT e.id, x.name, o.state, CASE WHEN :good AND o.state = @succeeded THEN o.result END, o.error_class, o.error_message
  FROM (SELECT n.num, n.name,
               total(CASE WHEN :good AND s.state = @succeeded THEN length(s.result) END)
                   OVER (ORDER BY n.num ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
          FROM (SELECT m.num, m.name FROM node m
                 WHERE m.flow = (SELECT num FROM flow WHERE id = :batch)
                   AND m.num > coalesce((SELECT num FROM execution WHERE id = :after), -1)
                 ORDER BY m.num LIMIT :most) n
          LEFT JOIN outcome s ON s.num = n.num) x
 CROSS JOIN execution e ON e.num = x.num
  LEFT JOIN outcome o ON o.num = x.num
 WHERE x.before < :bytes
 ORDER BY x.num;

-- name: model_put (namespace int, name text, endpoint text, lane text)
INSERT INTO model (namespace, name, endpoint, lane) VALUES (:namespace, :name, :endpoint, :lane)
    ON CONFLICT (namespace, name) DO UPDATE SET endpoint = excluded.endpoint, lane = excluded.lane;

-- name: model_remove (namespace int, name text)
-- returns: name text, endpoint text, lane text
DELETE FROM model WHERE namespace = :namespace AND name = :name RETURNING name, endpoint, lane;

-- name: models_read (namespace int, first text, after text, most int)
-- returns: name text, endpoint text, lane text
SELECT name, endpoint, lane FROM model
 WHERE namespace = :namespace AND name >= :first AND name > :after ORDER BY name LIMIT :most;
