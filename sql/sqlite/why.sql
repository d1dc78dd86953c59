-- The twins of sql/pg/why.sql.

-- name: why_line (id uuid, most int)
-- returns: ahead bigint
SELECT (SELECT count(*) FROM (SELECT 1 FROM live l
                               WHERE l.gate = m.gate AND l.state = @held AND l.priority >= m.priority
                                 AND (l.priority > m.priority OR (l.ord, l.num) < (m.ord, m.num)) LIMIT :most))
  FROM live m WHERE m.num = (SELECT num FROM execution WHERE id = :id) AND m.gate IS NOT NULL;

-- name: why_upstreams (id uuid, most int)
-- returns: name text, state smallint
SELECT n.name, l.state
  FROM edge e CROSS JOIN live l ON l.num = e.upstream CROSS JOIN node n ON n.num = e.upstream
 WHERE e.downstream = (SELECT num FROM execution WHERE id = :id)
 LIMIT :most;

-- name: why_holders (lane int, most int)
-- returns: id uuid, worker text
SELECT e.id, n.text
  FROM (SELECT num, worker, due FROM live WHERE lane = :lane AND state = @running ORDER BY due LIMIT :most) l
 CROSS JOIN execution e ON e.num = l.num CROSS JOIN name n ON n.id = l.worker
 ORDER BY l.due;
