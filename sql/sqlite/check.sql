-- The twins of sql/pg/check.sql. A row without an execution has no id to tell.

-- fragment: check_side (table, bit)
SELECT * FROM (SELECT '@table without execution', s.id FROM @table s
  WHERE NOT EXISTS (SELECT 1 FROM execution e WHERE e.id = s.id) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT '@table that is not in the bits of its execution', s.id FROM @table s
   JOIN execution e ON e.id = s.id LEFT JOIN live l ON l.num = e.num LEFT JOIN outcome o ON o.num = e.num
  WHERE coalesce(l.has, o.has) & @bit = 0 LIMIT 10)
UNION ALL

-- name: check_one_place ()
-- returns: problem text, id uuid?
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
@{each check_side}
SELECT * FROM (SELECT 'key without its execution', k.id FROM key k
  WHERE NOT EXISTS (SELECT 1 FROM execution e WHERE e.id = k.id AND e.key = k.key) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'execution without its key', e.id FROM execution e JOIN queue q ON q.id = e.queue
  WHERE e.key IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM key k
                     WHERE k.namespace = q.namespace AND k.key = e.key AND k.id = e.id) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'execution in no span of its namespace', e.id
   FROM execution e JOIN queue q ON q.id = e.queue
  WHERE NOT EXISTS (SELECT 1 FROM unspanned) AND @{several_namespaces}
    AND NOT EXISTS (SELECT 1 FROM span s WHERE s.namespace = q.namespace AND s.last >= e.id AND s.first <= e.id)
  LIMIT 10);

-- name: check_rows ()
-- returns: problem text, id uuid?
-- Every row has the columns that its state needs, and none that its state must not have.
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
SELECT * FROM (SELECT 'held without a gate, or until a time', id FROM l
  WHERE state = @held AND (gate IS NULL OR due IS NOT NULL) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'another gate than its execution', l.id FROM l JOIN execution e ON e.num = l.num
  WHERE l.gate IS NOT e.gate LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'suspended without its suspension', l.id FROM l
  WHERE l.state = @suspended AND NOT EXISTS (SELECT 1 FROM suspension s WHERE s.id = l.id AND s.epoch = l.epoch) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'suspension of an execution that is not suspended', s.id
   FROM suspension s CROSS JOIN execution e ON e.id = s.id
  WHERE NOT EXISTS (SELECT 1 FROM live l WHERE l.num = e.num AND l.epoch = s.epoch AND +l.state = @suspended) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'suspension with another timeout or lane than its execution', s.id
   FROM suspension s CROSS JOIN execution e ON e.id = s.id CROSS JOIN live l ON l.num = e.num
  WHERE +l.state = @suspended AND (s.due IS NOT l.due OR s.lane <> l.lane) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'waitpoint of an epoch that was never given', w.id
   FROM waitpoint w CROSS JOIN execution e ON e.id = w.id
   LEFT JOIN live l ON l.num = e.num LEFT JOIN outcome o ON o.num = e.num
  WHERE max(w.epoch, w.bound) > coalesce(l.epoch, o.epoch) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'waitpoint that has not counted its signals', w.id FROM waitpoint w
  WHERE w.signals <> (SELECT count(*) FROM signal s WHERE s.id = w.id AND s.waitpoint = w.waitpoint) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'signal without its waitpoint', s.id FROM signal s
  WHERE NOT EXISTS (SELECT 1 FROM waitpoint w WHERE w.waitpoint = s.waitpoint AND w.id = s.id) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'two signals that resumed one execution', s.id
   FROM signal s JOIN waitpoint w ON w.waitpoint = s.waitpoint
  WHERE s.effect = @WEFT_SIGNAL_RESUMED GROUP BY s.id, w.bound HAVING count(*) > 1 LIMIT 10)
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
  WHERE a.epoch = o.epoch AND a.held AND o.held LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'running under a lease that is draining', d.id FROM draining d JOIN l ON l.id = d.id
  WHERE l.state = @running AND l.epoch = d.epoch LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'draining without the end of its lease', d.id
   FROM draining d JOIN execution e ON e.id = d.id
   LEFT JOIN outcome o ON o.num = e.num AND o.epoch = d.epoch AND o.held
  WHERE o.num IS NULL
    AND NOT EXISTS (SELECT 1 FROM attempt a
                     WHERE a.id = d.id AND a.epoch = d.epoch AND a.held) LIMIT 10);

