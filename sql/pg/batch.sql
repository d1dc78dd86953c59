-- Batches: see 0037-batches and src/engine/batch. The row of a batch is locked by the update that changes it, and by
-- batch_hold; a transaction that holds one takes no lock of another table behind it but new rows of its own flow, and the
-- row of that flow.

-- name: batch_add (now bigint, id uuid, namespace int, file uuid, endpoint text, span text, metadata text?, expires bigint)
INSERT INTO weft.batch (id, namespace, file, endpoint, span, metadata, phase, at, line, requests, flaws, created, expires,
                   succeeded, failed, expired, cancelled)
VALUES (:id, :namespace, :file, :endpoint, :span, :metadata, 0, 0, 0, 0, '', :now, :expires, 0, 0, 0, 0);

-- name: batch_read (namespace int, id uuid)
-- returns: id uuid, file uuid, endpoint text, span text, metadata text?, phase smallint, at bigint, line bigint, last uuid?, requests bigint, flaws text, created bigint, expires bigint, opened bigint?, finished bigint?, frozen bigint?, wanted bigint?, succeeded bigint, failed bigint, expired bigint, cancelled bigint, namespace int, flow_state smallint?, flow_finished bigint?, flow_cancel smallint?, ns text, retried bigint?, retry bigint?, retry_to uuid?, looked bigint, look_at bigint
-- namespace 0: of any.
SELECT b.id, b.file, b.endpoint, b.span, b.metadata, b.phase, b.at, b.line, b.last, b.requests, b.flaws, b.created,
       b.expires, b.opened, b.finished, b.frozen, b.wanted, b.succeeded, b.failed, b.expired, b.cancelled, b.namespace,
       f.state, f.finished, f.cancel, (SELECT x.text FROM weft.name x WHERE x.id = b.namespace),
       b.retried, b.retry, b.retry_to, b.looked, b.look_at
  FROM weft.batch b LEFT JOIN weft.flow f ON f.id = b.id
 WHERE b.id = :id AND (:namespace = 0 OR b.namespace = :namespace) AND b.deleted IS NULL;

-- name: batches_list (namespace int, after uuid, most int)
-- returns: id uuid, file uuid, endpoint text, span text, metadata text?, phase smallint, at bigint, line bigint, last uuid?, requests bigint, flaws text, created bigint, expires bigint, opened bigint?, finished bigint?, frozen bigint?, wanted bigint?, succeeded bigint, failed bigint, expired bigint, cancelled bigint, namespace int, flow_state smallint?, flow_finished bigint?, flow_cancel smallint?, ns text, retried bigint?, retry bigint?, retry_to uuid?, looked bigint, look_at bigint
-- Newest first, behind `after`.
SELECT b.id, b.file, b.endpoint, b.span, b.metadata, b.phase, b.at, b.line, b.last, b.requests, b.flaws, b.created,
       b.expires, b.opened, b.finished, b.frozen, b.wanted, b.succeeded, b.failed, b.expired, b.cancelled, b.namespace,
       f.state, f.finished, f.cancel, (SELECT x.text FROM weft.name x WHERE x.id = b.namespace),
       b.retried, b.retry, b.retry_to, b.looked, b.look_at
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
-- Waits. A batch whose lines are being brought back has not ended.
SELECT id FROM weft.batch WHERE id = :id AND phase = 1 AND retry IS NULL FOR UPDATE;

-- name: batch_freeze (now bigint, id uuid, finished bigint, succeeded bigint, failed bigint, expired bigint, cancelled bigint)
-- Under batch_hold.
UPDATE weft.batch SET phase = 2, frozen = :now, finished = :finished, succeeded = :succeeded, failed = :failed,
       expired = :expired, cancelled = :cancelled
 WHERE id = :id;

-- name: batches_thaw (flow uuid[])
-- Members are replayed, under the locks of their flows, before these are open again. A batch that was over is so no more,
-- and forgets its cancel, as does its flow. A row that is being frozen in this moment is waited for: it is matched
-- whether that is committed or not.
WITH thawed AS (
    UPDATE weft.batch b SET phase = 1, frozen = NULL, finished = NULL, wanted = CASE WHEN b.phase = 1 THEN b.wanted END
      FROM unnest(:flow) AS i(flow)
     WHERE b.id BETWEEN i.flow AND i.flow AND b.phase BETWEEN 1 AND 2
    RETURNING b.id, b.wanted
)
UPDATE weft.flow f SET cancel = 0, reason = NULL, drained = NULL, backlog = false FROM thawed t
 WHERE f.id BETWEEN t.id AND t.id AND t.wanted IS NULL AND f.state > 0;

