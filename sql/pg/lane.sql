-- Lane settings.

-- name: lane_settings ()
-- returns: lane int, namespace int, paused bool, max_running int, weights text?, timed bool
-- timed: it has a window or a rate.
SELECT id, namespace, paused, max_running, weights, window_limit + rate_limit > 0 FROM weft.lane ORDER BY id;

-- name: lane_list (namespace int)
-- returns: lane int, paused bool, max_running int, retention_us bigint, weights text?, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint
-- The lanes of a namespace that have settings or executions that are not over. Ready and running
-- ones are found by hopping over indexes. For the other states there is none by lane, so `live` is
-- read for these from end to end, as counts does for all.
WITH RECURSIVE hop AS (
    (SELECT queue FROM weft.live WHERE state = @ready ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT l.queue FROM weft.live l
             WHERE l.state = @ready AND l.queue > hop.queue ORDER BY l.queue LIMIT 1)
      FROM hop WHERE hop.queue IS NOT NULL
), leased AS (
    (SELECT lane FROM weft.live WHERE state = @running ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT (SELECT n.lane FROM weft.live n
             WHERE n.state = @running AND n.lane > leased.lane ORDER BY n.lane LIMIT 1)
      FROM leased WHERE leased.lane IS NOT NULL
), used AS MATERIALIZED (
    SELECT q.lane FROM hop CROSS JOIN LATERAL (SELECT lane FROM weft.queue
                                                WHERE id = hop.queue OFFSET 0) q
    UNION
    SELECT lane FROM leased WHERE lane IS NOT NULL
    UNION
    SELECT lane FROM weft.live WHERE state <> @ready AND state <> @running
)
SELECT n.id, coalesce(l.paused, false), coalesce(l.max_running, 0), coalesce(l.retention_us, 0),
       l.weights, coalesce(l.window_limit, 0), coalesce(l.window_us, 0), coalesce(l.rate_limit, 0),
       coalesce(l.rate_us, 0), coalesce(l.rate_burst, 0)
  FROM weft.name n LEFT JOIN weft.lane l ON l.id = n.id
 WHERE n.sort = @WEFT_NAME_LANE AND n.namespace = :namespace
   AND (l.id IS NOT NULL OR n.id IN (SELECT lane FROM used));

-- name: lane_own_settings (namespace int)
-- returns: lane int, paused bool, max_running int, retention_us bigint, weights text?, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint
SELECT id, paused, max_running, retention_us, weights, window_limit, window_us, rate_limit, rate_us, rate_burst
  FROM weft.lane WHERE namespace = :namespace;

-- name: lane_used (lane int, namespace int)
-- returns: used bool
-- Whether a lane has executions that are not over, through the indexes of their states.
SELECT EXISTS (SELECT 1 FROM weft.live WHERE state = @running AND lane = :lane)
    OR EXISTS (SELECT 1 FROM weft.live WHERE state BETWEEN @delayed AND @delayed AND lane = :lane)
    OR EXISTS (SELECT 1 FROM (SELECT id FROM weft.queue WHERE lane = :lane OFFSET 0) q
                CROSS JOIN LATERAL (SELECT 1 FROM weft.live WHERE state = @ready AND queue = q.id
                                     LIMIT 1) l)
    OR EXISTS (SELECT 1 FROM (SELECT id FROM weft.flow
                               WHERE namespace = :namespace AND finished IS NULL OFFSET 0) f
                CROSS JOIN LATERAL (SELECT 1 FROM weft.live
                                     WHERE flow = f.id AND state = @blocked AND lane = :lane LIMIT 1) l);

-- name: lane_get (lane int)
-- returns: paused bool, max_running int, retention_us bigint, weights text?, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint, full_ns bigint?
SELECT paused, max_running, retention_us, weights, window_limit, window_us, rate_limit, rate_us, rate_burst,
       full_ns
  FROM weft.lane WHERE id = :lane;

-- name: lane_remove (lane int)
-- returns: paused bool, max_running int, retention_us bigint, weights text?, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint
-- Waits for a claimer that holds the lane, as lane_put.
WITH forgotten AS (
    DELETE FROM weft.lane_start WHERE lane = :lane
)
DELETE FROM weft.lane WHERE id = :lane
RETURNING paused, max_running, retention_us, weights, window_limit, window_us, rate_limit, rate_us, rate_burst;

-- name: lane_put (lane int, namespace int, paused bool, max_running int, retention_us bigint, weights text?, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint, oldest int)
-- Waits for a claimer that holds the lane, so that once this has committed no claimer claims under the
-- settings it replaced. oldest: binaries that know fewer migrations must not go on (0029); 0: they may.
-- A claim that is waited for may leave a row of lane_start behind; the next window counts it and removes it.
WITH raised AS (
    UPDATE weft.schema SET oldest_binary = :oldest WHERE oldest_binary < :oldest
), forgotten AS (
    DELETE FROM weft.lane_start WHERE lane = :lane AND :window_limit = 0
)
INSERT INTO weft.lane (id, namespace, paused, max_running, retention_us, weights, window_limit, window_us, rate_limit,
                       rate_us, rate_burst)
VALUES (:lane, :namespace, :paused, :max_running, :retention_us, :weights, :window_limit, :window_us, :rate_limit,
        :rate_us, :rate_burst)
    ON CONFLICT (id) DO UPDATE SET paused = excluded.paused, max_running = excluded.max_running,
                                   retention_us = excluded.retention_us, weights = excluded.weights,
                                   window_limit = excluded.window_limit, window_us = excluded.window_us,
                                   rate_limit = excluded.rate_limit, rate_us = excluded.rate_us,
                                   rate_burst = excluded.rate_burst;
