-- Leases that others ended before their time: see sql/migrations/0007-draining.pg.sql.
--
-- That the count under a limit misses none of them: draining_add runs in the transaction that takes the
-- lease away (live_put or live_end), so both become visible with one commit. lane_running counts `live`
-- and `draining` in one statement, with one snapshot. So it sees an execution as running, or as draining,
-- never as neither. It may not see it at all only after the row is deleted: by the worker, which let go,
-- or by the pass, when the lease would have run out.
--
-- Locks: rows are deleted and marked by their key, in the order of ids where that waits, and with SKIP
-- LOCKED otherwise. No other row is locked in these transactions but by due_leases before them, and
-- no transaction that holds a row of this table waits for one of `live`.

-- name: draining_add (now bigint, id uuid[], epoch int[], queue int[], lane int[], worker int[], until bigint[], ended smallint[], gate text?[])
-- The rows of `live` are locked by this transaction, and a lease ends once: no other transaction writes this key.
INSERT INTO weft.draining (id, epoch, queue, lane, worker, until, ended, ended_at, gate)
SELECT i.id, i.epoch, i.queue, i.lane, i.worker, i.until, i.ended, :now, i.gate
  FROM unnest(:id, :epoch, :queue, :lane, :worker, :until, :ended, :gate)
    AS i(id, epoch, queue, lane, worker, until, ended, gate);

-- name: draining_drop (id uuid[], epoch int[])
-- returns: queue int, gate text?
-- The holder let go. The ids come sorted and the join runs in their order.
DELETE FROM weft.draining d
 USING unnest(:id, :epoch) AS i(id, epoch)
 WHERE d.id BETWEEN i.id AND i.id AND d.epoch = i.epoch
RETURNING d.queue, d.gate;

-- name: worker_leases_drop (worker int)
-- returns: queue int, gate text?
-- The worker said goodbye. Rare, as worker_leases: looks at every row. Locks in the order of ids.
WITH taken AS MATERIALIZED (
    SELECT d.id, d.epoch FROM weft.draining d
     WHERE d.worker = :worker ORDER BY d.id, d.epoch FOR UPDATE
)
DELETE FROM weft.draining d
 USING taken t
 WHERE d.id BETWEEN t.id AND t.id AND d.epoch = t.epoch
RETURNING d.queue, d.gate;

-- name: draining_expire (now bigint, batch int, ns int, first int, last int)
-- returns: queue int, gate text?
-- The leases would have run out by now. A part of the lease_expiry pass; on weft.at_rest see pass.sql.
WITH taken AS MATERIALIZED (
    SELECT d.id, d.epoch FROM weft.draining d
     WHERE d.until <= :now
       AND @{of_namespace d.queue}
       AND @{of_partition d.id}
       AND weft.at_rest(d.xmax)
     ORDER BY d.until LIMIT :batch
       FOR UPDATE SKIP LOCKED
)
DELETE FROM weft.draining d
 USING taken t
 WHERE d.id BETWEEN t.id AND t.id AND d.epoch = t.epoch
RETURNING d.queue, d.gate;

-- name: watch_look (worker int)
-- returns: found int
-- Whether an ended lease still has to be reported to its worker. Locks nothing.
SELECT 1 FROM weft.draining WHERE worker = :worker AND NOT told LIMIT 1;

-- name: watch_take (worker int, batch int)
-- returns: id uuid, epoch int, ended smallint
-- Marks leases as reported. A locked row is being removed, or marked by another watch.
WITH taken AS MATERIALIZED (
    SELECT d.id, d.epoch FROM weft.draining d
     WHERE d.worker = :worker AND NOT d.told LIMIT :batch
       FOR UPDATE SKIP LOCKED
)
UPDATE weft.draining d SET told = true
  FROM taken t
 WHERE d.id BETWEEN t.id AND t.id AND d.epoch = t.epoch
RETURNING d.id, d.epoch, d.ended;
