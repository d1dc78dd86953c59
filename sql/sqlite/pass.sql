-- The twins of sql/pg/pass.sql. There is one writer at a time, so what a pass sees it takes: seen
-- is NULL. weft_partition() is the driver's.

-- name: due_leases (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
WITH RECURSIVE lanes(lane) AS (
    SELECT min(lane) FROM live WHERE state = @running
    UNION ALL
    SELECT (SELECT min(n.lane) FROM live n WHERE n.state = @running AND n.lane > lanes.lane)
      FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT e.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue,
       l.lane, l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays,
       l.priority, l.state, NULL
  FROM lanes CROSS JOIN live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.lane = lanes.lane AND l.state = @running AND l.due <= :now
   AND (:ns = 0 OR (SELECT n.namespace FROM name n WHERE n.id = lanes.lane) = :ns)
   AND (:last - :first = 255 OR weft_partition(e.id) BETWEEN :first AND :last)
 LIMIT :batch;

-- name: next_lease (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
WITH RECURSIVE lanes(lane) AS (
    SELECT min(lane) FROM live WHERE state = @running
    UNION ALL
    SELECT (SELECT min(n.lane) FROM live n WHERE n.state = @running AND n.lane > lanes.lane)
      FROM lanes WHERE lanes.lane IS NOT NULL
)
SELECT (SELECT count(*)
          FROM (SELECT l.due FROM lanes CROSS JOIN live l
                 WHERE l.lane = lanes.lane AND l.state = @running AND l.due <= :now
                   AND (:ns = 0 OR (SELECT n.namespace FROM name n WHERE n.id = lanes.lane) = :ns)
                   AND (:last - :first = 255
                        OR weft_partition((SELECT e.id FROM execution e WHERE e.num = l.num))
                           BETWEEN :first AND :last)
                 LIMIT :batch)),
       (SELECT min(due) FROM (
            SELECT min(coalesce((SELECT w.due
                                   FROM (SELECT l.num, l.due FROM live l
                                          WHERE l.lane = lanes.lane AND l.state = @running
                                            AND l.due > :now
                                          ORDER BY l.due LIMIT 1000) w
                                  WHERE :last - :first = 255
                                     OR weft_partition((SELECT e.id FROM execution e
                                                         WHERE e.num = w.num))
                                        BETWEEN :first AND :last
                                  LIMIT 1),
                                (SELECT l.due FROM live l
                                  WHERE l.lane = lanes.lane AND l.state = @running AND l.due > :now
                                  ORDER BY l.due LIMIT 1 OFFSET 999))) AS due
              FROM lanes
             WHERE lanes.lane IS NOT NULL
               AND (:ns = 0 OR (SELECT n.namespace FROM name n WHERE n.id = lanes.lane) = :ns)
            UNION ALL
            SELECT coalesce((SELECT w.until
                               FROM (SELECT d.id, d.queue, d.until FROM draining d
                                      ORDER BY d.until LIMIT 1000) w
                              WHERE (:ns = 0
                                     OR (SELECT q.namespace FROM queue q WHERE q.id = w.queue) = :ns)
                                AND (:last - :first = 255
                                     OR weft_partition(w.id) BETWEEN :first AND :last)
                              LIMIT 1),
                            (SELECT d.until FROM draining d ORDER BY d.until LIMIT 1 OFFSET 999))));

-- name: due_attempts (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
SELECT e.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue,
       l.lane, l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays,
       l.priority, l.state, NULL
  FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now AND +l.state = @running
   AND (:ns = 0 OR (SELECT q.namespace FROM queue q WHERE q.id = l.queue) = :ns)
   AND (:last - :first = 255 OR weft_partition(e.id) BETWEEN :first AND :last)
 ORDER BY l.attempt_deadline LIMIT :batch;

-- name: next_attempt (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
SELECT (SELECT count(*)
          FROM (SELECT l.attempt_deadline FROM live l
                 WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now
                   AND +l.state = @running
                   AND (:ns = 0 OR (SELECT q.namespace FROM queue q WHERE q.id = l.queue) = :ns)
                   AND (:last - :first = 255
                        OR weft_partition((SELECT e.id FROM execution e WHERE e.num = l.num))
                           BETWEEN :first AND :last)
                 ORDER BY l.attempt_deadline LIMIT :batch)),
       coalesce((SELECT w.attempt_deadline
                   FROM (SELECT l.num, l.queue, l.attempt_deadline FROM live l
                         WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline > :now
                           AND +l.state = @running
                         ORDER BY l.attempt_deadline LIMIT 1000) w
                  WHERE (:ns = 0 OR (SELECT q.namespace FROM queue q WHERE q.id = w.queue) = :ns)
                    AND (:last - :first = 255
                         OR weft_partition((SELECT e.id FROM execution e WHERE e.num = w.num))
                            BETWEEN :first AND :last)
                  LIMIT 1),
                (SELECT l.attempt_deadline FROM live l
                 WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline > :now
                   AND +l.state = @running
                  ORDER BY l.attempt_deadline LIMIT 1 OFFSET 999));

-- name: due_deadlines (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
SELECT e.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue,
       l.lane, l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays,
       l.priority, l.state, NULL
  FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.deadline IS NOT NULL AND l.deadline <= :now
   AND (:ns = 0 OR (SELECT q.namespace FROM queue q WHERE q.id = l.queue) = :ns)
   AND (:last - :first = 255 OR weft_partition(e.id) BETWEEN :first AND :last)
 ORDER BY l.deadline LIMIT :batch;

-- name: next_deadline (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
SELECT (SELECT count(*)
          FROM (SELECT l.deadline FROM live l
                 WHERE l.deadline IS NOT NULL AND l.deadline <= :now
                   AND (:ns = 0 OR (SELECT q.namespace FROM queue q WHERE q.id = l.queue) = :ns)
                   AND (:last - :first = 255
                        OR weft_partition((SELECT e.id FROM execution e WHERE e.num = l.num))
                           BETWEEN :first AND :last)
                 ORDER BY l.deadline LIMIT :batch)),
       coalesce((SELECT w.deadline
                   FROM (SELECT l.num, l.queue, l.deadline FROM live l
                         WHERE l.deadline IS NOT NULL AND l.deadline > :now
                         ORDER BY l.deadline LIMIT 1000) w
                  WHERE (:ns = 0 OR (SELECT q.namespace FROM queue q WHERE q.id = w.queue) = :ns)
                    AND (:last - :first = 255
                         OR weft_partition((SELECT e.id FROM execution e WHERE e.num = w.num))
                            BETWEEN :first AND :last)
                  LIMIT 1),
                (SELECT l.deadline FROM live l
                 WHERE l.deadline IS NOT NULL AND l.deadline > :now
                  ORDER BY l.deadline LIMIT 1 OFFSET 999));

-- name: promote_due (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, queue int, seen bigint?
-- moves: delayed PROMOTE ready
UPDATE live SET state = @ready, due = NULL
 WHERE num IN (SELECT l.num FROM live l
                WHERE l.state = @delayed AND l.due <= :now
                  AND (:ns = 0 OR (SELECT q.namespace FROM queue q WHERE q.id = l.queue) = :ns)
                  AND (:last - :first = 255
                       OR weft_partition((SELECT e.id FROM execution e WHERE e.num = l.num))
                          BETWEEN :first AND :last)
                ORDER BY l.due LIMIT :batch)
RETURNING (SELECT e.id FROM execution e WHERE e.num = live.num), queue, NULL;

-- name: next_delayed (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
SELECT (SELECT count(*)
          FROM (SELECT l.due FROM live l
                 WHERE l.state = @delayed AND l.due <= :now
                   AND (:ns = 0 OR (SELECT q.namespace FROM queue q WHERE q.id = l.queue) = :ns)
                   AND (:last - :first = 255
                        OR weft_partition((SELECT e.id FROM execution e WHERE e.num = l.num))
                           BETWEEN :first AND :last)
                 ORDER BY l.due LIMIT :batch)),
       coalesce((SELECT w.due
                   FROM (SELECT l.num, l.queue, l.due FROM live l
                         WHERE l.state = @delayed AND l.due > :now
                         ORDER BY l.due LIMIT 1000) w
                  WHERE (:ns = 0 OR (SELECT q.namespace FROM queue q WHERE q.id = w.queue) = :ns)
                    AND (:last - :first = 255
                         OR weft_partition((SELECT e.id FROM execution e WHERE e.num = w.num))
                            BETWEEN :first AND :last)
                  LIMIT 1),
                (SELECT l.due FROM live l
                 WHERE l.state = @delayed AND l.due > :now
                  ORDER BY l.due LIMIT 1 OFFSET 999));
