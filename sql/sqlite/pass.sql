-- The twins of sql/pg/pass.sql. There is one writer at a time, so a pass takes every row that it sees: seen
-- is NULL. weft_partition() is the driver's.

-- fragment: due_now (due, time)
SELECT @{live_columns}, NULL
  FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE @due
   AND @{of_namespace l.queue}
   AND @{of_partition e.id}
 ORDER BY @time LIMIT :batch

-- fragment: next_due (due, time, later)
SELECT (SELECT count(*)
          FROM (SELECT l.@time FROM live l
                 WHERE @due
                   AND @{of_namespace l.queue}
                   AND @{of_partition_num l.num}
                 ORDER BY l.@time LIMIT :batch)),
       coalesce((SELECT w.@time
                   FROM (SELECT l.num, l.queue, l.@time FROM live l
                          WHERE @later
                          ORDER BY l.@time LIMIT 1000) w
                  WHERE @{of_namespace w.queue}
                    AND @{of_partition_num w.num}
                  LIMIT 1),
                (SELECT l.@time FROM live l
                  WHERE @later
                  ORDER BY l.@time LIMIT 1 OFFSET 999))

-- name: due_leases (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
WITH RECURSIVE @{lanes_with_leases}
SELECT @{live_columns}, NULL
  FROM lanes CROSS JOIN live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.lane = lanes.lane AND l.state = @running AND l.due <= :now
   AND @{of_lane lanes.lane}
   AND @{of_partition e.id}
 LIMIT :batch;

-- name: next_lease (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
WITH RECURSIVE @{lanes_with_leases}
SELECT (SELECT count(*)
          FROM (SELECT l.due FROM lanes CROSS JOIN live l
                 WHERE l.lane = lanes.lane AND l.state = @running AND l.due <= :now
                   AND @{of_lane lanes.lane}
                   AND @{of_partition_num l.num}
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
               AND @{of_lane lanes.lane}
            UNION ALL
            SELECT coalesce((SELECT w.until
                               FROM (SELECT d.id, d.queue, d.until FROM draining d
                                      ORDER BY d.until LIMIT 1000) w
                              WHERE @{of_namespace w.queue}
                                AND @{of_partition w.id}
                              LIMIT 1),
                            (SELECT d.until FROM draining d ORDER BY d.until LIMIT 1 OFFSET 999))));

-- name: due_attempts (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
@{due_now l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now AND +l.state = @running | l.attempt_deadline};

-- name: next_attempt (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
@{next_due l.attempt_deadline IS NOT NULL AND l.attempt_deadline <= :now AND +l.state = @running | attempt_deadline
 | l.attempt_deadline IS NOT NULL AND l.attempt_deadline > :now AND +l.state = @running};

-- name: due_deadlines (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
@{due_now l.deadline IS NOT NULL AND l.deadline <= :now | l.deadline};

-- name: next_deadline (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
@{next_due l.deadline IS NOT NULL AND l.deadline <= :now | deadline
 | l.deadline IS NOT NULL AND l.deadline > :now};

-- name: promote_due (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, queue int, seen bigint?, gate text?
-- moves: delayed PROMOTE ready
UPDATE live SET state = @{ready_or_held gate}, due = NULL
 WHERE num IN (SELECT l.num FROM live l
                WHERE l.state = @delayed AND l.due <= :now
                  AND @{of_namespace l.queue}
                  AND @{of_partition_num l.num}
                ORDER BY l.due LIMIT :batch)
RETURNING (SELECT e.id FROM execution e WHERE e.num = live.num), queue, NULL, gate;

-- name: next_delayed (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
@{next_due l.state = @delayed AND l.due <= :now | due
 | l.state = @delayed AND l.due > :now};

-- name: due_suspensions (now bigint, batch int, ns int, first int, last int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?, seen bigint?
SELECT @{live_columns}, NULL
  FROM suspension s CROSS JOIN execution e ON e.id = s.id CROSS JOIN live l ON l.num = e.num
 WHERE s.due IS NOT NULL AND s.due <= :now
   AND @{of_lane s.lane}
   AND @{of_partition s.id}
   AND +l.state = @suspended
 ORDER BY s.due LIMIT :batch;

-- name: next_suspension (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
SELECT (SELECT count(*)
          FROM (SELECT s.due FROM suspension s
                 WHERE s.due IS NOT NULL AND s.due <= :now
                   AND @{of_lane s.lane}
                   AND @{of_partition s.id}
                 ORDER BY s.due LIMIT :batch)),
       coalesce((SELECT w.due
                   FROM (SELECT s.id, s.lane, s.due FROM suspension s
                          WHERE s.due IS NOT NULL AND s.due > :now
                          ORDER BY s.due LIMIT 1000) w
                  WHERE @{of_lane w.lane}
                    AND @{of_partition w.id}
                  LIMIT 1),
                (SELECT s.due FROM suspension s
                  WHERE s.due IS NOT NULL AND s.due > :now
                  ORDER BY s.due LIMIT 1 OFFSET 999));
