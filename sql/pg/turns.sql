-- Passes in turns: the statements of pass.sql for the passes that follow a full batch. When more is due
-- than fits into a batch, the order of time would let a namespace with very many due rows keep all others
-- waiting. So such a pass first looks which lanes have due rows (a lane belongs to one namespace), then
-- takes a share of each, the oldest first. The shares are the caller's: src/engine/scan/turns.c.
--
-- The locks are those of pass.sql: the whole predicate stands beside FOR UPDATE SKIP LOCKED, and no row is
-- tried that another session has been at since the snapshot. seen is NULL: the rows that were not taken
-- are not counted.
--
-- X_lanes looks at the lanes behind :after, at most :most of them, by hops through an index that begins
-- with the lane, and locks nothing. next is the lane to go on behind, 0 when there is none behind these.
-- There is always one row; lane is NULL when none of them has due rows.
--
-- `deadline + 0` is what live_deadline_lane holds, as live_attempt_lane does: by the plain column the planner
-- could take the index by the time alone for its order, and walk over the due rows of all other lanes.

-- name: lease_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
WITH RECURSIVE hop AS (
    (SELECT l.lane FROM weft.live l
      WHERE l.state = @running AND l.lane > :after ORDER BY l.lane LIMIT 1)
    UNION ALL
    SELECT (SELECT l.lane FROM weft.live l
             WHERE l.state = @running AND l.lane > hop.lane ORDER BY l.lane LIMIT 1)
      FROM hop WHERE hop.lane IS NOT NULL
), looked AS MATERIALIZED (
    SELECT hop.lane FROM hop WHERE hop.lane IS NOT NULL LIMIT :most
), due AS (
    SELECT looked.lane FROM looked
     WHERE EXISTS (SELECT 1 FROM weft.live l
                    WHERE l.lane = looked.lane AND l.state = @running AND l.due <= :now
                    OFFSET 0)
)
SELECT CASE WHEN (SELECT count(*) FROM looked) = :most THEN (SELECT max(lane) FROM looked) ELSE 0 END,
       due.lane, (SELECT n.namespace FROM weft.name n WHERE n.id = due.lane)
  FROM (SELECT 1) one LEFT JOIN due ON true;

-- name: lease_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
SELECT t.id, t.ord, t.due, t.attempt_deadline, t.deadline, t.started, t.claimed, t.queue,
       t.lane, t.policy, t.worker, t.epoch, t.attempt, t.forgiven, t.size, t.lost, t.replays,
       t.priority, t.state, NULL::bigint
  FROM unnest(:lane, :share) AS w(lane, share)
 CROSS JOIN LATERAL (SELECT l.* FROM weft.live l
                      WHERE l.lane = w.lane AND l.state = @running AND l.due <= :now
                        AND (:last - :first = 255
                             OR weft.partition(l.id) BETWEEN :first AND :last)
                        AND weft.at_rest(l.xmax)
                      ORDER BY l.due LIMIT w.share
                        FOR UPDATE SKIP LOCKED) t;

-- name: attempt_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
WITH RECURSIVE hop AS (
    (SELECT l.lane FROM weft.live l
      WHERE l.attempt_deadline + 0 >= 0 AND l.lane > :after ORDER BY l.lane LIMIT 1)
    UNION ALL
    SELECT (SELECT l.lane FROM weft.live l
             WHERE l.attempt_deadline + 0 >= 0 AND l.lane > hop.lane ORDER BY l.lane LIMIT 1)
      FROM hop WHERE hop.lane IS NOT NULL
), looked AS MATERIALIZED (
    SELECT hop.lane FROM hop WHERE hop.lane IS NOT NULL LIMIT :most
), due AS (
    SELECT looked.lane FROM looked
     WHERE EXISTS (SELECT 1 FROM weft.live l
                    WHERE l.lane = looked.lane AND l.attempt_deadline + 0 >= 0 AND l.attempt_deadline + 0 <= :now
                    OFFSET 0)
)
SELECT CASE WHEN (SELECT count(*) FROM looked) = :most THEN (SELECT max(lane) FROM looked) ELSE 0 END,
       due.lane, (SELECT n.namespace FROM weft.name n WHERE n.id = due.lane)
  FROM (SELECT 1) one LEFT JOIN due ON true;