-- name: batch_lock (id uuid)
-- returns: id uuid
-- Waits.
SELECT id FROM weft.batch WHERE id = :id AND deleted IS NULL FOR UPDATE;

-- name: batch_bad_count (id uuid)
-- returns: number bigint, latest bigint?
-- Members that have ended and did not succeed, and when the last one of them did.
SELECT count(*), pg_catalog.max(o.finished)
  FROM weft.node n CROSS JOIN LATERAL (SELECT state, finished FROM weft.outcome WHERE id = n.id OFFSET 0) o
 WHERE n.flow = :id AND n.k >= 0 AND o.state <> @succeeded;

-- name: batch_retry (id uuid, now bigint, moment bigint, expires bigint)
-- Under batch_lock.
UPDATE weft.batch SET phase = 1, frozen = NULL, finished = NULL, wanted = NULL, retried = :now, retry = :moment,
       retry_to = NULL, expires = :expires
 WHERE id = :id;

-- name: batch_bad (batch uuid, after uuid, moment bigint, most int)
-- returns: id uuid, bad bool
-- The next members in the order of the file. bad: it ended by the moment, and did not succeed.
SELECT n.id, coalesce(o.state <> @succeeded AND o.finished <= :moment, false)
  FROM (SELECT x.id FROM weft.node x
         WHERE (x.flow, x.id) > (:batch, :after) AND x.flow <= :batch AND x.k >= 0
         ORDER BY x.flow, x.id LIMIT :most) n
  LEFT JOIN LATERAL (SELECT state, finished FROM weft.outcome WHERE id = n.id OFFSET 0) o ON true
 ORDER BY n.id;

-- name: batch_retry_move (id uuid, moment bigint, to uuid, done bool)
-- The members up to `to` have been brought back. Another process that did the same may have come further.
UPDATE weft.batch SET retry = CASE WHEN :done THEN NULL ELSE retry END, retry_to = :to
 WHERE id = :id AND retry = :moment AND (retry_to IS NULL OR retry_to <= :to);

-- name: batch_remove (now bigint, id uuid)
-- returns: id uuid
UPDATE weft.batch SET deleted = :now WHERE id = :id AND deleted IS NULL RETURNING id;

-- name: batches_active (ns int, after uuid, most int)
-- returns: id uuid, phase smallint, flow_state smallint?, flow_cancel smallint?, wanted bigint?, retry bigint?, left_over bool, ns text, look_at bigint
-- Batches that are being written, or whose flow is open or has just ended, in the order of their ids. left_over: it was
-- deleted, and its flow is seen all the same.
SELECT b.id, b.phase, f.state, f.cancel, b.wanted, b.retry,
       b.deleted IS NOT NULL AND coalesce(f.state >= 0 AND f.deleted IS NULL, false),
       (SELECT x.text FROM weft.name x WHERE x.id = b.namespace), b.look_at
  FROM weft.batch b LEFT JOIN LATERAL (SELECT state, deleted, cancel FROM weft.flow WHERE id = b.id OFFSET 0) f ON true
 WHERE b.phase < 2 AND b.id > :after AND (:ns = 0 OR b.namespace = :ns)
   AND (b.deleted IS NULL OR (f.state >= 0 AND f.deleted IS NULL))
 ORDER BY b.id LIMIT :most;

