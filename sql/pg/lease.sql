-- Renewals and progress of leases. Every write names the epoch and finds the row only
-- while it is running under that epoch.

-- name: renew (now bigint, id uuid[], epoch int[], lease bigint?[])
-- returns: id uuid, due bigint
-- moves: running RENEW running
-- The ids come sorted and the join runs in their order, so rows are locked in the order of ids.
-- `state + 0` keeps the planner away from the lease index: the key is the way in.
UPDATE weft.live l
   SET due = :now + coalesce(i.lease, p.lease_us)
  FROM unnest(:id, :epoch, :lease) AS i(id, epoch, lease), weft.policy p
 WHERE l.id BETWEEN i.id AND i.id AND l.epoch = i.epoch AND l.state + 0 = @running
   AND p.id BETWEEN l.policy AND l.policy
RETURNING l.id, l.due;

-- name: progress_put (now bigint, id uuid[], epoch int[], percent smallint[], note text?[])
-- Runs after renew in the same transaction, for the rows that renew found: they are locked.
INSERT INTO weft.progress (id, epoch, percent, note, at)
SELECT i.id, i.epoch, i.percent, i.note, :now
  FROM unnest(:id, :epoch, :percent, :note) AS i(id, epoch, percent, note)
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, percent = excluded.percent,
                                   note = excluded.note, at = excluded.at;

-- name: lease_facts (id uuid[], epoch int[])
-- returns: id uuid, epoch int, state smallint?, now_epoch int?, ended smallint?, answer smallint?, run_at bigint?, draining bool
-- Why a lease was not found: how it ended, what was answered then, and whether
-- its holder has yet to let go.
SELECT i.id, i.epoch, coalesce(l.state, o.state), coalesce(l.epoch, o.epoch),
       CASE WHEN o.held AND o.epoch = i.epoch THEN o.ended ELSE a.ended END,
       CASE WHEN o.held AND o.epoch = i.epoch THEN o.state ELSE a.answer END,
       a.run_at,
       EXISTS (SELECT 1 FROM weft.draining d WHERE d.id = i.id AND d.epoch = i.epoch OFFSET 0)
  FROM unnest(:id, :epoch) AS i(id, epoch)
  LEFT JOIN LATERAL (SELECT * FROM weft.live WHERE id = i.id OFFSET 0) l ON true
  LEFT JOIN LATERAL (SELECT * FROM weft.outcome WHERE id = i.id OFFSET 0) o ON true
  LEFT JOIN LATERAL (SELECT * FROM weft.attempt
                      WHERE id = i.id AND epoch = i.epoch AND held OFFSET 0) a ON true;
