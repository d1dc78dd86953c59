-- The twins of sql/pg/draining.sql. The write lock of the file stands for every lock there.

-- name: draining_add (now bigint, id uuid[], epoch int[], queue int[], lane int[], worker int[], until bigint[], ended smallint[], gate text?[])
INSERT INTO draining (id, epoch, queue, lane, worker, until, ended, ended_at, gate)
VALUES (:id, :epoch, :queue, :lane, :worker, :until, :ended, :now, :gate);

-- name: draining_drop (id uuid[], epoch int[])
-- returns: queue int, gate text?
DELETE FROM draining WHERE id = :id AND epoch = :epoch RETURNING queue, gate;

-- name: worker_leases_drop (worker int)
-- returns: queue int, gate text?
DELETE FROM draining WHERE worker = :worker RETURNING queue, gate;

-- name: draining_expire (now bigint, batch int, ns int, first int, last int)
-- returns: queue int, gate text?
DELETE FROM draining
 WHERE (id, epoch) IN (SELECT d.id, d.epoch FROM draining d
                        WHERE d.until <= :now
                          AND @{of_namespace d.queue}
                          AND @{of_partition d.id}
                        ORDER BY d.until LIMIT :batch)
RETURNING queue, gate;

-- name: watch_look (worker int)
-- returns: found int
SELECT 1 FROM draining WHERE worker = :worker AND NOT told LIMIT 1;

-- name: watch_take (worker int, batch int)
-- returns: id uuid, epoch int, ended smallint
UPDATE draining SET told = 1
 WHERE (id, epoch) IN (SELECT d.id, d.epoch FROM draining d
                        WHERE d.worker = :worker AND NOT d.told LIMIT :batch)
RETURNING id, epoch, ended;
