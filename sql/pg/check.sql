-- The invariants of the whole store. Each statement returns the executions that break it, at most ten.

-- name: check_patience (statement_timeout text)
-- returns: statement_timeout text
-- only: pg, because SQLite has no time limit for a statement
-- The check behind it reads whole tables.
SELECT set_config('statement_timeout', :statement_timeout, true);

-- fragment: check_side (table, bit)
(SELECT '@table without execution', s.id FROM weft.@table s
  WHERE NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id BETWEEN s.id AND s.id) LIMIT 10)
UNION ALL
(SELECT '@table that is not in the bits of its execution', s.id FROM weft.@table s
   LEFT JOIN weft.live l ON l.id BETWEEN s.id AND s.id LEFT JOIN weft.outcome o ON o.id BETWEEN s.id AND s.id
  WHERE coalesce(l.has, o.has) & @bit = 0 LIMIT 10)
UNION ALL

-- name: check_one_place ()
-- returns: problem text, id uuid?
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
@{each check_side}
(SELECT 'key without its execution', k.id FROM weft.key k
  WHERE NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id BETWEEN k.id AND k.id AND e.key = k.key) LIMIT 10)
UNION ALL
(SELECT 'execution without its key', e.id FROM weft.execution e
  WHERE e.key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM weft.queue q JOIN weft.key k ON k.namespace = q.namespace
                     WHERE q.id = e.queue AND k.key = e.key AND k.id = e.id) LIMIT 10)
UNION ALL
(SELECT 'execution in no span of its namespace', e.id
   FROM weft.execution e JOIN weft.queue q ON q.id = e.queue
  WHERE NOT EXISTS (SELECT 1 FROM weft.unspanned)
    AND NOT EXISTS (SELECT 1 FROM weft.span s WHERE s.namespace = q.namespace AND s.last >= e.id AND s.first <= e.id)
  LIMIT 10);

-- name: check_rows ()
-- returns: problem text, id uuid?
-- Every row has the columns that its state needs, and none that its state must not have.
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
(SELECT 'held without a gate, or until a time', id FROM weft.live
  WHERE state = @held AND (gate IS NULL OR due IS NOT NULL) LIMIT 10)
UNION ALL
(SELECT 'another gate than its execution', l.id FROM weft.live l JOIN weft.execution e ON e.id BETWEEN l.id AND l.id
  WHERE l.gate IS DISTINCT FROM e.gate LIMIT 10)
UNION ALL
(SELECT 'suspended without its suspension', l.id FROM weft.live l
  WHERE l.state = @suspended
    AND NOT EXISTS (SELECT 1 FROM weft.suspension s WHERE s.id BETWEEN l.id AND l.id AND s.epoch = l.epoch) LIMIT 10)
UNION ALL
(SELECT 'suspension of an execution that is not suspended', s.id FROM weft.suspension s
  WHERE NOT EXISTS (SELECT 1 FROM weft.live l
                     WHERE l.id BETWEEN s.id AND s.id AND l.epoch = s.epoch AND l.state + 0 = @suspended) LIMIT 10)
UNION ALL
(SELECT 'suspension with another timeout or lane than its execution', s.id
   FROM weft.suspension s JOIN weft.live l ON l.id BETWEEN s.id AND s.id
  WHERE l.state + 0 = @suspended AND (s.due IS DISTINCT FROM l.due OR s.lane <> l.lane) LIMIT 10)
UNION ALL
(SELECT 'waitpoint of an epoch that was never given', w.id
   FROM weft.waitpoint w LEFT JOIN weft.live l ON l.id BETWEEN w.id AND w.id
   LEFT JOIN weft.outcome o ON o.id BETWEEN w.id AND w.id
  WHERE greatest(w.epoch, w.bound) > coalesce(l.epoch, o.epoch) LIMIT 10)
