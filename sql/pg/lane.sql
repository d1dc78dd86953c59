-- Lane settings.

-- name: lane_settings ()
-- returns: lane namespace paused max_running weights
SELECT id, namespace, paused, max_running, weights FROM weft.lane ORDER BY id;

-- name: lane_list (namespace int)
-- returns: lane paused max_running retention_us weights
-- The lanes of a namespace that have settings or executions that are not over. Reads all of `live`,
-- as counts does: it has no index by lane over all states.
WITH used AS MATERIALIZED (SELECT DISTINCT lane FROM weft.live)
SELECT n.id, coalesce(l.paused, false), coalesce(l.max_running, 0), coalesce(l.retention_us, 0),
       l.weights
  FROM weft.name n LEFT JOIN weft.lane l ON l.id = n.id
 WHERE n.sort = 2 AND n.namespace = :namespace
   AND (l.id IS NOT NULL OR n.id IN (SELECT lane FROM used));

-- name: lane_get (lane int)
-- returns: paused max_running retention_us weights
SELECT paused, max_running, retention_us, weights FROM weft.lane WHERE id = :lane;

-- name: lane_remove (lane int)
-- returns: paused max_running retention_us weights
-- Waits for a claimer that holds the lane, as lane_put.
DELETE FROM weft.lane WHERE id = :lane RETURNING paused, max_running, retention_us, weights;

-- name: lane_put (lane int, namespace int, paused bool, max_running int, retention_us bigint, weights text)
-- Waits for a claimer that holds the lane, so that once this has committed nobody claims under the
-- settings it replaced.
INSERT INTO weft.lane (id, namespace, paused, max_running, retention_us, weights)
VALUES (:lane, :namespace, :paused, :max_running, :retention_us, :weights)
    ON CONFLICT (id) DO UPDATE SET paused = excluded.paused, max_running = excluded.max_running,
                                   retention_us = excluded.retention_us,
                                   weights = excluded.weights;
