-- Passes over what time has moved. Each locks a bounded set with SKIP LOCKED, so replicas share the
-- work, and its whole predicate stands beside FOR UPDATE, so that a row renewed, finished or
-- re-dated a moment ago is seen as it is now and left alone. The columns are those of live_lock.
--
-- SKIP LOCKED alone does not spare a pass every wait. It is forgotten when PostgreSQL finds a row
-- that another transaction has written, and that one commits while the lock is being tried: then the
-- row is followed to its new version, which is locked too, and whoever holds that is waited for (a
-- third session in the same moment, until its pass is over). So a pass goes near no row that somebody
-- has been at since its snapshot: weft.at_rest, asked of the version that the scan has just read, the
-- step before its lock. To come to that wait still, somebody would have to lock the row, write it and
-- commit between these two steps, with the commit in the midst of the second. What is left out counts
-- as any row that was not taken, and is done by the next pass if it is due then. A row that is removed
-- has no new version: retention and the like need none of this.
--
-- ns is a namespace, 0 for all; first and last are partitions, 0 and 255 for all. Neither changes
-- in the life of a row. The namespace is asked of the queue by a scalar subquery, which,
-- unlike EXISTS, the planner never turns into a look at all queues.
--
-- seen is how many due rows the snapshot of the statement had, in each row of the answer, of which
-- there is always one: what was seen and not taken is held by somebody else, or due no more. It is
-- counted when the batch was not filled, and bounded by it; NULL when it was.
--
-- Each has a second statement that ends a pass which did not fill its batch. It locks nothing.
-- left is how many are due still, after the pass; due is when the next one comes. A replica with a
-- filter walks over what is not its own, but no further than 1,000 rows: then it is told when the
-- last of these is due, and looks again.

