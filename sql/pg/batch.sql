-- Batches: see 0037-batches and src/engine/batch. The row of a batch is locked by the update that changes it, and by
-- batch_hold; a transaction that holds one takes no lock of another table behind it but new rows of its own flow, and the
-- row of that flow.

-- name: batch_add (now bigint, id uuid, namespace int, file uuid, endpoint text, span text, metadata text?, expires bigint)
INSERT INTO weft.batch (id, namespace, file, endpoint, span, metadata, phase, at, line, requests, flaws, created, expires,
                   succeeded, failed, expired, cancelled)
VALUES (:id, :namespace, :file, :endpoint, :span, :metadata, 0, 0, 0, 0, '', :now, :expires, 0, 0, 0, 0);

-- name: batch_read (namespace int, id uuid)
-- returns: id uuid, file uuid, endpoint text, span text, metadata text?, phase smallint, at bigint, line bigint, last uuid?, requests bigint, flaws text, created bigint, expires bigint, opened bigint?, finished bigint?, frozen bigint?, wanted bigint?, succeeded bigint, failed bigint, expired bigint, cancelled bigint, namespace int, flow_state smallint?, flow_finished bigint?, flow_cancel smallint?, ns text
-- namespace 0: of any.
SELECT b.id, b.file, b.endpoint, b.span, b.metadata, b.phase, b.at, b.line, b.last, b.requests, b.flaws, b.created,
       b.expires, b.opened, b.finished, b.frozen, b.wanted, b.succeeded, b.failed, b.expired, b.cancelled, b.namespace,
       f.state, f.finished, f.cancel, (SELECT x.text FROM weft.name x WHERE x.id = b.namespace)
  FROM weft.batch b LEFT JOIN weft.flow f ON f.id = b.id
 WHERE b.id = :id AND (:namespace = 0 OR b.namespace = :namespace) AND b.deleted IS NULL;

-- name: batches_list (namespace int, after uuid, most int)
-- returns: id uuid, file uuid, endpoint text, span text, metadata text?, phase smallint, at bigint, line bigint, last uuid?, requests bigint, flaws text, created bigint, expires bigint, opened bigint?, finished bigint?, frozen bigint?, wanted bigint?, succeeded bigint, failed bigint, expired bigint, cancelled bigint, namespace int, flow_state smallint?, flow_finished bigint?, flow_cancel smallint?, ns text
-- Newest first, behind `after`.
SELECT b.id, b.file, b.endpoint, b.span, b.metadata, b.phase, b.at, b.line, b.last, b.requests, b.flaws, b.created,
       b.expires, b.opened, b.finished, b.frozen, b.wanted, b.succeeded, b.failed, b.expired, b.cancelled, b.namespace,
       f.state, f.finished, f.cancel, (SELECT x.text FROM weft.name x WHERE x.id = b.namespace)
  FROM weft.batch b LEFT JOIN LATERAL (SELECT state, finished, cancel FROM weft.flow WHERE id = b.id OFFSET 0) f ON true
 WHERE b.namespace = :namespace AND b.id < :after AND b.deleted IS NULL
 ORDER BY b.namespace DESC, b.id DESC LIMIT :most;

-- name: batch_move (id uuid, from bigint, at bigint, line bigint, last uuid?, requests bigint)
-- returns: id uuid
-- A part of the file has been read. No row: another process was faster, or the batch is not being written any more.
UPDATE weft.batch SET at = :at, line = :line, last = coalesce(:last, last), requests = requests + :requests
 WHERE id = :id AND at = :from AND phase = 0 AND deleted IS NULL RETURNING id;

-- name: batch_open (now bigint, id uuid)
-- returns: id uuid
UPDATE weft.batch SET phase = 1, opened = :now WHERE id = :id AND phase = 0 AND deleted IS NULL RETURNING id;

-- name: batch_fail (now bigint, id uuid, flaws text)
UPDATE weft.batch SET phase = 3, finished = :now, flaws = :flaws WHERE id = :id AND phase = 0;

