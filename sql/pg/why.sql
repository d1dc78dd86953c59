-- Why an execution does not run. These lock nothing.

-- name: why_line (id uuid, most int)
-- returns: ahead bigint
-- How many held executions of its gate are ahead of a held one, up to `most`.
SELECT (SELECT count(*) FROM (SELECT 1 FROM weft.live l
                               WHERE l.gate = m.gate AND l.state = @held AND l.priority >= m.priority
                                 AND (l.priority > m.priority OR (l.ord, l.id) < (m.ord, m.id)) LIMIT :most) x)
  FROM weft.live m WHERE m.id = :id AND m.gate IS NOT NULL;

-- name: why_upstreams (id uuid, most int)
-- returns: name text, state smallint
-- The upstreams of a node that have not ended.
SELECT n.name, l.state
  FROM (SELECT e.upstream FROM weft.edge e WHERE e.downstream = :id OFFSET 0) e
 CROSS JOIN LATERAL (SELECT state FROM weft.live WHERE id = e.upstream OFFSET 0) l
 CROSS JOIN LATERAL (SELECT name FROM weft.node WHERE id = e.upstream OFFSET 0) n
 LIMIT :most;

-- name: why_holders (lane int, most int)
-- returns: id uuid, worker text
-- Executions that hold places of a lane: the leases that end first.
SELECT l.id, n.text
  FROM (SELECT id, worker, due FROM weft.live WHERE lane = :lane AND state = @running ORDER BY due LIMIT :most) l
 CROSS JOIN LATERAL (SELECT text FROM weft.name x WHERE x.id = l.worker OFFSET 0) n
 ORDER BY l.due;