UNION ALL
(SELECT 'waitpoint that has not counted its signals', w.id FROM weft.waitpoint w
  WHERE w.signals <> (SELECT count(*) FROM weft.signal s WHERE s.id = w.id AND s.waitpoint = w.waitpoint) LIMIT 10)
UNION ALL
(SELECT 'signal without its waitpoint', s.id FROM weft.signal s
  WHERE NOT EXISTS (SELECT 1 FROM weft.waitpoint w WHERE w.waitpoint = s.waitpoint AND w.id = s.id) LIMIT 10)
UNION ALL
(SELECT 'two signals that resumed one execution', s.id
   FROM weft.signal s JOIN weft.waitpoint w ON w.waitpoint = s.waitpoint
  WHERE s.effect = @WEFT_SIGNAL_RESUMED GROUP BY s.id, w.bound HAVING count(*) > 1 LIMIT 10)
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
   JOIN weft.attempt a ON a.id BETWEEN o.id AND o.id AND a.epoch = o.epoch AND a.held AND o.held LIMIT 10)
UNION ALL
(SELECT 'running under a lease that is draining', d.id FROM weft.draining d
   JOIN weft.live l ON l.id BETWEEN d.id AND d.id
  WHERE l.state = @running AND l.epoch = d.epoch LIMIT 10)
UNION ALL
(SELECT 'draining without the end of its lease', d.id FROM weft.draining d
   JOIN weft.execution e ON e.id BETWEEN d.id AND d.id
   LEFT JOIN weft.outcome o ON o.id BETWEEN d.id AND d.id AND o.epoch = d.epoch AND o.held
  WHERE o.id IS NULL
    AND NOT EXISTS (SELECT 1 FROM weft.attempt a
                     WHERE a.id BETWEEN d.id AND d.id AND a.epoch = d.epoch AND a.held) LIMIT 10);

-- fragment: wanted_upstreams (n)
-- How many upstreams of a node must succeed.
CASE @n.policy WHEN @WEFT_JOIN_ALL THEN @n.total WHEN @WEFT_JOIN_ANY THEN 1 ELSE @n.k END

-- name: check_flows ()
-- returns: problem text, id uuid?
-- Flows that readers see. The state of an edge follows from its upstream, the counters of a node from its
-- edges, and its member from whether its join has fired, unless a completion in the outbox is still to be
-- processed. Marked are the nodes without downstreams that did not succeed.
(SELECT 'counters do not match its edges', n.id FROM weft.node n
   JOIN weft.flow f ON f.id BETWEEN n.flow AND n.flow AND f.state >= 0
  CROSS JOIN LATERAL (SELECT count(*) AS total, count(*) FILTER (WHERE e.state = @WEFT_EDGE_SUCCEEDED) AS succeeded,
                             count(*) FILTER (WHERE e.state = @WEFT_EDGE_FAILED) AS failed
                        FROM weft.edge e WHERE e.downstream = n.id OFFSET 0) c
  WHERE (n.total, n.succeeded, n.failed) <> (c.total, c.succeeded, c.failed) LIMIT 10)
UNION ALL
(SELECT 'edge is not what its upstream has come to', e.upstream FROM weft.edge e
   JOIN weft.node n ON n.id BETWEEN e.upstream AND e.upstream
   JOIN weft.flow f ON f.id BETWEEN n.flow AND n.flow AND f.state >= 0
   LEFT JOIN weft.outcome o ON o.id BETWEEN e.upstream AND e.upstream
  WHERE e.state <> CASE WHEN o.state IS NULL THEN @WEFT_EDGE_PENDING
                     WHEN o.state = @succeeded THEN @WEFT_EDGE_SUCCEEDED ELSE @WEFT_EDGE_FAILED END
    AND NOT EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = n.flow AND c.id = e.upstream)
  LIMIT 10)
UNION ALL
(SELECT 'blocked behind a join that fired', l.id FROM weft.live l
   JOIN weft.node n ON n.id BETWEEN l.id AND l.id AND n.fired <> @WEFT_FIRED_NOT
  WHERE l.state = @blocked LIMIT 10)
