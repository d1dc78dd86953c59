-- The look around of 0009; with whole = false it leaves out what looks for the first living rows: what 0 and 1.
-- While a snapshot is open these walk over all rows that have gone since, so they are looked for less often then.
-- Servers of an older version go on with their own functions.
CREATE FUNCTION weft.poll(after int, most int, whole bool, OUT what int, OUT a bigint, OUT b bigint,
                          OUT c bigint, OUT d bigint, OUT text text)
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
    ), untold AS (
        (SELECT worker FROM weft.draining WHERE NOT told ORDER BY worker LIMIT 1)
        UNION ALL
        SELECT (SELECT d.worker FROM weft.draining d
                 WHERE NOT d.told AND d.worker > untold.worker ORDER BY d.worker LIMIT 1)
          FROM untold WHERE untold.worker IS NOT NULL
    )
    (SELECT 0, hop.queue::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM hop WHERE whole AND hop.queue IS NOT NULL LIMIT most)
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
     WHERE whole
    UNION ALL
    SELECT 2, EXISTS (SELECT 1 FROM weft.inbox)::int, max(id), sum(id), count(*), NULL
      FROM weft.token
    UNION ALL
    SELECT 3, id, namespace, paused::int, max_running, weights FROM weft.lane
    UNION ALL
    SELECT 4,
           (SELECT at FROM weft.completion ORDER BY seq LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = false AND at >= 0 ORDER BY at LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = true AND at >= 0 ORDER BY at LIMIT 1),
           NULL, NULL
    UNION ALL
    SELECT 5, EXISTS (SELECT 1 FROM weft.flow WHERE backlog)::int,
           (SELECT created FROM weft.flow WHERE state < 0 ORDER BY id LIMIT 1), NULL, NULL, NULL
    UNION ALL
    (SELECT 6, worker, NULL, NULL, NULL, NULL FROM untold WHERE worker IS NOT NULL LIMIT 1000)
$function$;