-- name: batch_want_cancel (now bigint, id uuid)
UPDATE weft.batch SET wanted = :now WHERE id = :id AND phase < 2 AND wanted IS NULL;

-- name: batch_hold (id uuid)
-- returns: id uuid
-- Waits.
SELECT id FROM weft.batch WHERE id = :id AND phase = 1 FOR UPDATE;

-- name: batch_freeze (now bigint, id uuid, finished bigint, succeeded bigint, failed bigint, expired bigint, cancelled bigint)
-- Under batch_hold.
UPDATE weft.batch SET phase = 2, frozen = :now, finished = :finished, succeeded = :succeeded, failed = :failed,
       expired = :expired, cancelled = :cancelled
 WHERE id = :id;

-- name: batch_thaw (id uuid, expires bigint?)
-- Lines are tried again.
UPDATE weft.batch SET phase = 1, frozen = NULL, finished = NULL, expires = coalesce(:expires, expires), wanted = NULL
 WHERE id = :id AND phase BETWEEN 1 AND 2;

-- name: batch_remove (now bigint, id uuid)
UPDATE weft.batch SET deleted = :now WHERE id = :id AND deleted IS NULL;

-- name: batches_active (ns int, after uuid, most int)
-- returns: id uuid, phase smallint, flow_state smallint?, flow_cancel smallint?, wanted bigint?
-- Batches that are being written, or whose flow is open or has just ended, in the order of their ids.
SELECT b.id, b.phase, f.state, f.cancel, b.wanted
  FROM weft.batch b LEFT JOIN LATERAL (SELECT state, finished, cancel FROM weft.flow WHERE id = b.id OFFSET 0) f ON true
 WHERE b.phase < 2 AND b.id > :after AND (:ns = 0 OR b.namespace = :ns)
 ORDER BY b.id LIMIT :most;

-- name: batch_lines (batch uuid, after uuid, good bool, most int, bytes bigint)
-- returns: id uuid, name text, state smallint?, result bytea?, error_class text?, error_message text?
-- Members in the order of the file, behind `after`. state: how it ended; NULL while it lives. Results come where `good`
-- ones are asked for, up to the one with which they are `bytes` or more. A length is known without the bytes, which stay
-- where they are unless they are given out.
SELECT x.id, x.name, x.state, x.result, x.error_class, x.error_message
  FROM (SELECT n.id, n.name, o.state, o.result, o.error_class, o.error_message,
               coalesce(sum(octet_length(o.result)) OVER (ORDER BY n.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
          FROM (SELECT x.id, x.name FROM weft.node x
                 WHERE (x.flow, x.id) > (:batch, :after) AND x.flow <= :batch AND x.k >= 0
                 ORDER BY x.flow, x.id LIMIT :most) n
          LEFT JOIN LATERAL (SELECT r.state, CASE WHEN :good AND r.state = @succeeded THEN r.result END AS result,
                                    r.error_class, r.error_message
                               FROM weft.outcome r WHERE r.id = n.id OFFSET 0) o ON true) x
 WHERE x.before < :bytes
 ORDER BY x.id;

-- name: model_put (namespace int, name text, endpoint text, lane text)
INSERT INTO weft.model (namespace, name, endpoint, lane) VALUES (:namespace, :name, :endpoint, :lane)
    ON CONFLICT (namespace, name) DO UPDATE SET endpoint = excluded.endpoint, lane = excluded.lane;

-- name: model_remove (namespace int, name text)
-- returns: name text, endpoint text, lane text
DELETE FROM weft.model WHERE namespace = :namespace AND name = :name RETURNING name, endpoint, lane;

-- name: models_read (namespace int, first text, after text, most int)
-- returns: name text, endpoint text, lane text
SELECT name, endpoint, lane FROM weft.model
 WHERE namespace = :namespace AND name >= :first AND name > :after ORDER BY name LIMIT :most;