UNION ALL
(SELECT 'blocked outside of a flow', l.id FROM weft.live l
  WHERE l.state = @blocked AND NOT EXISTS (SELECT 1 FROM weft.node n WHERE n.id BETWEEN l.id AND l.id)
  LIMIT 10)
UNION ALL
(SELECT 'blocked behind a join that is decided', n.id FROM weft.node n
   JOIN weft.live l ON l.id BETWEEN n.id AND n.id AND l.state = @blocked
   JOIN weft.flow f ON f.id BETWEEN n.flow AND n.flow AND f.state >= 0
  WHERE n.fired = @WEFT_FIRED_NOT
    AND (n.succeeded >= @{wanted_upstreams n}
         OR n.total - n.failed < @{wanted_upstreams n})
    AND NOT EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = n.flow) LIMIT 10)
UNION ALL
(SELECT 'began before its join fired', n.id FROM weft.node n
   JOIN weft.live l ON l.id BETWEEN n.id AND n.id AND l.state <> @blocked
  WHERE n.fired <> @WEFT_FIRED_SATISFIED LIMIT 10)
UNION ALL
(SELECT 'skipped by a join that did not', n.id FROM weft.node n
   JOIN weft.outcome o ON o.id BETWEEN n.id AND n.id AND o.state = @skipped
  WHERE n.fired <> @WEFT_FIRED_IMPOSSIBLE AND o.replays < @WEFT_REPLAYS_MAX LIMIT 10)
UNION ALL
(SELECT 'mark of a sink is not what it has come to', n.id FROM weft.node n
   JOIN weft.flow f ON f.id BETWEEN n.flow AND n.flow AND f.state >= 0
   LEFT JOIN weft.outcome o ON o.id BETWEEN n.id AND n.id
  WHERE n.bad <> (o.id IS NOT NULL AND o.state <> @succeeded
                  AND NOT EXISTS (SELECT 1 FROM weft.edge e WHERE e.upstream = n.id OFFSET 0))
    AND NOT EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = n.flow AND c.id = n.id) LIMIT 10);

-- name: check_graphs ()
-- returns: problem text, id uuid?
-- No row of a flow refers to a row that does not exist. A flow that is being removed
-- loses its parts one by one, and an erasure removes a file before its chunks, and its batch behind them.
(SELECT 'node without execution', n.id FROM weft.node n
  WHERE NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id BETWEEN n.id AND n.id) LIMIT 10)
UNION ALL
(SELECT 'node without flow', n.id FROM weft.node n
  WHERE NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id BETWEEN n.flow AND n.flow) LIMIT 10)
UNION ALL
(SELECT 'row is of another flow than its node', x.id
   FROM (SELECT id, flow FROM weft.live UNION ALL SELECT id, flow FROM weft.outcome) x
   LEFT JOIN weft.node n ON n.id BETWEEN x.id AND x.id
  WHERE x.flow IS DISTINCT FROM n.flow LIMIT 10)
UNION ALL
(SELECT 'edge without its nodes, or between flows', e.upstream FROM weft.edge e
   LEFT JOIN weft.node u ON u.id BETWEEN e.upstream AND e.upstream
   LEFT JOIN weft.node d ON d.id BETWEEN e.downstream AND e.downstream
   LEFT JOIN weft.flow f ON f.id BETWEEN u.flow AND u.flow
  WHERE u.id IS NULL OR f.state >= 0 AND u.flow IS DISTINCT FROM d.flow LIMIT 10)
UNION ALL
(SELECT 'completion without its flow', c.id FROM weft.completion c
  WHERE NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id BETWEEN c.flow AND c.flow)
     OR c.id <> c.flow AND NOT EXISTS (SELECT 1 FROM weft.node n WHERE n.id BETWEEN c.id AND c.id
                                                                   AND n.flow = c.flow)
        AND EXISTS (SELECT 1 FROM weft.flow f WHERE f.id = c.flow AND f.state >= 0) LIMIT 10)
