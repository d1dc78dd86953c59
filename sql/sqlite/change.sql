-- The twins of sql/pg/change.sql.

-- name: live_lock (id uuid[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?
SELECT :id, ord, due, attempt_deadline, deadline, started, claimed, queue, lane, policy, worker, epoch,
       attempt, forgiven, size, lost, replays, priority, state, has, gate
  FROM live WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: live_put (id uuid[], due bigint?[], attempt_deadline bigint?[], deadline bigint?[], claimed bigint?[], worker int?[], attempt int[], lost smallint[], priority smallint[], state smallint[])
UPDATE live
   SET due = :due, attempt_deadline = :attempt_deadline, deadline = :deadline, claimed = :claimed,
       worker = :worker, attempt = :attempt, lost = :lost, priority = :priority, state = :state,
       has = has | CASE WHEN worker IS NOT NULL AND :worker IS NULL THEN @WEFT_HAS_ATTEMPT ELSE 0 END
           | CASE WHEN :state = @suspended THEN @WEFT_HAS_WAITING ELSE 0 END
 WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: live_end (now bigint, id uuid[], epoch int[], was smallint[], state smallint[], ended smallint[], by text?[], reason text?[], error_class text?[], error_message text?[], content_type text?[], result bytea?[])
-- returns: id uuid, queue int, flow uuid?, gate text?
-- moves: running COMPLETE succeeded
-- The row that was just copied is the one to delete, if any was. changes() instead of RETURNING, which
-- would copy each row into a table of its own first (-10 %). What few executions leave is written only when
-- the row that was returned says so.
INSERT INTO outcome (num, finished, ord, deadline, started, claimed, queue, policy, worker, epoch,
                     attempt, forgiven, lost, replays, priority, state, ended, held, by, reason,
                     error_class, error_message, content_type, result, flow, has)
SELECT num, :now, ord, deadline, started, claimed, queue, policy, worker, epoch, attempt, forgiven,
       lost, replays, priority, :state, :ended, :was = @running, :by, :reason, :error_class,
       :error_message, :content_type, :result, flow, has
  FROM live WHERE num = (SELECT num FROM execution WHERE id = :id) AND epoch = :epoch
                  AND +state = :was;
SELECT :id, queue, (SELECT f.id FROM flow f WHERE f.num = live.flow), gate
  FROM live WHERE num = last_insert_rowid() AND changes() > 0;
/* when id */ DELETE FROM live WHERE num = last_insert_rowid();
/* when flow */ INSERT INTO completion (flow, num, at)
SELECT flow, num, :now FROM outcome WHERE num = last_insert_rowid();
/* when gate */ INSERT INTO gate_start (name, at, count)
SELECT e.gate, o.claimed, 1 FROM execution e CROSS JOIN outcome o ON o.num = e.num
 WHERE e.id = :id AND o.has & @WEFT_HAS_START AND o.held;

-- name: attempt_add (id uuid[], epoch int[], replay smallint[], attempt int[], ended smallint[], held bool[], answer smallint[], worker int[], claimed bigint[], ended_at bigint[], run_at bigint?[], by text?[], reason text?[], error_class text?[], error_message text?[])
INSERT OR FAIL INTO attempt (id, epoch, replay, attempt, ended, held, answer, worker, claimed, ended_at,
                     run_at, by, reason, error_class, error_message, marked)
SELECT i.id, i.epoch, i.replay, i.attempt, i.ended, i.held, i.answer, i.worker, i.claimed, i.ended_at,
       i.run_at, i.by, i.reason, i.error_class, i.error_message, 1
  FROM input i;

-- name: detail_put (id uuid[], epoch int[], detail text[])
INSERT INTO detail (id, epoch, detail) VALUES (:id, :epoch, :detail);
UPDATE live SET has = has | @WEFT_HAS_DETAIL
 WHERE num = (SELECT num FROM execution WHERE id = :id) AND has & @WEFT_HAS_DETAIL = 0;
UPDATE outcome SET has = has | @WEFT_HAS_DETAIL
 WHERE num = (SELECT num FROM execution WHERE id = :id) AND has & @WEFT_HAS_DETAIL = 0;

-- name: details_of (id uuid[], epoch int[])
-- returns: id uuid, epoch int, detail text
SELECT id, epoch, detail FROM detail WHERE id = :id AND epoch = :epoch;

-- name: outcome_lock (id uuid[])
-- returns: id uuid, queue int, epoch int, attempt int, forgiven int, lost smallint, replays smallint, priority smallint, state smallint, ended smallint, finished bigint, gate text?
SELECT :id, queue, epoch, attempt, forgiven, lost, replays, priority, state, ended, finished,
       (SELECT e.gate FROM execution e WHERE e.num = outcome.num)
  FROM outcome WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: outcome_back (id uuid[], attempt int[], forgiven int[], lost smallint[], replays smallint[], state smallint[], deadline bigint?[])
DELETE FROM resumption WHERE id = :id;
INSERT INTO attempt (id, epoch, replay, attempt, ended, held, answer, worker, claimed, ended_at, by,
                     reason, error_class, error_message, content_type, result, marked)
SELECT :id, epoch, :replays, attempt, ended, held, state, worker, claimed, finished, by, reason,
       error_class, error_message, content_type, result, 1
  FROM outcome WHERE num = (SELECT num FROM execution WHERE id = :id);
INSERT INTO live (num, ord, deadline, started, queue, lane, policy, epoch, attempt, forgiven, size, lost, replays,
                  priority, state, flow, has, gate)
SELECT o.num, o.ord, :deadline, o.started, o.queue, q.lane, o.policy, o.epoch, :attempt, :forgiven,
       coalesce(length(e.payload), 0) + @WEFT_UPSTREAM_BYTES * coalesce(n.total, 0), :lost, :replays, o.priority,
       :state, n.flow, o.has | @WEFT_HAS_ATTEMPT, e.gate
  FROM execution e CROSS JOIN outcome o ON o.num = e.num CROSS JOIN queue q ON q.id = o.queue
  LEFT JOIN node n ON n.num = e.num
 WHERE e.id = :id;
DELETE FROM outcome WHERE num = (SELECT num FROM execution WHERE id = :id);
