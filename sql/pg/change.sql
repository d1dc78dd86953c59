-- Changing rows by id: lock, decide in C, write.
--
-- On joins by id, here and in the other files: generic plans are made when tables are small or
-- empty and are kept while they grow. With `l.id = i.id` the planner may then read all of `live`
-- and look for each row in the list (seen: 50 us a row instead of 8). `l.id BETWEEN i.id AND i.id`
-- says the same, but leaves one way only: probe the key for each item, in the order of the list.
-- In a SELECT, LATERAL with FOR UPDATE or OFFSET 0 has that effect too.

-- name: live_lock (id uuid[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?
-- One by one in the order of the list, which is sorted: two that want the same rows never wait for
-- each other in a circle.
SELECT @{live_columns l}
  FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.live o WHERE o.id = i.id FOR UPDATE) l;

-- name: live_put (id uuid[], due bigint?[], attempt_deadline bigint?[], deadline bigint?[], claimed bigint?[], worker int?[], attempt int[], lost smallint[], priority smallint[], state smallint[])
-- Writes what a step changed, on rows this transaction has locked. The end of a lease leaves an attempt
-- (attempt_add): its bit is set here.
UPDATE weft.live l
   SET due = i.due, attempt_deadline = i.attempt_deadline, deadline = i.deadline,
       claimed = i.claimed, worker = i.worker, attempt = i.attempt, lost = i.lost,
       priority = i.priority, state = i.state,
       has = l.has | CASE WHEN l.worker IS NOT NULL AND i.worker IS NULL THEN @WEFT_HAS_ATTEMPT ELSE 0 END
           | CASE WHEN i.state = @suspended THEN @WEFT_HAS_WAITING ELSE 0 END
  FROM unnest(:id, :due, :attempt_deadline, :deadline, :claimed, :worker, :attempt, :lost, :priority, :state)
    AS i(id, due, attempt_deadline, deadline, claimed, worker, attempt, lost, priority, state)
 WHERE l.id BETWEEN i.id AND i.id;

-- name: live_end (now bigint, id uuid[], epoch int[], was smallint[], state smallint[], ended smallint[], by text?[], reason text?[], error_class text?[], error_message text?[], content_type text?[], result bytea?[])
-- returns: id uuid, queue int, flow uuid?, gate text?
-- moves: running COMPLETE succeeded
-- The end of an execution, fenced by epoch and by the state it must be in: the living row goes, its
-- outcome comes, in one statement. A completion finds its row here without having locked it first;
-- the ids come sorted and the join runs in their order, so rows are locked in the order of ids. The
-- end of a member of a flow leaves a completion, whatever ended it.
WITH gone AS (
    DELETE FROM weft.live l
     USING unnest(:id, :epoch, :was, :state, :ended, :by, :reason, :error_class, :error_message,
                  :content_type, :result)
        AS i(id, epoch, was, new_state, ended, by, reason, error_class, error_message,
             content_type, result)
     WHERE l.id BETWEEN i.id AND i.id AND l.epoch = i.epoch AND l.state + 0 = i.was
    RETURNING l.*, i.was, i.new_state, i.ended, i.by, i.reason, i.error_class, i.error_message,
              i.content_type, i.result
), started AS (
    INSERT INTO weft.gate_start (name, at, count)
    SELECT gate, claimed, 1 FROM gone
     WHERE gate IS NOT NULL AND has & @WEFT_HAS_START <> 0 AND was = @running
), told AS (
    INSERT INTO weft.completion (flow, id, at)
    SELECT flow, id, :now FROM gone WHERE flow IS NOT NULL
), outcome AS (
    INSERT INTO weft.outcome (id, finished, ord, deadline, started, claimed, queue, policy, worker,
                              epoch, attempt, forgiven, lost, replays, priority, state, ended, held,
                              by, reason, error_class, error_message, content_type, result, flow, has)
    SELECT id, :now, ord, deadline, started, claimed, queue, policy, worker, epoch, attempt, forgiven,
           lost, replays, priority, new_state, ended, was = @running, by, reason, error_class,
           error_message, content_type, result, flow, has
      FROM gone
)
SELECT id, queue, flow, gate FROM gone;

-- name: attempt_add (id uuid[], epoch int[], replay smallint[], attempt int[], ended smallint[], held bool[], answer smallint[], worker int[], claimed bigint[], ended_at bigint[], run_at bigint?[], by text?[], reason text?[], error_class text?[], error_message text?[])
-- Written in the transaction that ended the lease, whose row is locked: no other transaction writes this key.
-- marked: live_put has set the bit.
INSERT INTO weft.attempt (id, epoch, replay, attempt, ended, held, answer, worker, claimed, ended_at,
                          run_at, by, reason, error_class, error_message, marked)
SELECT i.*, true FROM unnest(:id, :epoch, :replay, :attempt, :ended, :held, :answer, :worker, :claimed,
                     :ended_at, :run_at, :by, :reason, :error_class, :error_message) i;

-- name: detail_put (id uuid[], epoch int[], detail text[])
-- In the transaction that ended the leases, behind what it wrote: the rows are locked, or its own.
WITH added AS (
    INSERT INTO weft.detail (id, epoch, detail)
    SELECT i.id, i.epoch, i.detail FROM unnest(:id, :epoch, :detail) AS i(id, epoch, detail)
), living AS (
    UPDATE weft.live l SET has = l.has | @WEFT_HAS_DETAIL
      FROM unnest(:id) AS i(id) WHERE l.id BETWEEN i.id AND i.id AND l.has & @WEFT_HAS_DETAIL = 0
)
UPDATE weft.outcome o SET has = o.has | @WEFT_HAS_DETAIL
  FROM unnest(:id) AS i(id) WHERE o.id BETWEEN i.id AND i.id AND o.has & @WEFT_HAS_DETAIL = 0;

-- name: details_of (id uuid[], epoch int[])
-- returns: id uuid, epoch int, detail text
-- The details of failures, in any order.
SELECT d.id, d.epoch, d.detail
  FROM unnest(:id, :epoch) AS i(id, epoch)
 CROSS JOIN LATERAL (SELECT * FROM weft.detail x WHERE x.id = i.id AND x.epoch = i.epoch OFFSET 0) d;

-- name: outcome_lock (id uuid[])
-- returns: id uuid, queue int, epoch int, attempt int, forgiven int, lost smallint, replays smallint, priority smallint, state smallint, ended smallint, finished bigint, gate text?
-- For replay, which is the only thing that ever removes an outcome but retention. In the order of
-- the sorted list, as live_lock.
SELECT o.id, o.queue, o.epoch, o.attempt, o.forgiven, o.lost, o.replays, o.priority, o.state,
       o.ended, o.finished, e.gate
  FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.outcome x WHERE x.id = i.id FOR UPDATE) o
 CROSS JOIN LATERAL (SELECT gate FROM weft.execution x WHERE x.id = i.id OFFSET 0) e;

