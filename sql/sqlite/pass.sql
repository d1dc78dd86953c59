-- The twins of sql/pg/pass.sql.

-- name: due_leases (now bigint, batch int)
-- returns: id ord due attempt_deadline deadline started claimed queue lane policy worker epoch attempt forgiven size lost replays priority state
WITH RECURSIVE lanes(lane) AS (
    SELECT min(lane) FROM live WHERE state = @running
    UNION ALL
    SELECT (SELECT min(n.lane) FROM live n WHERE n.state = @running AND n.lane > lanes.lane)
      FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT e.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue, l.lane,
       l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays, l.priority,
       l.state
  FROM lanes CROSS JOIN live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.lane = lanes.lane AND l.state = @running AND l.due <= :now
 LIMIT :batch;

-- name: due_attempts (now bigint, batch int)
-- returns: id ord due attempt_deadline deadline started claimed queue lane policy worker epoch attempt forgiven size lost replays priority state
SELECT e.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue, l.lane,
       l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays, l.priority,
       l.state
  FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now AND +l.state = @running
 ORDER BY l.attempt_deadline LIMIT :batch;

-- name: due_deadlines (now bigint, batch int)
-- returns: id ord due attempt_deadline deadline started claimed queue lane policy worker epoch attempt forgiven size lost replays priority state
SELECT e.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue, l.lane,
       l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays, l.priority,
       l.state
  FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.deadline IS NOT NULL AND l.deadline <= :now
 ORDER BY l.deadline LIMIT :batch;

-- name: promote_due (now bigint, batch int)
-- returns: id queue
-- moves: delayed PROMOTE ready
UPDATE live SET state = @ready, due = NULL
 WHERE num IN (SELECT num FROM live WHERE state = @delayed AND due <= :now ORDER BY due LIMIT :batch)
RETURNING (SELECT e.id FROM execution e WHERE e.num = live.num), queue;

-- name: next_due ()
-- returns: lease attempt deadline delayed
WITH RECURSIVE lanes(lane) AS (
    SELECT min(lane) FROM live WHERE state = @running
    UNION ALL
    SELECT (SELECT min(n.lane) FROM live n WHERE n.state = @running AND n.lane > lanes.lane)
      FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT (SELECT min((SELECT min(l.due) FROM live l WHERE l.lane = lanes.lane AND l.state = @running))
          FROM lanes WHERE lane IS NOT NULL),
       (SELECT min(attempt_deadline) FROM live WHERE attempt_deadline IS NOT NULL),
       (SELECT min(deadline) FROM live WHERE deadline IS NOT NULL),
       (SELECT min(due) FROM live WHERE state = @delayed);
