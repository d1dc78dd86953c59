-- The twins of sql/pg/lease.sql.

-- name: renew (now bigint, id uuid[], epoch int[], lease bigint?[])
-- returns: id uuid, due bigint
-- moves: running RENEW running
UPDATE live
   SET due = :now + coalesce(:lease, (SELECT lease_us FROM policy p WHERE p.id = policy))
 WHERE num = (SELECT num FROM execution WHERE id = :id) AND epoch = :epoch AND +state = @running
RETURNING :id, due;

-- name: progress_put (now bigint, id uuid[], epoch int[], percent smallint[], note text?[])
INSERT INTO progress (id, epoch, percent, note, at) VALUES (:id, :epoch, :percent, :note, :now)
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, percent = excluded.percent,
                                   note = excluded.note, at = excluded.at;
UPDATE live SET has = has | @WEFT_HAS_PROGRESS
 WHERE num = (SELECT num FROM execution WHERE id = :id) AND has & @WEFT_HAS_PROGRESS = 0;

-- name: lease_facts (id uuid[], epoch int[])
-- returns: id uuid, epoch int, state smallint?, now_epoch int?, ended smallint?, answer smallint?, run_at bigint?, draining bool
SELECT i.id, i.epoch, coalesce(l.state, o.state), coalesce(l.epoch, o.epoch),
       CASE WHEN o.held AND o.epoch = i.epoch THEN o.ended ELSE a.ended END,
       CASE WHEN o.held AND o.epoch = i.epoch THEN o.state ELSE a.answer END,
       a.run_at,
       EXISTS (SELECT 1 FROM draining d WHERE d.id = i.id AND d.epoch = i.epoch)
  FROM (SELECT :id AS id, :epoch AS epoch) i
  LEFT JOIN execution e ON e.id = i.id
  LEFT JOIN live l ON l.num = e.num
  LEFT JOIN outcome o ON o.num = e.num
  LEFT JOIN attempt a ON a.id = i.id AND a.epoch = i.epoch AND a.held;
