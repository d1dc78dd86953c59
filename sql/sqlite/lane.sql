-- The twins of sql/pg/lane.sql.

-- name: lane_settings ()
-- returns: lane int, namespace int, paused bool, max_running int, weights text?, timed bool
-- timed: it has a window or a rate.
SELECT id, namespace, paused, max_running, weights, window_limit + rate_limit > 0 FROM lane ORDER BY id;

-- name: lane_list (namespace int)
-- returns: lane int, paused bool, max_running int, retention_us bigint, weights text?, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint
WITH used AS MATERIALIZED (SELECT DISTINCT lane FROM live)
SELECT n.id, coalesce(l.paused, false), coalesce(l.max_running, 0), coalesce(l.retention_us, 0),
       l.weights, coalesce(l.window_limit, 0), coalesce(l.window_us, 0), coalesce(l.rate_limit, 0),
       coalesce(l.rate_us, 0), coalesce(l.rate_burst, 0)
  FROM name n LEFT JOIN lane l ON l.id = n.id
 WHERE n.sort = @WEFT_NAME_LANE AND n.namespace = :namespace
   AND (l.id IS NOT NULL OR n.id IN (SELECT lane FROM used));

-- name: lane_own_settings (namespace int)
-- returns: lane int, paused bool, max_running int, retention_us bigint, weights text?, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint
SELECT id, paused, max_running, retention_us, weights, window_limit, window_us, rate_limit, rate_us, rate_burst
  FROM lane WHERE namespace = :namespace;

-- name: lane_used (lane int, namespace int)
-- returns: used bool
SELECT EXISTS (SELECT 1 FROM live WHERE state = @running AND lane = :lane)
    OR EXISTS (SELECT 1 FROM live WHERE state = @delayed AND lane = :lane)
    OR EXISTS (SELECT 1 FROM queue q CROSS JOIN live l ON l.queue = q.id
                WHERE q.lane = :lane AND l.state = @ready)
    OR EXISTS (SELECT 1 FROM flow f CROSS JOIN live l ON l.flow = f.num
                WHERE f.namespace = :namespace AND f.finished IS NULL AND l.state = @blocked
                  AND l.lane = :lane);

-- name: lane_get (lane int)
-- returns: paused bool, max_running int, retention_us bigint, weights text?, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint, full_ns bigint?
SELECT paused, max_running, retention_us, weights, window_limit, window_us, rate_limit, rate_us, rate_burst,
       full_ns
  FROM lane WHERE id = :lane;

-- name: lane_remove (lane int)
-- returns: paused bool, max_running int, retention_us bigint, weights text?, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint
DELETE FROM lane_start WHERE lane = :lane;
DELETE FROM lane WHERE id = :lane
RETURNING paused, max_running, retention_us, weights, window_limit, window_us, rate_limit, rate_us, rate_burst;

-- name: lane_put (lane int, namespace int, paused bool, max_running int, retention_us bigint, weights text?, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint, oldest int)
UPDATE schema SET oldest_binary = :oldest WHERE oldest_binary < :oldest;
DELETE FROM lane_start WHERE lane = :lane AND :window_limit = 0;
INSERT INTO lane (id, namespace, paused, max_running, retention_us, weights, window_limit, window_us, rate_limit,
                  rate_us, rate_burst)
VALUES (:lane, :namespace, :paused, :max_running, :retention_us, :weights, :window_limit, :window_us, :rate_limit,
        :rate_us, :rate_burst)
    ON CONFLICT (id) DO UPDATE SET paused = excluded.paused, max_running = excluded.max_running,
                                   retention_us = excluded.retention_us, weights = excluded.weights,
                                   window_limit = excluded.window_limit, window_us = excluded.window_us,
                                   rate_limit = excluded.rate_limit, rate_us = excluded.rate_us,
                                   rate_burst = excluded.rate_burst;
