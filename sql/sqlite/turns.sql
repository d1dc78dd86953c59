-- The twins of sql/pg/turns.sql. There is one writer at a time, so no row is skipped. X_turns runs once for
-- each lane.

-- fragment: lanes_due (table, has, due)
WITH RECURSIVE hop(lane) AS (
    SELECT min(l.lane) FROM @table l WHERE @has AND l.lane > :after
    UNION ALL
    SELECT (SELECT min(l.lane) FROM @table l WHERE @has AND l.lane > hop.lane)
      FROM hop WHERE hop.lane IS NOT NULL
     LIMIT :most + 1
), looked(lane) AS MATERIALIZED (
    SELECT hop.lane FROM hop WHERE hop.lane IS NOT NULL LIMIT :most
), due(lane) AS (
    SELECT looked.lane FROM looked
     WHERE EXISTS (SELECT 1 FROM @table l
                    WHERE l.lane = looked.lane AND @has AND @due)
)
SELECT CASE WHEN (SELECT count(*) FROM looked) = :most THEN (SELECT max(lane) FROM looked) ELSE 0 END,
       due.lane, (SELECT n.namespace FROM name n WHERE n.id = due.lane)
  FROM (SELECT 1) one LEFT JOIN due ON true

-- fragment: due_in_turns (due, time)
SELECT @{live_columns}, NULL
  FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.lane = :lane AND @due
   AND @{of_partition e.id}
 ORDER BY @time LIMIT :share

-- name: lease_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
@{lanes_due live | l.state = @running | l.due <= :now};

-- name: lease_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
@{due_in_turns l.state = @running AND l.due <= :now | l.due};

-- name: attempt_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
@{lanes_due live | l.attempt_deadline IS NOT NULL | l.attempt_deadline <= :now};

-- name: attempt_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
@{due_in_turns l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now
   AND +l.state = @running | l.attempt_deadline};

-- name: deadline_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
@{lanes_due live | l.deadline IS NOT NULL | l.deadline <= :now};

-- name: deadline_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
@{due_in_turns l.deadline IS NOT NULL AND l.deadline <= :now | l.deadline};

-- name: delayed_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
@{lanes_due live | l.state = @delayed | l.due <= :now};

-- name: delayed_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, queue int, seen bigint?, lane int, gate text?
-- moves: delayed PROMOTE ready
UPDATE live SET state = @{ready_or_held gate}, due = NULL
 WHERE num IN (SELECT l.num FROM live l
                WHERE l.lane = :lane AND l.state = @delayed AND l.due <= :now
                  AND @{of_partition_num l.num}
                ORDER BY l.due LIMIT :share)
RETURNING (SELECT e.id FROM execution e WHERE e.num = live.num), queue, NULL, lane, gate;

-- name: suspension_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
@{lanes_due suspension | true | @{times_out l} <= :now};

-- name: suspension_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
SELECT @{live_columns}, NULL
  FROM suspension s CROSS JOIN execution e ON e.id = s.id CROSS JOIN live l ON l.num = e.num
 WHERE s.lane = :lane AND @{times_out s} <= :now
   AND @{of_partition s.id}
   AND +l.state = @suspended
 ORDER BY @{times_out s} LIMIT :share;