-- fragment: wanted_upstreams (n)
-- How many upstreams of a node must succeed.
CASE @n.policy WHEN @WEFT_JOIN_ALL THEN @n.total WHEN @WEFT_JOIN_ANY THEN 1 ELSE @n.k END

-- name: check_flows ()
-- returns: problem text, id uuid?
SELECT * FROM (SELECT 'counters do not match its edges', x.id
   FROM node n JOIN execution x ON x.num = n.num JOIN flow f ON f.num = n.flow AND f.state >= 0
  WHERE n.total <> (SELECT count(*) FROM edge e WHERE e.downstream = n.num)
     OR n.succeeded <> (SELECT count(*) FROM edge e WHERE e.downstream = n.num AND e.state = @WEFT_EDGE_SUCCEEDED)
     OR n.failed <> (SELECT count(*) FROM edge e WHERE e.downstream = n.num AND e.state = @WEFT_EDGE_FAILED) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'edge is not what its upstream has come to', x.id
   FROM edge e JOIN node n ON n.num = e.upstream JOIN execution x ON x.num = n.num
   JOIN flow f ON f.num = n.flow AND f.state >= 0
   LEFT JOIN outcome o ON o.num = e.upstream
  WHERE e.state <> CASE WHEN o.state IS NULL THEN @WEFT_EDGE_PENDING
                     WHEN o.state = @succeeded THEN @WEFT_EDGE_SUCCEEDED ELSE @WEFT_EDGE_FAILED END
    AND NOT EXISTS (SELECT 1 FROM completion c WHERE c.flow = n.flow AND c.num = e.upstream) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'blocked behind a join that fired', x.id
   FROM live l JOIN node n ON n.num = l.num AND n.fired <> @WEFT_FIRED_NOT JOIN execution x ON x.num = l.num
  WHERE l.state = @blocked LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'blocked outside of a flow', x.id FROM live l JOIN execution x ON x.num = l.num
  WHERE l.state = @blocked AND NOT EXISTS (SELECT 1 FROM node n WHERE n.num = l.num) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'blocked behind a join that is decided', x.id
   FROM node n JOIN live l ON l.num = n.num AND l.state = @blocked
   JOIN execution x ON x.num = n.num JOIN flow f ON f.num = n.flow AND f.state >= 0
  WHERE n.fired = @WEFT_FIRED_NOT
    AND (n.succeeded >= @{wanted_upstreams n}
         OR n.total - n.failed < @{wanted_upstreams n})
    AND NOT EXISTS (SELECT 1 FROM completion c WHERE c.flow = n.flow) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'began before its join fired', x.id
   FROM node n JOIN live l ON l.num = n.num AND l.state <> @blocked JOIN execution x ON x.num = n.num
  WHERE n.fired <> @WEFT_FIRED_SATISFIED LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'skipped by a join that did not', x.id
   FROM node n JOIN outcome o ON o.num = n.num AND o.state = @skipped JOIN execution x ON x.num = n.num
  WHERE n.fired <> @WEFT_FIRED_IMPOSSIBLE AND o.replays < @WEFT_REPLAYS_MAX LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'mark of a sink is not what it has come to', x.id
   FROM node n JOIN execution x ON x.num = n.num JOIN flow f ON f.num = n.flow AND f.state >= 0
   LEFT JOIN outcome o ON o.num = n.num
  WHERE n.bad <> (o.num IS NOT NULL AND o.state <> @succeeded
                  AND NOT EXISTS (SELECT 1 FROM edge e WHERE e.upstream = n.num))
    AND NOT EXISTS (SELECT 1 FROM completion c WHERE c.flow = n.flow AND c.num = n.num) LIMIT 10);

