-- What a server needs beside the work itself: who may talk to it, which workers it heard of, how
-- many executions ended in each minute, and the look around it takes every second.

-- The hash is the SHA-256 of the secret. Ids are never given twice: a token of an old id must not
-- come to life again.
CREATE TABLE weft.token (
    id        int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name      text NOT NULL,
    namespace text,
    scopes    int NOT NULL,
    hash      bytea NOT NULL,
    created   bigint NOT NULL,
    expires   bigint
);

-- Written in batches by servers, never by a claim. name is the interned one.
CREATE TABLE weft.worker (
    name         int PRIMARY KEY,
    namespace    int NOT NULL,
    lanes        text NOT NULL,
    capabilities text NOT NULL,
    seen         bigint NOT NULL
) WITH (fillfactor = 50);

-- How many executions of a lane ended in a minute (of the store's clock, since 1970).
CREATE TABLE weft.tally (
    lane      int NOT NULL,
    minute    bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed    bigint NOT NULL,
    PRIMARY KEY (lane, minute)
) WITH (fillfactor = 50);

-- All a replica must know of what others did. A function, because it runs without a transaction
-- around it, so nothing else could pin the plans: see the pins of the driver, and queues_ready and
-- next_due, whose texts these are.
--   what 0: a claimable queue (a); 1: when each pass has work (lease, attempt, deadline, delayed);
--   2: the inbox holds something (a), and the highest, the sum and the number of token ids;
--   3: a lane's settings (lane, namespace, paused, max_running, weights)
CREATE FUNCTION weft.poll(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint,
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
    )
    SELECT 0, hop.queue::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM hop WHERE hop.queue IS NOT NULL
    UNION ALL
    SELECT 1,
           (SELECT min(first.due)
              FROM lanes CROSS JOIN LATERAL (SELECT l.due FROM weft.live l
                                              WHERE l.lane = lanes.lane AND l.state = @running
                                              ORDER BY l.due LIMIT 1) first),
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
$function$;
