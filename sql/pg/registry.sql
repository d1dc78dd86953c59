-- Removal of workers and replicas that were not heard of for long.

-- name: worker_expire (before bigint, namespace int?, batch int)
-- returns: removed bigint, free bigint, found bigint
-- Workers last heard of at `before` or earlier that hold no lease. The holders are read once for
-- all, and only when a worker is that old: that reads every lease. A report of a worker since
-- the snapshot is seen, because the time stands beside FOR UPDATE. Rows that another replica is
-- just writing or removing are skipped.
WITH old AS MATERIALIZED (
    SELECT w.name FROM weft.worker w
     WHERE w.seen <= :before AND (:namespace IS NULL OR w.namespace = :namespace)
), holding AS MATERIALIZED (
    SELECT DISTINCT l.worker FROM weft.live l
     WHERE l.state = @running AND l.worker IS NOT NULL AND EXISTS (SELECT 1 FROM old)
), gone AS MATERIALIZED (
    SELECT w.name FROM weft.worker w
     WHERE w.seen <= :before AND (:namespace IS NULL OR w.namespace = :namespace)
       AND w.name NOT IN (SELECT h.worker FROM holding h)
     ORDER BY w.name LIMIT :batch
       FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM weft.worker w USING gone g WHERE w.name BETWEEN g.name AND g.name
    RETURNING w.name
)
SELECT (SELECT count(*) FROM removed),
       (SELECT count(*) FROM old o WHERE o.name NOT IN (SELECT h.worker FROM holding h)),
       (SELECT count(*) FROM old);

-- name: replica_expire (before bigint, batch int)
-- returns: removed bigint
-- A replica that comes back after that long adds its row again with its next heartbeat.
WITH gone AS MATERIALIZED (
    SELECT r.id FROM weft.replica r WHERE r.seen <= :before
     ORDER BY r.id LIMIT :batch
       FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM weft.replica r USING gone g WHERE r.id BETWEEN g.id AND g.id
    RETURNING r.id
)
SELECT count(*) FROM removed;
