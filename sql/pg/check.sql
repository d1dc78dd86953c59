-- What must always be true. Each statement returns the executions that break it, at most ten.

-- name: check_one_place ()
-- returns: problem id
-- Every execution is in exactly one of `live` and `outcome`, and nothing else refers to no execution.
(SELECT 'in live and in outcome', l.id FROM weft.live l JOIN weft.outcome o ON o.id BETWEEN l.id AND l.id LIMIT 10)
UNION ALL
(SELECT 'in neither live nor outcome', e.id FROM weft.execution e
  WHERE NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.id BETWEEN e.id AND e.id)
    AND NOT EXISTS (SELECT 1 FROM weft.outcome o WHERE o.id BETWEEN e.id AND e.id) LIMIT 10)
UNION ALL
(SELECT 'live row without execution', l.id FROM weft.live l
  WHERE NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id BETWEEN l.id AND l.id) LIMIT 10)
UNION ALL
(SELECT 'outcome without execution', o.id FROM weft.outcome o
  WHERE NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id BETWEEN o.id AND o.id) LIMIT 10)
UNION ALL
(SELECT 'attempt without execution', a.id FROM weft.attempt a
  WHERE NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id BETWEEN a.id AND a.id) LIMIT 10)
UNION ALL
(SELECT 'progress without execution', p.id FROM weft.progress p
  WHERE NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id BETWEEN p.id AND p.id) LIMIT 10)
UNION ALL
(SELECT 'key without its execution', k.id FROM weft.key k
  WHERE NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id BETWEEN k.id AND k.id AND e.key = k.key) LIMIT 10)
UNION ALL
(SELECT 'execution without its key', e.id FROM weft.execution e
  WHERE e.key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM weft.queue q JOIN weft.key k ON k.namespace = q.namespace
                     WHERE q.id = e.queue AND k.key = e.key AND k.id = e.id) LIMIT 10);

-- name: check_rows ()
-- returns: problem id
-- Every row is whole: what its state needs is there, what it must not have is not.
(SELECT 'state is not a living one', id FROM weft.live
  WHERE state NOT IN (@ready, @delayed, @blocked, @running, @suspended, @held) LIMIT 10)
UNION ALL
(SELECT 'outcome state is a living one', id FROM weft.outcome
  WHERE state NOT IN (@succeeded, @failed, @cancelled, @expired, @skipped) LIMIT 10)
UNION ALL
(SELECT 'running without a lease', id FROM weft.live
  WHERE state = @running AND (worker IS NULL OR due IS NULL OR claimed IS NULL OR started IS NULL
                              OR epoch < 1) LIMIT 10)
UNION ALL
(SELECT 'a lease without running', id FROM weft.live
  WHERE state <> @running
    AND (worker IS NOT NULL OR claimed IS NOT NULL OR attempt_deadline IS NOT NULL) LIMIT 10)
UNION ALL
(SELECT 'ready but due', id FROM weft.live WHERE state = @ready AND due IS NOT NULL LIMIT 10)
UNION ALL
(SELECT 'delayed without a time', id FROM weft.live WHERE state = @delayed AND due IS NULL LIMIT 10)
UNION ALL
(SELECT 'lane is not that of its queue', l.id FROM weft.live l JOIN weft.queue q ON q.id BETWEEN l.queue AND l.queue
  WHERE q.lane <> l.lane LIMIT 10)
UNION ALL
(SELECT 'attempt of an epoch that was never given', a.id
   FROM weft.attempt a LEFT JOIN weft.live l ON l.id BETWEEN a.id AND a.id
   LEFT JOIN weft.outcome o ON o.id BETWEEN a.id AND a.id
  WHERE a.epoch > coalesce(l.epoch, o.epoch) LIMIT 10)
UNION ALL
(SELECT 'progress of an epoch that was never given', p.id
   FROM weft.progress p LEFT JOIN weft.live l ON l.id BETWEEN p.id AND p.id
   LEFT JOIN weft.outcome o ON o.id BETWEEN p.id AND p.id
  WHERE p.epoch > coalesce(l.epoch, o.epoch) LIMIT 10)
UNION ALL
(SELECT 'running under an epoch that has ended', l.id FROM weft.live l
  WHERE l.state = @running
    AND EXISTS (SELECT 1 FROM weft.attempt a WHERE a.id BETWEEN l.id AND l.id AND a.epoch = l.epoch) LIMIT 10)
UNION ALL
(SELECT 'two ends of one lease', a.id FROM weft.attempt a WHERE a.held
  GROUP BY a.id, a.epoch HAVING count(*) > 1 LIMIT 10)
UNION ALL
(SELECT 'two ends of one lease', o.id FROM weft.outcome o
   JOIN weft.attempt a ON a.id BETWEEN o.id AND o.id AND a.epoch = o.epoch AND a.held AND o.held LIMIT 10);
