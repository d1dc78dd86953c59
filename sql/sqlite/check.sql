-- The twins of sql/pg/check.sql. A row without an execution has no id to tell.

-- name: check_one_place ()
-- returns: problem id
-- Every execution is in exactly one of `live` and `outcome`, and nothing else refers to no execution.
SELECT * FROM (SELECT 'in live and in outcome', e.id FROM execution e
   JOIN live l ON l.num = e.num JOIN outcome o ON o.num = e.num LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'in neither live nor outcome', e.id FROM execution e
  WHERE NOT EXISTS (SELECT 1 FROM live l WHERE l.num = e.num)
    AND NOT EXISTS (SELECT 1 FROM outcome o WHERE o.num = e.num) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'live row without execution', NULL FROM live l
  WHERE NOT EXISTS (SELECT 1 FROM execution e WHERE e.num = l.num) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'outcome without execution', NULL FROM outcome o
  WHERE NOT EXISTS (SELECT 1 FROM execution e WHERE e.num = o.num) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'attempt without execution', a.id FROM attempt a
  WHERE NOT EXISTS (SELECT 1 FROM execution e WHERE e.id = a.id) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'progress without execution', p.id FROM progress p
  WHERE NOT EXISTS (SELECT 1 FROM execution e WHERE e.id = p.id) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'key without its execution', k.id FROM key k
  WHERE NOT EXISTS (SELECT 1 FROM execution e WHERE e.id = k.id AND e.key = k.key) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'execution without its key', e.id FROM execution e JOIN queue q ON q.id = e.queue
  WHERE e.key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM key k
                     WHERE k.namespace = q.namespace AND k.key = e.key AND k.id = e.id) LIMIT 10);

-- name: check_rows ()
-- returns: problem id
-- Every row is whole: what its state needs is there, what it must not have is not.
WITH l AS (SELECT e.id, live.* FROM live JOIN execution e ON e.num = live.num),
     o AS (SELECT e.id, outcome.* FROM outcome JOIN execution e ON e.num = outcome.num)
SELECT * FROM (SELECT 'state is not a living one', id FROM l
  WHERE state NOT IN (@ready, @delayed, @blocked, @running, @suspended, @held) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'outcome state is a living one', id FROM o
  WHERE state NOT IN (@succeeded, @failed, @cancelled, @expired, @skipped) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'running without a lease', id FROM l
  WHERE state = @running AND (worker IS NULL OR due IS NULL OR claimed IS NULL OR started IS NULL
                              OR epoch < 1) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'a lease without running', id FROM l
  WHERE state <> @running
    AND (worker IS NOT NULL OR claimed IS NOT NULL OR attempt_deadline IS NOT NULL) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'ready but due', id FROM l WHERE state = @ready AND due IS NOT NULL LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'delayed without a time', id FROM l WHERE state = @delayed AND due IS NULL LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'lane is not that of its queue', l.id FROM l JOIN queue q ON q.id = l.queue
  WHERE q.lane <> l.lane LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'attempt of an epoch that was never given', a.id
   FROM attempt a CROSS JOIN execution e ON e.id = a.id
   LEFT JOIN live l ON l.num = e.num LEFT JOIN outcome o ON o.num = e.num
  WHERE a.epoch > coalesce(l.epoch, o.epoch) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'progress of an epoch that was never given', p.id
   FROM progress p CROSS JOIN execution e ON e.id = p.id
   LEFT JOIN live l ON l.num = e.num LEFT JOIN outcome o ON o.num = e.num
  WHERE p.epoch > coalesce(l.epoch, o.epoch) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'running under an epoch that has ended', l.id FROM l
  WHERE l.state = @running
    AND EXISTS (SELECT 1 FROM attempt a WHERE a.id = l.id AND a.epoch = l.epoch) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'two ends of one lease', a.id FROM attempt a WHERE a.held
  GROUP BY a.id, a.epoch HAVING count(*) > 1 LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'two ends of one lease', a.id
   FROM attempt a CROSS JOIN execution e ON e.id = a.id CROSS JOIN outcome o ON o.num = e.num
  WHERE a.epoch = o.epoch AND a.held AND o.held LIMIT 10);
