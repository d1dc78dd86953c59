-- The poll in parts: a function for each thing it looks at, so that a later migration adds a part without
-- stating the others again. The statement `poll` (sql/pg/server.sql) puts the parts together, and leaves
-- poll_work out while an open snapshot makes it slow. The rows, and what their columns mean, are those of 0020.
-- Servers of an older version go on with their own functions.
--
-- Each part has the SET clauses of the whole: outside of a transaction only these pin the plans.

-- what 0: queues (a) with ready work, those behind `after`, at most `most`, in their order;
-- 1: when the first lease runs out or the first draining row goes (a), the first attempt deadline (b), the
-- first deadline (c), the first delayed execution (d).
CREATE FUNCTION weft.poll_work(after int, most int, OUT what int, OUT a bigint, OUT b bigint, OUT c bigint,
                               OUT d bigint, OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
    WITH RECURSIVE hop AS (
        (SELECT queue FROM weft.live WHERE state = @ready AND queue > after ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (SELECT l.queue FROM weft.live l
                 WHERE l.state = @ready AND l.queue > hop.queue ORDER BY l.queue LIMIT 1)
          FROM hop WHERE hop.queue IS NOT NULL
    ), lanes AS (
        (SELECT lane FROM weft.live WHERE state = @running ORDER BY lane LIMIT 1)
        UNION ALL
        SELECT (SELECT n.lane FROM weft.live n
                 WHERE n.state = @running AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
          FROM lanes WHERE lanes.lane IS NOT NULL
    )
    (SELECT 0, hop.queue::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM hop WHERE hop.queue IS NOT NULL LIMIT most)
    UNION ALL
    SELECT 1,
           least((SELECT min(first.due)
                    FROM lanes CROSS JOIN LATERAL (SELECT l.due FROM weft.live l
                                                    WHERE l.lane = lanes.lane AND l.state = @running
                                                    ORDER BY l.due LIMIT 1) first),
                 (SELECT until FROM weft.draining ORDER BY until LIMIT 1)),
           (SELECT attempt_deadline FROM weft.live WHERE attempt_deadline IS NOT NULL
             ORDER BY attempt_deadline LIMIT 1),
           (SELECT deadline FROM weft.live WHERE deadline IS NOT NULL ORDER BY deadline LIMIT 1),
           (SELECT due FROM weft.live WHERE state = @delayed ORDER BY due LIMIT 1),
           NULL
$function$;

-- what 2: whether the inbox has rows (a), and three numbers that name the set of tokens;
-- 3: a lane with settings (a), its namespace (b), whether it is paused (c), its limit (d), its weights.
CREATE FUNCTION weft.poll_settings(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint,
                                   OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
    SELECT 2, EXISTS (SELECT 1 FROM weft.inbox)::int::bigint, max(id)::bigint, sum(id)::bigint, count(*),
           NULL::text
      FROM weft.token
    UNION ALL
    SELECT 3, id, namespace, paused::int, max_running, weights FROM weft.lane
$function$;

-- what 4: the oldest completion (a), the oldest group to dispatch (b), the oldest group that waits (c);
-- 5: whether a flow has members to cancel (a), when the first flow was begun that is not whole (b).
CREATE FUNCTION weft.poll_flows(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint,
                                OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
    SELECT 4,
           (SELECT at FROM weft.completion ORDER BY seq LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = false AND at >= 0 ORDER BY at LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = true AND at >= 0 ORDER BY at LIMIT 1),
           NULL::bigint, NULL::text
    UNION ALL
    SELECT 5, EXISTS (SELECT 1 FROM weft.flow WHERE backlog)::int,
           (SELECT created FROM weft.flow WHERE state < 0 ORDER BY id LIMIT 1), NULL, NULL, NULL
$function$;

-- what 6: a worker (a) that has not been told of all its leases that others ended. A worker that never asks
-- stays on this list until its rows go, so the list is bounded.
CREATE FUNCTION weft.poll_workers(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint,
                                  OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
    WITH RECURSIVE untold AS (
        (SELECT worker FROM weft.draining WHERE NOT told ORDER BY worker LIMIT 1)
        UNION ALL
        SELECT (SELECT d.worker FROM weft.draining d
                 WHERE NOT d.told AND d.worker > untold.worker ORDER BY d.worker LIMIT 1)
          FROM untold WHERE untold.worker IS NOT NULL
    )
    SELECT 6, worker::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM untold WHERE worker IS NOT NULL LIMIT 1000
$function$;