-- name: check_graphs ()
-- returns: problem text, id uuid?
-- Where there is no execution, the flow is named, or nothing.
SELECT * FROM (SELECT 'node without execution', f.id FROM node n LEFT JOIN flow f ON f.num = n.flow
  WHERE NOT EXISTS (SELECT 1 FROM execution e WHERE e.num = n.num) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'node without flow', x.id FROM node n LEFT JOIN execution x ON x.num = n.num
  WHERE NOT EXISTS (SELECT 1 FROM flow f WHERE f.num = n.flow) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'row is of another flow than its node', e.id
   FROM (SELECT num, flow FROM live UNION ALL SELECT num, flow FROM outcome) x
   LEFT JOIN execution e ON e.num = x.num
   LEFT JOIN node n ON n.num = x.num
  WHERE x.flow IS NOT n.flow LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'edge without its nodes, or between flows', x.id
   FROM edge e LEFT JOIN execution x ON x.num = e.upstream
   LEFT JOIN node u ON u.num = e.upstream
   LEFT JOIN node d ON d.num = e.downstream
   LEFT JOIN flow f ON f.num = u.flow
  WHERE u.num IS NULL OR f.state >= 0 AND u.flow IS NOT d.flow LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'completion without its flow', x.id
   FROM completion c LEFT JOIN execution x ON x.num = c.num
  WHERE NOT EXISTS (SELECT 1 FROM flow f WHERE f.num = c.flow)
     OR c.num <> 0 AND NOT EXISTS (SELECT 1 FROM node n WHERE n.num = c.num AND n.flow = c.flow)
        AND EXISTS (SELECT 1 FROM flow f WHERE f.num = c.flow AND f.state >= 0) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'cancel group without its node', x.id
   FROM cancel_group g LEFT JOIN execution x ON x.num = g.num
  WHERE NOT EXISTS (SELECT 1 FROM node n WHERE n.num = g.num AND n.flow = g.flow)
    AND NOT EXISTS (SELECT 1 FROM flow f WHERE f.num = g.flow AND f.state < 0) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'bytes of a file that is not there', c.file FROM file_chunk c
  WHERE NOT EXISTS (SELECT 1 FROM file f WHERE f.id = c.file)
    AND NOT EXISTS (SELECT 1 FROM batch b WHERE b.file = c.file) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'file without its bytes', f.id FROM file f
  WHERE f.sealed AND f.deleted IS NULL AND f.bytes > 0
    AND NOT EXISTS (SELECT 1 FROM file_chunk c WHERE c.file = f.id) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'flow has ended and has living members', f.id FROM flow f
  WHERE f.state > 0 AND EXISTS (SELECT 1 FROM live l WHERE l.flow = f.num) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'flow is open and nothing of it can end', f.id FROM flow f
  WHERE f.state = @WEFT_FLOW_OPEN AND NOT EXISTS (SELECT 1 FROM live l WHERE l.flow = f.num)
    AND NOT EXISTS (SELECT 1 FROM completion c WHERE c.flow = f.num) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'number of nodes is wrong', f.id FROM flow f
  WHERE f.state >= 0 AND f.nodes <> (SELECT count(*) FROM node n WHERE n.flow = f.num) LIMIT 10);

-- name: check_budgets ()
-- returns: problem text, id uuid?
SELECT * FROM (SELECT 'used is not the sum of the ledger', zeroblob(16)
   FROM budget b JOIN budget_dimension d ON d.budget = b.id AND NOT d.dropped
  WHERE d.used <> coalesce((SELECT sum(g.total - g.earlier) FROM ledger g
                             WHERE g.dimension = d.id AND g.period = b.period AND g.epoch > 0), 0) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'reserved is not the sum of the ledger', zeroblob(16)
   FROM budget b JOIN budget_dimension d ON d.budget = b.id AND NOT d.dropped
  WHERE d.reserved <> coalesce((SELECT sum(g.reserved) FROM ledger g
                                 WHERE g.dimension = d.id AND g.settled IS NULL), 0) LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'open in the ledger of an earlier period', g.id
   FROM budget b JOIN budget_dimension d ON d.budget = b.id AND NOT d.dropped
   JOIN ledger g ON g.dimension = d.id AND g.settled IS NULL AND g.period <> b.period LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'ledger of an earlier period that no sweep looks for', g.id
   FROM budget b JOIN budget_dimension d ON d.budget = b.id AND NOT d.dropped AND NOT d.stale
   JOIN ledger g ON g.dimension = d.id AND g.period < b.period AND g.epoch > 0 LIMIT 10)
UNION ALL
SELECT * FROM (SELECT 'the ledger of a lease has numbers that cannot be', g.id
   FROM ledger g
  WHERE g.reserved < 0 OR g.total < g.earlier OR g.earlier < 0 OR (g.settled IS NOT NULL AND g.reserved <> 0) LIMIT 10);
