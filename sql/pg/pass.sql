-- Passes over rows that are due. Each locks a bounded set with SKIP LOCKED, so replicas share the
-- work, and its whole predicate stands beside FOR UPDATE, so that a row renewed, finished or
-- re-dated a moment ago is seen as it is now and left alone. The columns are the same as of live_lock.
--
-- SKIP LOCKED alone does not spare a pass every wait. It is forgotten when PostgreSQL finds a row
-- that another transaction has written, and that one commits while the lock is being tried: then the
-- row is followed to its new version, which is locked too, and the pass waits for its holder (a
-- third session in the same moment, until its pass is over). So a pass tries no row that another
-- transaction has written or locked since its snapshot: weft.at_rest, asked of the version that the scan has just read, the
-- step before its lock. To come to that wait still, another session would have to lock the row, write it and
-- commit between these two steps, with the commit in the midst of the second. A row that is left out counts
-- as any row that was not taken, and is done by the next pass if it is due then. A row that is removed
-- has no new version: retention and the like need none of this.
--
-- ns is a namespace, 0 for all; first and last are partitions, 0 and 255 for all. Neither changes
-- in the life of a row. The namespace is asked of the queue by a scalar subquery, which,
-- unlike EXISTS, the planner never turns into a look at all queues.
--
-- seen is how many due rows the snapshot of the statement had, in each row of the answer, of which
-- there is always one: a row that was seen and not taken is held by another session, or due no more. It is
-- counted when the batch was not filled, and bounded by it; NULL when it was.
--
-- Each has a second statement that ends a pass which did not fill its batch. It locks nothing.
-- left is how many are due still, after the pass; due is when the next one comes. A replica with a
-- filter walks over rows of others, but no further than 1,000 rows: then due is that of the last
-- of these, and the replica looks again.