UNION ALL
(SELECT 'cancel group without its node', g.id FROM weft.cancel_group g
  WHERE NOT EXISTS (SELECT 1 FROM weft.node n WHERE n.id BETWEEN g.id AND g.id AND n.flow = g.flow)
    AND NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id = g.flow AND f.state < 0) LIMIT 10)
UNION ALL
(SELECT 'bytes of a file that is not there', c.file FROM weft.file_chunk c
  WHERE NOT EXISTS (SELECT 1 FROM weft.file f WHERE f.id = c.file)
    AND NOT EXISTS (SELECT 1 FROM weft.batch b WHERE b.file = c.file) LIMIT 10)
UNION ALL
(SELECT 'file without its bytes', f.id FROM weft.file f
  WHERE f.sealed AND f.deleted IS NULL AND f.bytes > 0
    AND NOT EXISTS (SELECT 1 FROM weft.file_chunk c WHERE c.file = f.id) LIMIT 10)
UNION ALL
(SELECT 'flow has ended and has living members', f.id FROM weft.flow f
  WHERE f.state > 0 AND EXISTS (SELECT 1 FROM weft.live l WHERE l.flow = f.id) LIMIT 10)
UNION ALL
(SELECT 'flow is open and nothing of it can end', f.id FROM weft.flow f
  WHERE f.state = @WEFT_FLOW_OPEN AND NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.flow = f.id)
    AND NOT EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = f.id) LIMIT 10)
UNION ALL
(SELECT 'number of nodes is wrong', f.id FROM weft.flow f
  WHERE f.state >= 0 AND f.nodes <> (SELECT count(*) FROM weft.node n
                                      WHERE n.flow = f.id AND n.k >= 0) LIMIT 10);

-- name: check_budgets ()
-- returns: problem text, id uuid?
-- The ledger adds up to what its budgets say. A row that is not settled is of the present period.
(SELECT 'used is not the sum of the ledger', @{no_id}::uuid
   FROM weft.budget b JOIN weft.budget_dimension d ON d.budget = b.id AND NOT d.dropped
  WHERE d.used <> coalesce((SELECT sum(g.total - g.earlier) FROM weft.ledger g
                             WHERE g.dimension = d.id AND g.period = b.period AND g.epoch > 0), 0) LIMIT 10)
UNION ALL
(SELECT 'reserved is not the sum of the ledger', @{no_id}::uuid
   FROM weft.budget b JOIN weft.budget_dimension d ON d.budget = b.id AND NOT d.dropped
  WHERE d.reserved <> coalesce((SELECT sum(g.reserved) FROM weft.ledger g
                                 WHERE g.dimension = d.id AND g.settled IS NULL), 0) LIMIT 10)
UNION ALL
(SELECT 'open in the ledger of an earlier period', g.id
   FROM weft.budget b JOIN weft.budget_dimension d ON d.budget = b.id AND NOT d.dropped
   JOIN weft.ledger g ON g.dimension = d.id AND g.settled IS NULL AND g.period <> b.period LIMIT 10)
UNION ALL
(SELECT 'ledger of an earlier period that no sweep looks for', g.id
   FROM weft.budget b JOIN weft.budget_dimension d ON d.budget = b.id AND NOT d.dropped AND NOT d.stale
   JOIN weft.ledger g ON g.dimension = d.id AND g.period < b.period AND g.epoch > 0 LIMIT 10)
UNION ALL
(SELECT 'the ledger of a lease has numbers that cannot be', g.id
   FROM weft.ledger g
  WHERE g.reserved < 0 OR g.total < g.earlier OR g.earlier < 0 OR (g.settled IS NOT NULL AND g.reserved <> 0) LIMIT 10);
