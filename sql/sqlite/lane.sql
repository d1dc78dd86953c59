-- The twins of sql/pg/lane.sql.

-- name: lane_settings ()
-- returns: lane int, namespace int, paused bool, max_running int, weights text?
SELECT id, namespace, paused, max_running, weights FROM lane ORDER BY id;

-- name: lane_list (namespace int)
-- returns: lane int, paused bool, max_running int, retention_us bigint, weights text?
WITH used AS MATERIALIZED (SELECT DISTINCT lane FROM live)
SELECT n.id, coalesce(l.paused, false), coalesce(l.max_running, 0), coalesce(l.retention_us, 0),
       l.weights
  FROM name n LEFT JOIN lane l ON l.id = n.id
 WHERE n.sort = @WEFT_NAME_LANE AND n.namespace = :namespace
   AND (l.id IS NOT NULL OR n.id IN (SELECT lane FROM used));

-- name: lane_own_settings (namespace int)
-- returns: lane int, paused bool, max_running int, retention_us bigint, weights text?
SELECT id, paused, max_running, retention_us, weights FROM lane WHERE namespace = :namespace;

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
-- returns: paused bool, max_running int, retention_us bigint, weights text?
SELECT paused, max_running, retention_us, weights FROM lane WHERE id = :lane;

-- name: lane_remove (lane int)
-- returns: paused bool, max_running int, retention_us bigint, weights text?
DELETE FROM lane WHERE id = :lane RETURNING paused, max_running, retention_us, weights;

-- name: lane_put (lane int, namespace int, paused bool, max_running int, retention_us bigint, weights text?)
INSERT INTO lane (id, namespace, paused, max_running, retention_us, weights)
VALUES (:lane, :namespace, :paused, :max_running, :retention_us, :weights)
    ON CONFLICT (id) DO UPDATE SET paused = excluded.paused, max_running = excluded.max_running,
                                   retention_us = excluded.retention_us,
                                   weights = excluded.weights;