-- name: outcome_back (id uuid[], attempt int[], forgiven int[], lost smallint[], replays smallint[], state smallint[], deadline bigint?[])
-- Brings locked outcomes back to life: the outcome goes into the history, result and all, and a
-- living row comes.
WITH gone AS (
    DELETE FROM weft.outcome o
     USING unnest(:id, :attempt, :forgiven, :lost, :replays, :state, :deadline)
        AS i(id, new_attempt, new_forgiven, new_lost, new_replays, new_state, new_deadline)
     WHERE o.id BETWEEN i.id AND i.id
    RETURNING o.*, i.new_attempt, i.new_forgiven, i.new_lost, i.new_replays, i.new_state, i.new_deadline
), forgotten AS (
    DELETE FROM weft.resumption r USING gone g WHERE r.id BETWEEN g.id AND g.id
), history AS (
    INSERT INTO weft.attempt (id, epoch, replay, attempt, ended, held, answer, worker, claimed,
                              ended_at, by, reason, error_class, error_message, content_type, result, marked)
    SELECT id, epoch, new_replays, attempt, ended, held, state, worker, claimed, finished, by,
           reason, error_class, error_message, content_type, result, true
      FROM gone
)
INSERT INTO weft.live (id, ord, deadline, started, queue, lane, policy, epoch, attempt, forgiven, size, lost,
                       replays, priority, state, flow, has, gate)
SELECT g.id, g.ord, g.new_deadline, g.started, g.queue, q.lane, g.policy, g.epoch, g.new_attempt, g.new_forgiven,
       coalesce(octet_length(e.payload), 0) + @WEFT_UPSTREAM_BYTES * coalesce(n.total, 0), g.new_lost, g.new_replays,
       g.priority, g.new_state, n.flow, g.has | @WEFT_HAS_ATTEMPT, e.gate
  FROM gone g
  LEFT JOIN LATERAL (SELECT flow, total FROM weft.node WHERE id = g.id OFFSET 0) n ON true
 CROSS JOIN LATERAL (SELECT lane FROM weft.queue WHERE id = g.queue OFFSET 0) q
 CROSS JOIN LATERAL (SELECT payload, gate FROM weft.execution WHERE id = g.id OFFSET 0) e;
