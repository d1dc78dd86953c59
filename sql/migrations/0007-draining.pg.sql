-- Leases that were ended by another party than their holder while their time had not run out: by cancel,
-- by a deadline, by an attempt timeout, by revoke. The worker may still be at it, so the execution keeps its
-- slot in a lane with a limit until the worker lets go or the lease would have run out, and the worker has
-- to be told. Nothing refers to these rows and they refer to nothing: a row outlives the removal of its
-- execution, because the handler does, and none is there for long after `until`.
CREATE TABLE weft.draining (
    id       uuid NOT NULL,
    epoch    int NOT NULL,
    queue    int NOT NULL,
    lane     int NOT NULL,      -- that of the queue
    worker   int NOT NULL,      -- who held the lease
    until    bigint NOT NULL,   -- when the lease would have run out
    ended    smallint NOT NULL, -- how it was ended, as enum weft_ended
    ended_at bigint NOT NULL,
    told     bool NOT NULL DEFAULT false, -- a watch of the worker was given it
    PRIMARY KEY (id, epoch)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
-- For the count under a limit; the predicate is there for the reason given in 0004.
CREATE INDEX draining_lane ON weft.draining (lane, until) WHERE lane IS NOT NULL;
CREATE INDEX draining_until ON weft.draining (until);
CREATE INDEX draining_untold ON weft.draining (worker) WHERE NOT told;

-- The look around of 0004, and
--   what 1: the first time is also that of the first draining row whose time has run out;
--   6: a worker (a) that has not been told of all its leases that others ended. A worker that never asks
--   stays on this list until its rows go, so it is bounded.
CREATE OR REPLACE FUNCTION weft.poll(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint,
                          OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
    WITH RECURSIVE hop AS (
        (SELECT queue FROM weft.live WHERE state = @ready ORDER BY queue LIMIT 1)
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
    SELECT 0, hop.queue::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM hop WHERE hop.queue IS NOT NULL
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