-- fragment: lanes_with_leases ()
-- Hops over the lanes that have leases; mine: the ones that the pass is limited to. A lane belongs to one
-- namespace.
lanes AS (
    (SELECT lane FROM weft.live WHERE state = @running ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT (SELECT n.lane FROM weft.live n
             WHERE n.state = @running AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
      FROM lanes WHERE lanes.lane IS NOT NULL
), mine AS (
    SELECT lanes.lane FROM lanes
     WHERE @{of_lane lanes.lane}
)

-- fragment: leases_seen ()
-- How many leases are due, up to the batch.
(SELECT count(*)
   FROM (SELECT l.due
           FROM mine
          CROSS JOIN LATERAL (SELECT d.due FROM weft.live d
                               WHERE d.lane = mine.lane AND d.state = @running AND d.due <= :now
                                 AND @{of_partition d.id}
                               ORDER BY d.due LIMIT :batch) l
          LIMIT :batch) s)

-- fragment: due_taken (columns, due, time)
-- Locks due rows: see the head of this file.
SELECT @columns
  FROM weft.live l
 WHERE @due
   AND @{of_namespace l.queue}
   AND @{of_partition l.id}
   AND weft.at_rest(l.xmax)
 ORDER BY @time LIMIT :batch
   FOR UPDATE SKIP LOCKED

-- fragment: due_seen (due, time)
-- How many are due, up to the batch.
(SELECT count(*)
   FROM (SELECT @time
           FROM weft.live l
          WHERE @due
            AND @{of_namespace l.queue}
            AND @{of_partition l.id}
          ORDER BY @time LIMIT :batch) s)

-- fragment: suspensions_seen ()
-- The same for suspensions. Their lane and timeout do not change while their execution is suspended.
(SELECT count(*)
   FROM (SELECT s.due
           FROM weft.suspension s
          WHERE s.due IS NOT NULL AND s.due <= :now
            AND @{of_lane s.lane}
            AND @{of_partition s.id}
          ORDER BY s.due LIMIT :batch) s)

-- fragment: sight (count)
-- Counts the due rows of the snapshot when the batch was not filled.
sight AS (
    SELECT CASE WHEN (SELECT count(*) FROM taken) < :batch THEN @count END AS seen
)

-- fragment: next_due (due, time, later)
-- How many are due still, and when the next row is due that comes later.
SELECT @{due_seen @due | l.@time},
       coalesce((SELECT w.@time
                   FROM (SELECT l.id, l.queue, l.@time FROM weft.live l
                          WHERE @later
                          ORDER BY l.@time LIMIT 1000) w
                  WHERE @{of_namespace w.queue}
                    AND @{of_partition w.id}
                  ORDER BY w.@time LIMIT 1),
                (SELECT l.@time FROM weft.live l
                  WHERE @later
                  ORDER BY l.@time LIMIT 1 OFFSET 999))

-- name: due_leases (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
-- Leases by lane and time: hops over the lanes that have any, oldest leases of each first. A lane
-- belongs to one namespace.
WITH RECURSIVE @{lanes_with_leases}, taken AS MATERIALIZED (
    SELECT l.*
      FROM mine
     CROSS JOIN LATERAL (SELECT d.* FROM weft.live d
                          WHERE d.lane = mine.lane AND d.state = @running AND d.due <= :now
                            AND @{of_partition d.id}
                            AND weft.at_rest(d.xmax)
                          ORDER BY d.due LIMIT :batch
                            FOR UPDATE SKIP LOCKED) l
     LIMIT :batch
), @{sight @{leases_seen}}
SELECT @{live_columns t}, sight.seen
  FROM sight LEFT JOIN taken t ON true;

-- name: next_lease (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
-- due is also when the first draining row goes, which may be overdue: another replica has locked it.
WITH RECURSIVE @{lanes_with_leases}
SELECT @{leases_seen},
       least((SELECT min(coalesce((SELECT w.due
                                     FROM (SELECT d.id, d.due FROM weft.live d
                                            WHERE d.lane = mine.lane AND d.state = @running
                                              AND d.due > :now
                                            ORDER BY d.due LIMIT 1000) w
                                    WHERE @{of_partition w.id}
                                    ORDER BY w.due LIMIT 1),
                                  (SELECT d.due FROM weft.live d
                                    WHERE d.lane = mine.lane AND d.state = @running AND d.due > :now
                                    ORDER BY d.due LIMIT 1 OFFSET 999)))
                FROM mine),
             coalesce((SELECT w.until
                         FROM (SELECT d.id, d.queue, d.until FROM weft.draining d
                                ORDER BY d.until LIMIT 1000) w
                        WHERE @{of_namespace w.queue}
                          AND @{of_partition w.id}
                        ORDER BY w.until LIMIT 1),
                      (SELECT d.until FROM weft.draining d ORDER BY d.until LIMIT 1 OFFSET 999)));

-- name: due_attempts (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
WITH taken AS MATERIALIZED (
    @{due_taken @{live_columns l} | l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now
            AND l.state + 0 = @running | l.attempt_deadline}
), @{sight @{due_seen l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now
            AND l.state + 0 = @running | l.attempt_deadline}}
SELECT @{live_columns t}, sight.seen
  FROM sight LEFT JOIN taken t ON true;

-- name: next_attempt (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
@{next_due l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now
            AND l.state + 0 = @running | attempt_deadline
 | l.attempt_deadline IS NOT NULL AND l.attempt_deadline > :now
            AND l.state + 0 = @running};

-- name: due_deadlines (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
WITH taken AS MATERIALIZED (
    @{due_taken @{live_columns l} | l.deadline IS NOT NULL AND l.deadline <= :now | l.deadline}
), @{sight @{due_seen l.deadline IS NOT NULL AND l.deadline <= :now | l.deadline}}
SELECT @{live_columns t}, sight.seen
  FROM sight LEFT JOIN taken t ON true;

-- name: next_deadline (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
@{next_due l.deadline IS NOT NULL AND l.deadline <= :now | deadline
 | l.deadline IS NOT NULL AND l.deadline > :now};

-- name: promote_due (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, queue int, seen bigint?, gate text?
-- moves: delayed PROMOTE ready
WITH taken AS MATERIALIZED (
    @{due_taken l.id | l.state = @delayed AND l.due <= :now | l.due}
), promoted AS (
    UPDATE weft.live l SET state = @{ready_or_held l.gate}, due = NULL
      FROM taken t WHERE l.id BETWEEN t.id AND t.id
    RETURNING l.id, l.queue, l.gate
), @{sight @{due_seen l.state = @delayed AND l.due <= :now | l.due}}
SELECT p.id, p.queue, sight.seen, p.gate
  FROM sight LEFT JOIN promoted p ON true;

-- name: next_delayed (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
@{next_due l.state = @delayed AND l.due <= :now | due
 | l.state = @delayed AND l.due > :now};

-- name: due_suspensions (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
WITH taken AS MATERIALIZED (
    SELECT @{live_columns l}
      FROM weft.suspension s JOIN weft.live l ON l.id BETWEEN s.id AND s.id
     WHERE s.due IS NOT NULL AND s.due <= :now
       AND @{of_lane s.lane}
       AND @{of_partition s.id}
       AND l.state + 0 = @suspended
       AND weft.at_rest(l.xmax)
     ORDER BY s.due LIMIT :batch
       FOR UPDATE OF l SKIP LOCKED
), @{sight @{suspensions_seen}}
SELECT @{live_columns t}, sight.seen
  FROM sight LEFT JOIN taken t ON true;

-- name: next_suspension (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
SELECT @{suspensions_seen},
       coalesce((SELECT w.due
                   FROM (SELECT s.id, s.lane, s.due FROM weft.suspension s
                          WHERE s.due IS NOT NULL AND s.due > :now
                          ORDER BY s.due LIMIT 1000) w
                  WHERE @{of_lane w.lane}
                    AND @{of_partition w.id}
                  ORDER BY w.due LIMIT 1),
                (SELECT s.due FROM weft.suspension s
                  WHERE s.due IS NOT NULL AND s.due > :now
                  ORDER BY s.due LIMIT 1 OFFSET 999));