-- name: due_leases (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
-- Leases by lane and time: hops over the lanes that have any, oldest leases of each first. A lane
-- belongs to one namespace.
WITH RECURSIVE lanes AS (
    (SELECT lane FROM weft.live WHERE state = @running ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT (SELECT n.lane FROM weft.live n
             WHERE n.state = @running AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
      FROM lanes WHERE lanes.lane IS NOT NULL
), mine AS (
    SELECT lanes.lane FROM lanes
     WHERE :ns = 0 OR (SELECT n.namespace FROM weft.name n WHERE n.id = lanes.lane) = :ns
), taken AS MATERIALIZED (
    SELECT l.*
      FROM mine
     CROSS JOIN LATERAL (SELECT d.* FROM weft.live d
                          WHERE d.lane = mine.lane AND d.state = @running AND d.due <= :now
                            AND (:last - :first = 255
                                 OR weft.partition(d.id) BETWEEN :first AND :last)
                            AND weft.at_rest(d.xmax)
                          ORDER BY d.due LIMIT :batch
                            FOR UPDATE SKIP LOCKED) l
     LIMIT :batch
), sight AS (
    SELECT CASE WHEN (SELECT count(*) FROM taken) < :batch THEN
               (SELECT count(*)
                  FROM (SELECT l.due
                          FROM mine
                         CROSS JOIN LATERAL (SELECT d.due FROM weft.live d
                                              WHERE d.lane = mine.lane AND d.state = @running
                                                AND d.due <= :now
                                                AND (:last - :first = 255
                                                     OR weft.partition(d.id)
                                                        BETWEEN :first AND :last)
                                              ORDER BY d.due LIMIT :batch) l
                         LIMIT :batch) s) END AS seen
)
SELECT t.id, t.ord, t.due, t.attempt_deadline, t.deadline, t.started, t.claimed, t.queue,
       t.lane, t.policy, t.worker, t.epoch, t.attempt, t.forgiven, t.size, t.lost, t.replays,
       t.priority, t.state, sight.seen
  FROM sight LEFT JOIN taken t ON true;

-- name: next_lease (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
-- due is also when the first draining row goes, which may be overdue: another replica has locked it.
WITH RECURSIVE lanes AS (
    (SELECT lane FROM weft.live WHERE state = @running ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT (SELECT n.lane FROM weft.live n
             WHERE n.state = @running AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
      FROM lanes WHERE lanes.lane IS NOT NULL
), mine AS (
    SELECT lanes.lane FROM lanes
     WHERE :ns = 0 OR (SELECT n.namespace FROM weft.name n WHERE n.id = lanes.lane) = :ns
)
SELECT (SELECT count(*)
          FROM (SELECT l.due
                  FROM mine
                 CROSS JOIN LATERAL (SELECT d.due FROM weft.live d
                                      WHERE d.lane = mine.lane AND d.state = @running
                                        AND d.due <= :now
                                        AND (:last - :first = 255
                                             OR weft.partition(d.id) BETWEEN :first AND :last)
                                      ORDER BY d.due LIMIT :batch) l
                 LIMIT :batch) s),
       least((SELECT min(coalesce((SELECT w.due
                                     FROM (SELECT d.id, d.due FROM weft.live d
                                            WHERE d.lane = mine.lane AND d.state = @running
                                              AND d.due > :now
                                            ORDER BY d.due LIMIT 1000) w
                                    WHERE (:last - :first = 255
                                           OR weft.partition(w.id) BETWEEN :first AND :last)
                                    ORDER BY w.due LIMIT 1),
                                  (SELECT d.due FROM weft.live d
                                    WHERE d.lane = mine.lane AND d.state = @running AND d.due > :now
                                    ORDER BY d.due LIMIT 1 OFFSET 999)))
                FROM mine),
             coalesce((SELECT w.until
                         FROM (SELECT d.id, d.queue, d.until FROM weft.draining d
                                ORDER BY d.until LIMIT 1000) w
                        WHERE (:ns = 0
                               OR (SELECT q.namespace FROM weft.queue q WHERE q.id = w.queue) = :ns)
                          AND (:last - :first = 255
                               OR weft.partition(w.id) BETWEEN :first AND :last)
                        ORDER BY w.until LIMIT 1),
                      (SELECT d.until FROM weft.draining d ORDER BY d.until LIMIT 1 OFFSET 999)));

-- name: due_attempts (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
WITH taken AS MATERIALIZED (
    SELECT l.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue,
           l.lane, l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays,
           l.priority, l.state
      FROM weft.live l
     WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now
       AND l.state + 0 = @running
       AND (:ns = 0 OR (SELECT q.namespace FROM weft.queue q WHERE q.id = l.queue) = :ns)
       AND (:last - :first = 255 OR weft.partition(l.id) BETWEEN :first AND :last)
       AND weft.at_rest(l.xmax)
     ORDER BY l.attempt_deadline LIMIT :batch
       FOR UPDATE SKIP LOCKED
), sight AS (
    SELECT CASE WHEN (SELECT count(*) FROM taken) < :batch THEN
               (SELECT count(*)
                  FROM (SELECT l.attempt_deadline
                          FROM weft.live l
                         WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now
                           AND l.state + 0 = @running
                           AND (:ns = 0
                                OR (SELECT q.namespace FROM weft.queue q WHERE q.id = l.queue) = :ns)
                           AND (:last - :first = 255
                                OR weft.partition(l.id) BETWEEN :first AND :last)
                         ORDER BY l.attempt_deadline LIMIT :batch) s) END AS seen
)
SELECT t.id, t.ord, t.due, t.attempt_deadline, t.deadline, t.started, t.claimed, t.queue,
       t.lane, t.policy, t.worker, t.epoch, t.attempt, t.forgiven, t.size, t.lost, t.replays,
       t.priority, t.state, sight.seen
  FROM sight LEFT JOIN taken t ON true;

-- name: next_attempt (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
SELECT (SELECT count(*)
          FROM (SELECT l.attempt_deadline
                  FROM weft.live l
                 WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now
                   AND l.state + 0 = @running
                   AND (:ns = 0
                        OR (SELECT q.namespace FROM weft.queue q WHERE q.id = l.queue) = :ns)
                   AND (:last - :first = 255 OR weft.partition(l.id) BETWEEN :first AND :last)
                 ORDER BY l.attempt_deadline LIMIT :batch) s),
       coalesce((SELECT w.attempt_deadline
                   FROM (SELECT l.id, l.queue, l.attempt_deadline FROM weft.live l
                         WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline > :now
                           AND l.state + 0 = @running
                         ORDER BY l.attempt_deadline LIMIT 1000) w
                  WHERE (:ns = 0
                         OR (SELECT q.namespace FROM weft.queue q WHERE q.id = w.queue) = :ns)
                    AND (:last - :first = 255 OR weft.partition(w.id) BETWEEN :first AND :last)
                  ORDER BY w.attempt_deadline LIMIT 1),
                (SELECT l.attempt_deadline FROM weft.live l
                 WHERE l.attempt_deadline IS NOT NULL AND l.attempt_deadline > :now
                   AND l.state + 0 = @running
                  ORDER BY l.attempt_deadline LIMIT 1 OFFSET 999));

-- name: due_deadlines (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, seen bigint?
WITH taken AS MATERIALIZED (
    SELECT l.id, l.ord, l.due, l.attempt_deadline, l.deadline, l.started, l.claimed, l.queue,
           l.lane, l.policy, l.worker, l.epoch, l.attempt, l.forgiven, l.size, l.lost, l.replays,
           l.priority, l.state
      FROM weft.live l
     WHERE l.deadline IS NOT NULL AND l.deadline <= :now
       AND (:ns = 0 OR (SELECT q.namespace FROM weft.queue q WHERE q.id = l.queue) = :ns)
       AND (:last - :first = 255 OR weft.partition(l.id) BETWEEN :first AND :last)
       AND weft.at_rest(l.xmax)
     ORDER BY l.deadline LIMIT :batch
       FOR UPDATE SKIP LOCKED
), sight AS (
    SELECT CASE WHEN (SELECT count(*) FROM taken) < :batch THEN
               (SELECT count(*)
                  FROM (SELECT l.deadline
                          FROM weft.live l
                         WHERE l.deadline IS NOT NULL AND l.deadline <= :now
                           AND (:ns = 0
                                OR (SELECT q.namespace FROM weft.queue q WHERE q.id = l.queue) = :ns)
                           AND (:last - :first = 255
                                OR weft.partition(l.id) BETWEEN :first AND :last)
                         ORDER BY l.deadline LIMIT :batch) s) END AS seen
)
SELECT t.id, t.ord, t.due, t.attempt_deadline, t.deadline, t.started, t.claimed, t.queue,
       t.lane, t.policy, t.worker, t.epoch, t.attempt, t.forgiven, t.size, t.lost, t.replays,
       t.priority, t.state, sight.seen
  FROM sight LEFT JOIN taken t ON true;

-- name: next_deadline (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
SELECT (SELECT count(*)
          FROM (SELECT l.deadline
                  FROM weft.live l
                 WHERE l.deadline IS NOT NULL AND l.deadline <= :now
                   AND (:ns = 0
                        OR (SELECT q.namespace FROM weft.queue q WHERE q.id = l.queue) = :ns)
                   AND (:last - :first = 255 OR weft.partition(l.id) BETWEEN :first AND :last)
                 ORDER BY l.deadline LIMIT :batch) s),
       coalesce((SELECT w.deadline
                   FROM (SELECT l.id, l.queue, l.deadline FROM weft.live l
                         WHERE l.deadline IS NOT NULL AND l.deadline > :now
                         ORDER BY l.deadline LIMIT 1000) w
                  WHERE (:ns = 0
                         OR (SELECT q.namespace FROM weft.queue q WHERE q.id = w.queue) = :ns)
                    AND (:last - :first = 255 OR weft.partition(w.id) BETWEEN :first AND :last)
                  ORDER BY w.deadline LIMIT 1),
                (SELECT l.deadline FROM weft.live l
                 WHERE l.deadline IS NOT NULL AND l.deadline > :now
                  ORDER BY l.deadline LIMIT 1 OFFSET 999));

-- name: promote_due (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, queue int, seen bigint?
-- moves: delayed PROMOTE ready
WITH taken AS MATERIALIZED (
    SELECT l.id
      FROM weft.live l
     WHERE l.state = @delayed AND l.due <= :now
       AND (:ns = 0 OR (SELECT q.namespace FROM weft.queue q WHERE q.id = l.queue) = :ns)
       AND (:last - :first = 255 OR weft.partition(l.id) BETWEEN :first AND :last)
       AND weft.at_rest(l.xmax)
     ORDER BY l.due LIMIT :batch
       FOR UPDATE SKIP LOCKED
), promoted AS (
    UPDATE weft.live l SET state = @ready, due = NULL
      FROM taken t WHERE l.id BETWEEN t.id AND t.id
    RETURNING l.id, l.queue
), sight AS (
    SELECT CASE WHEN (SELECT count(*) FROM taken) < :batch THEN
               (SELECT count(*)
                  FROM (SELECT l.due
                          FROM weft.live l
                         WHERE l.state = @delayed AND l.due <= :now
                           AND (:ns = 0
                                OR (SELECT q.namespace FROM weft.queue q WHERE q.id = l.queue) = :ns)
                           AND (:last - :first = 255
                                OR weft.partition(l.id) BETWEEN :first AND :last)
                         ORDER BY l.due LIMIT :batch) s) END AS seen
)
SELECT p.id, p.queue, sight.seen
  FROM sight LEFT JOIN promoted p ON true;

-- name: next_delayed (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
SELECT (SELECT count(*)
          FROM (SELECT l.due
                  FROM weft.live l
                 WHERE l.state = @delayed AND l.due <= :now
                   AND (:ns = 0
                        OR (SELECT q.namespace FROM weft.queue q WHERE q.id = l.queue) = :ns)
                   AND (:last - :first = 255 OR weft.partition(l.id) BETWEEN :first AND :last)
                 ORDER BY l.due LIMIT :batch) s),
       coalesce((SELECT w.due
                   FROM (SELECT l.id, l.queue, l.due FROM weft.live l
                         WHERE l.state = @delayed AND l.due > :now
                         ORDER BY l.due LIMIT 1000) w
                  WHERE (:ns = 0
                         OR (SELECT q.namespace FROM weft.queue q WHERE q.id = w.queue) = :ns)
                    AND (:last - :first = 255 OR weft.partition(w.id) BETWEEN :first AND :last)
                  ORDER BY w.due LIMIT 1),
                (SELECT l.due FROM weft.live l
                 WHERE l.state = @delayed AND l.due > :now
                  ORDER BY l.due LIMIT 1 OFFSET 999));