-- name: batch_lines (batch uuid, after uuid, good bool, most int, bytes bigint)
-- returns: id uuid, name text, state smallint?, result bytea?, error_class text?, error_message text?, epoch int?
-- Members in the order of the file, behind `after`. state: how it ended; NULL while it lives. Results come where `good`
-- ones are asked for, up to the one with which they are `bytes` or more. A length is known without the bytes, which stay
-- where they are unless they are given out.
SELECT x.id, x.name, x.state, x.result, x.error_class, x.error_message, x.epoch
  FROM (SELECT n.id, n.name, o.state, o.result, o.error_class, o.error_message, o.epoch,
               coalesce(sum(octet_length(o.result)) OVER (ORDER BY n.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before
          FROM (SELECT x.id, x.name FROM weft.node x
                 WHERE (x.flow, x.id) > (:batch, :after) AND x.flow <= :batch AND x.k >= 0
                 ORDER BY x.flow, x.id LIMIT :most) n
          LEFT JOIN LATERAL (SELECT r.state, CASE WHEN :good AND r.state = @succeeded THEN r.result END AS result,
                                    r.error_class, r.error_message, r.epoch
                               FROM weft.outcome r WHERE r.id = n.id OFFSET 0) o ON true) x
 WHERE x.before < :bytes
 ORDER BY x.id;

-- name: model_put (namespace int, name text, endpoint text, lane text, escalate_to text?)
INSERT INTO weft.model (namespace, name, endpoint, lane, escalate_to)
VALUES (:namespace, :name, :endpoint, :lane, :escalate_to)
    ON CONFLICT (namespace, name) DO UPDATE SET endpoint = excluded.endpoint, lane = excluded.lane,
                  escalate_to = excluded.escalate_to;

-- name: model_remove (namespace int, name text)
-- returns: name text, endpoint text, lane text, escalate_to text?
DELETE FROM weft.model WHERE namespace = :namespace AND name = :name RETURNING name, endpoint, lane, escalate_to;

-- name: models_read (namespace int, first text, after text, most int)
-- returns: name text, endpoint text, lane text, escalate_to text?
SELECT name, endpoint, lane, escalate_to FROM weft.model
 WHERE namespace = :namespace AND name >= :first AND name > :after ORDER BY name LIMIT :most;

-- name: batch_counts (batch uuid, since bigint)
-- returns: model smallint?, state smallint, number bigint, late bigint
-- The members by their model and state; late: those that have ended since.
SELECT x.model, x.state, count(*), count(*) FILTER (WHERE x.finished >= :since)
  FROM (SELECT n.model, coalesce((SELECT l.state FROM weft.live l WHERE l.id = n.id), o.state) AS state, o.finished
          FROM weft.node n
          LEFT JOIN LATERAL (SELECT state, finished FROM weft.outcome WHERE id = n.id OFFSET 0) o ON true
         WHERE n.flow = :batch AND n.k >= 0) x
 GROUP BY x.model, x.state;

-- name: batch_models_read (batch uuid)
-- returns: number smallint, name text, escalated text?
SELECT number, name, escalated FROM weft.batch_model WHERE batch = :batch ORDER BY number;

-- name: batch_model_add (batch uuid[], number smallint[], name text[])
-- With the row of the batch locked.
INSERT INTO weft.batch_model (batch, number, name)
SELECT i.batch, i.number, i.name FROM unnest(:batch, :number, :name) AS i(batch, number, name);

-- name: batches_orphaned (now bigint, flow uuid[])
-- These flows are gone, and so are the lines of the batches that they were. A batch whose file could not be used never
-- had lines that a reader saw: it stays until batches_old.
UPDATE weft.batch b SET deleted = :now FROM unnest(:flow) AS i(flow)
 WHERE b.id BETWEEN i.flow AND i.flow AND b.phase <> 3 AND b.deleted IS NULL;

-- name: batches_old (now bigint, until bigint, batch int, ns int, first int, last int)
-- returns: id uuid
-- Batches whose file could not be used, when that was long ago.
WITH m AS MATERIALIZED (
    SELECT b.id FROM weft.batch b
     WHERE b.phase = 3 AND b.deleted IS NULL AND b.finished <= :until AND @{of_flow b}
     ORDER BY b.finished LIMIT :batch
       FOR UPDATE SKIP LOCKED
)
UPDATE weft.batch u SET deleted = :now FROM m WHERE u.id BETWEEN m.id AND m.id RETURNING u.id;

-- name: batches_removing (batch int, ns int, first int, last int)
-- returns: id uuid
-- Batches that were deleted and have no flow any more.
SELECT b.id FROM weft.batch b
 WHERE b.deleted IS NOT NULL AND @{of_flow b}
   AND NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id = b.id OFFSET 0)
 ORDER BY b.id LIMIT :batch;

-- name: purge_batches (batch uuid[], most int)
-- returns: id uuid
WITH m AS MATERIALIZED (
    SELECT x.id FROM unnest(:batch) AS i(batch)
     CROSS JOIN LATERAL (SELECT b.id FROM weft.batch b WHERE b.id = i.batch AND b.deleted IS NOT NULL
                            FOR UPDATE SKIP LOCKED) x
     LIMIT :most
), models AS (
    DELETE FROM weft.batch_model d USING m WHERE d.batch BETWEEN m.id AND m.id
)
DELETE FROM weft.batch d USING m WHERE d.id BETWEEN m.id AND m.id RETURNING d.id;

-- name: batch_look (id uuid, was bigint, looked bigint, look_at bigint)
-- returns: id uuid
-- No row: another process has looked.
UPDATE weft.batch SET looked = :looked, look_at = :look_at
 WHERE id = :id AND look_at = :was AND phase = 1 AND deleted IS NULL RETURNING id;

-- name: batch_pace (batch uuid, since bigint, priority smallint)
-- returns: waiting bigint, raised bigint, ended bigint
-- Lines that have not begun, of these the ones that stand before others, and lines that have ended since.
SELECT count(*) FILTER (WHERE x.state = @ready), count(*) FILTER (WHERE x.state = @ready AND x.priority >= :priority),
       count(*) FILTER (WHERE x.finished >= :since)
  FROM (SELECT l.state, l.priority, o.finished
          FROM weft.node n
          LEFT JOIN LATERAL (SELECT state, priority FROM weft.live WHERE id = n.id OFFSET 0) l ON true
          LEFT JOIN LATERAL (SELECT finished FROM weft.outcome WHERE id = n.id OFFSET 0) o ON true
         WHERE n.flow = :batch AND n.k >= 0) x;

-- name: batch_waiting (batch uuid, priority smallint, most int)
-- returns: id uuid
-- The first lines in the order of the file that wait, and have a lower priority.
SELECT n.id FROM weft.node n
 CROSS JOIN LATERAL (SELECT 1 FROM weft.live WHERE id = n.id AND state + 0 = @ready AND priority < :priority OFFSET 0) l
 WHERE (n.flow, n.id) > (:batch, @{no_id}) AND n.flow <= :batch AND n.k >= 0
 ORDER BY n.flow, n.id LIMIT :most;

-- name: batch_movable (batch uuid, model smallint, after uuid, most int)
-- returns: id uuid, ready bool, payload bytea?
-- Lines of a model whose call is not under way, with the row of the batch locked. A line that is being claimed in this
-- moment is passed over. The whole predicate stands where the row is locked: see pass.sql.
SELECT n.id, l.state = @ready, (SELECT e.payload FROM weft.execution e WHERE e.id = n.id)
  FROM weft.node n
 CROSS JOIN LATERAL (SELECT x.state FROM weft.live x
                      WHERE x.id = n.id AND x.state + 0 IN (@ready, @delayed) AND weft.at_rest(x.xmax)
                        FOR UPDATE SKIP LOCKED) l
 WHERE (n.flow, n.id) > (:batch, :after) AND n.flow <= :batch AND n.k >= 0 AND n.model = :model
 ORDER BY n.flow, n.id LIMIT :most;

-- name: batch_line_move (id uuid[], queue int[], lane int[], model smallint?[], payload bytea[], size int[])
-- Lines that batch_movable has locked go to another queue, with what they send there.
WITH item AS (
    SELECT * FROM unnest(:id, :queue, :lane, :model, :payload, :size) AS i(id, queue, lane, model, payload, size)
), fact AS (
    UPDATE weft.execution e SET queue = i.queue, payload = i.payload FROM item i WHERE e.id BETWEEN i.id AND i.id
), member AS (
    UPDATE weft.node n SET model = i.model FROM item i WHERE n.id BETWEEN i.id AND i.id
)
UPDATE weft.live l SET queue = i.queue, lane = i.lane, size = i.size FROM item i WHERE l.id BETWEEN i.id AND i.id;

-- name: batch_model_escalated (batch uuid, number smallint, name text)
UPDATE weft.batch_model SET escalated = :name WHERE batch = :batch AND number = :number;
