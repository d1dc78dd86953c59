-- The twins of sql/pg/turns.sql. There is one writer at a time, so no row is skipped. X_turns runs once for
-- each lane.

-- name: lease_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
WITH RECURSIVE hop(lane) AS (
    SELECT min(l.lane) FROM live l WHERE l.state = @running AND l.lane > :after
    UNION ALL
    SELECT (SELECT min(l.lane) FROM live l WHERE l.state = @running AND l.lane > hop.lane)
      FROM hop WHERE hop.lane IS NOT NULL
     LIMIT :most + 1
), looked(lane) AS MATERIALIZED (
    SELECT hop.lane FROM hop WHERE hop.lane IS NOT NULL LIMIT :most
), due(lane) AS (
    SELECT looked.lane FROM looked
     WHERE EXISTS (SELECT 1 FROM live l
                    WHERE l.lane = looked.lane AND l.state = @running AND l.due <= :now)
)
SELECT CASE WHEN (SELECT count(*) FROM looked) = :most THEN (SELECT max(lane) FROM looked) ELSE 0 END,
       due.lane, (SELECT n.namespace FROM name n WHERE n.id = due.lane)
  FROM (SELECT 1) one LEFT JOIN due ON true;

-- name: lease_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
SELECT e.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue,
       l.lane, l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays,
       l.priority, l.state, NULL
  FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.lane = :lane AND l.state = @running AND l.due <= :now
   AND (:last - :first = 255 OR weft_partition(e.id) BETWEEN :first AND :last)
 ORDER BY l.due LIMIT :share;

-- name: attempt_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
WITH RECURSIVE hop(lane) AS (
    SELECT min(l.lane) FROM live l WHERE l.attempt_deadline IS NOT NULL AND l.lane > :after
    UNION ALL
    SELECT (SELECT min(l.lane) FROM live l WHERE l.attempt_deadline IS NOT NULL AND l.lane > hop.lane)
      FROM hop WHERE hop.lane IS NOT NULL
     LIMIT :most + 1
), looked(lane) AS MATERIALIZED (
    SELECT hop.lane FROM hop WHERE hop.lane IS NOT NULL LIMIT :most
), due(lane) AS (
    SELECT looked.lane FROM looked
     WHERE EXISTS (SELECT 1 FROM live l
                    WHERE l.lane = looked.lane AND l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now)
)
SELECT CASE WHEN (SELECT count(*) FROM looked) = :most THEN (SELECT max(lane) FROM looked) ELSE 0 END,
       due.lane, (SELECT n.namespace FROM name n WHERE n.id = due.lane)
  FROM (SELECT 1) one LEFT JOIN due ON true;

-- name: attempt_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
SELECT e.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue,
       l.lane, l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays,
       l.priority, l.state, NULL
  FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.lane = :lane AND l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now
   AND +l.state = @running
   AND (:last - :first = 255 OR weft_partition(e.id) BETWEEN :first AND :last)
 ORDER BY l.attempt_deadline LIMIT :share;

-- name: deadline_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
WITH RECURSIVE hop(lane) AS (
    SELECT min(l.lane) FROM live l WHERE l.deadline IS NOT NULL AND l.lane > :after
    UNION ALL
    SELECT (SELECT min(l.lane) FROM live l WHERE l.deadline IS NOT NULL AND l.lane > hop.lane)
      FROM hop WHERE hop.lane IS NOT NULL
     LIMIT :most + 1
), looked(lane) AS MATERIALIZED (
    SELECT hop.lane FROM hop WHERE hop.lane IS NOT NULL LIMIT :most
), due(lane) AS (
    SELECT looked.lane FROM looked
     WHERE EXISTS (SELECT 1 FROM live l
                    WHERE l.lane = looked.lane AND l.deadline IS NOT NULL AND l.deadline <= :now)
)
SELECT CASE WHEN (SELECT count(*) FROM looked) = :most THEN (SELECT max(lane) FROM looked) ELSE 0 END,
       due.lane, (SELECT n.namespace FROM name n WHERE n.id = due.lane)
  FROM (SELECT 1) one LEFT JOIN due ON true;

-- name: deadline_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
SELECT e.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue,
       l.lane, l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays,
       l.priority, l.state, NULL
  FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.lane = :lane AND l.deadline IS NOT NULL AND l.deadline <= :now
   AND (:last - :first = 255 OR weft_partition(e.id) BETWEEN :first AND :last)
 ORDER BY l.deadline LIMIT :share;

-- name: delayed_lanes (now bigint, after int, most int)
-- returns: next int, lane int?, namespace int
WITH RECURSIVE hop(lane) AS (
    SELECT min(l.lane) FROM live l WHERE l.state = @delayed AND l.lane > :after
    UNION ALL
    SELECT (SELECT min(l.lane) FROM live l WHERE l.state = @delayed AND l.lane > hop.lane)
      FROM hop WHERE hop.lane IS NOT NULL
     LIMIT :most + 1
), looked(lane) AS MATERIALIZED (
    SELECT hop.lane FROM hop WHERE hop.lane IS NOT NULL LIMIT :most
), due(lane) AS (
    SELECT looked.lane FROM looked
     WHERE EXISTS (SELECT 1 FROM live l
                    WHERE l.lane = looked.lane AND l.state = @delayed AND l.due <= :now)
)
SELECT CASE WHEN (SELECT count(*) FROM looked) = :most THEN (SELECT max(lane) FROM looked) ELSE 0 END,
       due.lane, (SELECT n.namespace FROM name n WHERE n.id = due.lane)
  FROM (SELECT 1) one LEFT JOIN due ON true;

-- name: delayed_turns (now bigint, first int, last int, lane int[], share int[])
-- returns: id uuid?, queue int, seen bigint?, lane int
-- moves: delayed PROMOTE ready
UPDATE live SET state = @ready, due = NULL
 WHERE num IN (SELECT l.num FROM live l
                WHERE l.lane = :lane AND l.state = @delayed AND l.due <= :now
                  AND (:last - :first = 255
                       OR weft_partition((SELECT e.id FROM execution e WHERE e.num = l.num))
                          BETWEEN :first AND :last)
                ORDER BY l.due LIMIT :share)
RETURNING (SELECT e.id FROM execution e WHERE e.num = live.num), queue, NULL, lane;
