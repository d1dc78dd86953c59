-- Passes over what time has moved. Each locks a bounded set with SKIP LOCKED, so replicas share the
-- work, and its whole predicate stands beside FOR UPDATE, so that a row renewed, finished or
-- re-dated a moment ago is seen as it is now and left alone. The columns are those of live_lock.

-- name: due_leases (now bigint, batch int)
-- returns: id ord due attempt_deadline deadline started claimed queue lane policy worker epoch attempt forgiven size lost replays priority state
-- Leases by lane and time: hops over the lanes that have any, oldest leases of each first.
WITH RECURSIVE lanes AS (
    (SELECT lane FROM weft.live WHERE state = @running ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT (SELECT n.lane FROM weft.live n
             WHERE n.state = @running AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
      FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT l.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue, l.lane,
       l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays, l.priority,
       l.state
  FROM lanes
 CROSS JOIN LATERAL (SELECT d.* FROM weft.live d
                      WHERE d.lane = lanes.lane AND d.state = @running AND d.due <= :now
                      ORDER BY d.due LIMIT :batch
                        FOR UPDATE SKIP LOCKED) l
 LIMIT :batch;

-- name: due_attempts (now bigint, batch int)
-- returns: id ord due attempt_deadline deadline started claimed queue lane policy worker epoch attempt forgiven size lost replays priority state
SELECT l.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue, l.lane,
       l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays, l.priority,
       l.state
  FROM weft.live l
 WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now AND l.state + 0 = @running
 ORDER BY l.attempt_deadline LIMIT :batch
   FOR UPDATE SKIP LOCKED;

-- name: due_deadlines (now bigint, batch int)
-- returns: id ord due attempt_deadline deadline started claimed queue lane policy worker epoch attempt forgiven size lost replays priority state
SELECT l.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue, l.lane,
       l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays, l.priority,
       l.state
  FROM weft.live l
 WHERE l.deadline IS NOT NULL AND l.deadline <= :now
 ORDER BY l.deadline LIMIT :batch
   FOR UPDATE SKIP LOCKED;

-- name: promote_due (now bigint, batch int)
-- returns: id queue
-- moves: delayed PROMOTE ready
WITH due AS MATERIALIZED (
    SELECT l.id FROM weft.live l
     WHERE l.state = @delayed AND l.due <= :now
     ORDER BY l.due LIMIT :batch
       FOR UPDATE SKIP LOCKED
)
UPDATE weft.live l SET state = @ready, due = NULL
  FROM due d WHERE l.id BETWEEN d.id AND d.id
RETURNING l.id, l.queue;

-- name: next_due ()
-- returns: lease attempt deadline delayed
-- When each pass has something to do again: the ends of four indexes. Not min(), which the planner
-- turns into a walk over the whole index when statistics say that the table is empty.
WITH RECURSIVE lanes AS (
    (SELECT lane FROM weft.live WHERE state = @running ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT (SELECT n.lane FROM weft.live n
             WHERE n.state = @running AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
      FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT (SELECT min(first.due)
          FROM lanes CROSS JOIN LATERAL (SELECT l.due FROM weft.live l
                                          WHERE l.lane = lanes.lane AND l.state = @running
                                          ORDER BY l.due LIMIT 1) first),
       (SELECT attempt_deadline FROM weft.live WHERE attempt_deadline IS NOT NULL
         ORDER BY attempt_deadline LIMIT 1),
       (SELECT deadline FROM weft.live WHERE deadline IS NOT NULL ORDER BY deadline LIMIT 1),
       (SELECT due FROM weft.live WHERE state = @delayed ORDER BY due LIMIT 1);
