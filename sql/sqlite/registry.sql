-- The twins of sql/pg/registry.sql. The write lock of the file is held: the rows that are counted are removed.

-- name: worker_expire (before bigint, namespace int?, batch int)
-- returns: removed bigint, free bigint, found bigint
-- The list of workers with a lease is made when the first worker that is old enough needs it.
SELECT min(:batch, count(*) - count(h.held)), count(*) - count(h.held), count(*)
  FROM (SELECT CASE WHEN w.name IN (SELECT l.worker FROM live l
                                     WHERE l.state = @running AND l.worker IS NOT NULL)
                    THEN 1 END AS held
          FROM worker w
         WHERE w.seen <= :before AND (:namespace IS NULL OR w.namespace = :namespace)) h;
DELETE FROM worker
 WHERE name IN (SELECT w.name FROM worker w
                 WHERE w.seen <= :before AND (:namespace IS NULL OR w.namespace = :namespace)
                   AND w.name NOT IN (SELECT l.worker FROM live l
                                       WHERE l.state = @running AND l.worker IS NOT NULL)
                 ORDER BY w.name LIMIT :batch);

-- name: replica_expire (before bigint, batch int)
-- returns: removed bigint
SELECT min(:batch, count(*)) FROM replica WHERE seen <= :before;
DELETE FROM replica
 WHERE id IN (SELECT r.id FROM replica r WHERE r.seen <= :before ORDER BY r.id LIMIT :batch);
