-- Passes in turns: the statements of pass.sql for the passes that follow a full batch. When more is due
-- than fits into a batch, the order of time would let a namespace with very many due rows keep all others
-- waiting. So such a pass first looks which lanes have due rows (a lane belongs to one namespace), then
-- takes a share of each, the oldest first. The shares are the caller's: src/engine/scan/due.c.
--
-- Locks as in pass.sql: the whole predicate stands beside FOR UPDATE SKIP LOCKED, and no row is
-- tried that another session has been at since the snapshot. seen is NULL: the rows that were not taken
-- are not counted.
--
-- X_lanes looks at the lanes behind :after, at most :most of them, by hops through an index that begins
-- with the lane, and locks nothing. next is the lane to go on behind, 0 when there is none behind these.
-- There is always one row; lane is NULL when none of them has due rows.
--
-- `deadline + 0` is the expression of live_deadline_lane, as in live_attempt_lane: by the plain column the planner
-- could take the index by the time alone for its order, and walk over the due rows of all other lanes.

-- fragment: lanes_due (table, has, due)
-- The lanes that have rows of a sort, `has`, by hops, and of these the ones whose rows are `due`.
WITH RECURSIVE hop AS (
    (SELECT l.lane FROM @table l
      WHERE @has AND l.lane > :after ORDER BY l.lane LIMIT 1)
    UNION ALL
    SELECT (SELECT l.lane FROM @table l
             WHERE @has AND l.lane > hop.lane ORDER BY l.lane LIMIT 1)
      FROM hop WHERE hop.lane IS NOT NULL
), looked AS MATERIALIZED (
    SELECT hop.lane FROM hop WHERE hop.lane IS NOT NULL LIMIT :most
), due AS (
    SELECT looked.lane FROM looked
     WHERE EXISTS (SELECT 1 FROM @table l
                    WHERE l.lane = looked.lane AND @has AND @due
                    OFFSET 0)
)
SELECT CASE WHEN (SELECT count(*) FROM looked) = :most THEN (SELECT max(lane) FROM looked) ELSE 0 END,
       due.lane, (SELECT n.namespace FROM weft.name n WHERE n.id = due.lane)
  FROM (SELECT 1) one LEFT JOIN due ON true

-- fragment: due_in_turns (due, time)
-- The share of each lane, the oldest first.
SELECT @{live_columns t}, NULL::bigint
  FROM unnest(:lane, :share) AS w(lane, share)
 CROSS JOIN LATERAL (SELECT l.* FROM weft.live l
                      WHERE l.lane = w.lane AND @due
                        AND @{of_partition l.id}
                        AND weft.at_rest(l.xmax)
                      ORDER BY @time LIMIT w.share
                        FOR UPDATE SKIP LOCKED) t

-- name: lease_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
@{lanes_due weft.live | l.state = @running | l.due <= :now};

-- name: lease_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
@{due_in_turns l.state = @running AND l.due <= :now | l.due};

-- name: attempt_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
@{lanes_due weft.live | l.attempt_deadline + 0 >= 0 | l.attempt_deadline + 0 <= :now};

-- name: attempt_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
@{due_in_turns l.attempt_deadline + 0 >= 0 AND l.attempt_deadline + 0 <= :now
           AND l.state + 0 = @running | l.attempt_deadline + 0};

-- name: deadline_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
@{lanes_due weft.live | l.deadline + 0 >= 0 | l.deadline + 0 <= :now};

-- name: deadline_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
@{due_in_turns l.deadline + 0 >= 0 AND l.deadline + 0 <= :now | l.deadline + 0};

-- name: delayed_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
@{lanes_due weft.live | l.state BETWEEN @delayed AND @delayed | l.due <= :now};

-- name: delayed_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, queue int, seen bigint?, lane int, gate text?
-- moves: delayed PROMOTE ready
WITH taken AS MATERIALIZED (
    SELECT t.id
      FROM unnest(:lane, :share) AS w(lane, share)
     CROSS JOIN LATERAL (SELECT l.id FROM weft.live l
                          WHERE l.lane = w.lane AND l.state BETWEEN @delayed AND @delayed
                            AND l.due <= :now
                            AND @{of_partition l.id}
                            AND weft.at_rest(l.xmax)
                          ORDER BY l.due LIMIT w.share
                            FOR UPDATE SKIP LOCKED) t
)
UPDATE weft.live l SET state = @{ready_or_held l.gate}, due = NULL
  FROM taken t WHERE l.id BETWEEN t.id AND t.id
RETURNING l.id, l.queue, NULL::bigint, l.lane, l.gate;

-- name: suspension_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
@{lanes_due weft.suspension | true | @{times_out l} <= :now};

-- name: suspension_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
SELECT @{live_columns t}, NULL::bigint
  FROM unnest(:lane, :share) AS w(lane, share)
 CROSS JOIN LATERAL (SELECT l.*
                       FROM weft.suspension s JOIN weft.live l ON l.id BETWEEN s.id AND s.id
                      WHERE s.lane = w.lane AND @{times_out s} <= :now
                        AND @{of_partition s.id}
                        AND l.state + 0 = @suspended
                        AND weft.at_rest(l.xmax)
                      ORDER BY @{times_out s} LIMIT w.share
                        FOR UPDATE OF l SKIP LOCKED) t;