-- name: attempt_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
SELECT t.id, t.ord, t.due, t.attempt_deadline, t.deadline, t.started, t.claimed, t.queue,
       t.lane, t.policy, t.worker, t.epoch, t.attempt, t.forgiven, t.size, t.lost, t.replays,
       t.priority, t.state, NULL::bigint
  FROM unnest(:lane, :share) AS w(lane, share)
 CROSS JOIN LATERAL (SELECT l.* FROM weft.live l
                      WHERE l.lane = w.lane AND l.attempt_deadline + 0 >= 0 AND l.attempt_deadline + 0 <= :now
                        AND l.state + 0 = @running
                        AND (:last - :first = 255
                             OR weft.partition(l.id) BETWEEN :first AND :last)
                        AND weft.at_rest(l.xmax)
                      ORDER BY l.attempt_deadline + 0 LIMIT w.share
                        FOR UPDATE SKIP LOCKED) t;

-- name: deadline_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
WITH RECURSIVE hop AS (
    (SELECT l.lane FROM weft.live l
      WHERE l.deadline + 0 >= 0 AND l.lane > :after ORDER BY l.lane LIMIT 1)
    UNION ALL
    SELECT (SELECT l.lane FROM weft.live l
             WHERE l.deadline + 0 >= 0 AND l.lane > hop.lane ORDER BY l.lane LIMIT 1)
      FROM hop WHERE hop.lane IS NOT NULL
), looked AS MATERIALIZED (
    SELECT hop.lane FROM hop WHERE hop.lane IS NOT NULL LIMIT :most
), due AS (
    SELECT looked.lane FROM looked
     WHERE EXISTS (SELECT 1 FROM weft.live l
                    WHERE l.lane = looked.lane AND l.deadline + 0 >= 0 AND l.deadline + 0 <= :now
                    OFFSET 0)
)
SELECT CASE WHEN (SELECT count(*) FROM looked) = :most THEN (SELECT max(lane) FROM looked) ELSE 0 END,
       due.lane, (SELECT n.namespace FROM weft.name n WHERE n.id = due.lane)
  FROM (SELECT 1) one LEFT JOIN due ON true;

-- name: deadline_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
SELECT t.id, t.ord, t.due, t.attempt_deadline, t.deadline, t.started, t.claimed, t.queue,
       t.lane, t.policy, t.worker, t.epoch, t.attempt, t.forgiven, t.size, t.lost, t.replays,
       t.priority, t.state, NULL::bigint
  FROM unnest(:lane, :share) AS w(lane, share)
 CROSS JOIN LATERAL (SELECT l.* FROM weft.live l
                      WHERE l.lane = w.lane AND l.deadline + 0 >= 0 AND l.deadline + 0 <= :now
                        AND (:last - :first = 255
                             OR weft.partition(l.id) BETWEEN :first AND :last)
                        AND weft.at_rest(l.xmax)
                      ORDER BY l.deadline + 0 LIMIT w.share
                        FOR UPDATE SKIP LOCKED) t;

-- name: delayed_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
WITH RECURSIVE hop AS (
    (SELECT l.lane FROM weft.live l
      WHERE l.state BETWEEN @delayed AND @delayed AND l.lane > :after ORDER BY l.lane LIMIT 1)
    UNION ALL
    SELECT (SELECT l.lane FROM weft.live l
             WHERE l.state BETWEEN @delayed AND @delayed AND l.lane > hop.lane ORDER BY l.lane LIMIT 1)
      FROM hop WHERE hop.lane IS NOT NULL
), looked AS MATERIALIZED (
    SELECT hop.lane FROM hop WHERE hop.lane IS NOT NULL LIMIT :most
), due AS (
    SELECT looked.lane FROM looked
     WHERE EXISTS (SELECT 1 FROM weft.live l
                    WHERE l.lane = looked.lane AND l.state BETWEEN @delayed AND @delayed AND l.due <= :now
                    OFFSET 0)
)
SELECT CASE WHEN (SELECT count(*) FROM looked) = :most THEN (SELECT max(lane) FROM looked) ELSE 0 END,
       due.lane, (SELECT n.namespace FROM weft.name n WHERE n.id = due.lane)
  FROM (SELECT 1) one LEFT JOIN due ON true;

-- name: delayed_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, queue int, seen bigint?, lane int
-- moves: delayed PROMOTE ready
WITH taken AS MATERIALIZED (
    SELECT t.id
      FROM unnest(:lane, :share) AS w(lane, share)
     CROSS JOIN LATERAL (SELECT l.id FROM weft.live l
                          WHERE l.lane = w.lane AND l.state BETWEEN @delayed AND @delayed
                            AND l.due <= :now
                            AND (:last - :first = 255
                                 OR weft.partition(l.id) BETWEEN :first AND :last)
                            AND weft.at_rest(l.xmax)
                          ORDER BY l.due LIMIT w.share
                            FOR UPDATE SKIP LOCKED) t
)
UPDATE weft.live l SET state = @ready, due = NULL
  FROM taken t WHERE l.id BETWEEN t.id AND t.id
RETURNING l.id, l.queue, NULL::bigint, l.lane;
