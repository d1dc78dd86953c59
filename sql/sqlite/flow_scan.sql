-- The twins of sql/pg/flow_scan.sql.

-- name: completion_due (before bigint, look int, batch int, ns int, first int, last int)
-- returns: flow uuid, completions bigint
SELECT f.id, count(*)
  FROM (SELECT flow, at FROM completion ORDER BY seq LIMIT :look) c JOIN flow f ON f.num = c.flow
 WHERE c.at <= :before AND @{of_flow f}
 GROUP BY f.num
 LIMIT :batch;

-- name: groups_due (before bigint, look int, batch int, ns int, first int, last int)
-- returns: flow uuid?, orphan bool
SELECT f.id, max(f.id IS NULL OR g.node IS NULL)
  FROM (SELECT x.flow, x.at, (SELECT n.num FROM node n WHERE n.num = x.num) AS node
          FROM cancel_group x WHERE x.waiting = 0 ORDER BY x.at LIMIT :look) g
  LEFT JOIN flow f ON f.num = g.flow
 WHERE g.at <= :before AND @{of_flow f}
 GROUP BY g.flow
 LIMIT :batch;

-- name: groups_look (after uuid, batch int, ns int, first int, last int)
-- returns: id uuid?, flow uuid?, what int?
-- Where the execution or the flow is gone, there is no id.
SELECT e.id, f.id,
       CASE WHEN (:ns <> 0 AND f.namespace IS NOT :ns)
              OR (:last - :first <> @WEFT_PARTITION_LAST AND weft_partition(f.id) NOT BETWEEN :first AND :last) THEN NULL
            WHEN f.num IS NULL OR n.num IS NULL THEN 1
            WHEN NOT EXISTS (SELECT 1 FROM edge x CROSS JOIN live l ON l.num = x.upstream
                              WHERE x.downstream = g.num) THEN 2
            ELSE 0 END
  FROM (SELECT * FROM cancel_group
         WHERE num > coalesce((SELECT num FROM execution WHERE id = :after), -1)
         ORDER BY num LIMIT :batch) g
  LEFT JOIN execution e ON e.num = g.num
  LEFT JOIN flow f ON f.num = g.flow
  LEFT JOIN node n ON n.num = g.num
 ORDER BY g.num;

-- name: groups_drained (id uuid[])
-- returns: id uuid
DELETE FROM cancel_group
 WHERE num = (SELECT num FROM execution WHERE id = :id)
   AND NOT EXISTS (SELECT 1 FROM edge e CROSS JOIN live l ON l.num = e.upstream
                    WHERE e.downstream = cancel_group.num)
RETURNING :id;

-- name: groups_orphaned (after uuid, batch int)
-- returns: removed bigint
DELETE FROM cancel_group
 WHERE num IN (SELECT g.num FROM (SELECT * FROM cancel_group
                                   WHERE num > coalesce((SELECT num FROM execution WHERE id = :after), -1)
                                   ORDER BY num LIMIT :batch) g
                WHERE NOT EXISTS (SELECT 1 FROM flow f WHERE f.num = g.flow)
                   OR NOT EXISTS (SELECT 1 FROM node n WHERE n.num = g.num));
SELECT changes();

-- name: flows_backlog (batch int, ns int, first int, last int)
-- returns: id uuid
SELECT f.id FROM flow f
 WHERE f.backlog AND @{of_flow f}
 ORDER BY f.num LIMIT :batch;

-- name: flows_unfinished (before bigint, batch int, ns int, first int, last int)
-- returns: id uuid
UPDATE flow SET state = @WEFT_FLOW_REMOVING, key = NULL
 WHERE num IN (SELECT f.num FROM flow f
                WHERE f.state < 0 AND f.state = @WEFT_FLOW_STAGED AND f.created <= :before
                  AND NOT EXISTS (SELECT 1 FROM batch b WHERE b.id = f.id AND b.phase = 0 AND b.deleted IS NULL)
                  AND @{of_flow f}
                ORDER BY f.num LIMIT :batch)
RETURNING id;

-- name: flows_kept (state smallint[], until bigint[], batch int, ns int, first int, last int)
-- returns: id uuid
UPDATE flow SET state = @WEFT_FLOW_REMOVING, key = NULL
 WHERE num IN (SELECT f.num FROM flow f
                WHERE f.state = :state AND f.finished <= :until
                  AND @{of_flow f}
                ORDER BY f.finished LIMIT :batch)
RETURNING id;

-- name: flows_deleted (batch int, ns int, first int, last int)
-- returns: id uuid
UPDATE flow SET state = @WEFT_FLOW_REMOVING, key = NULL
 WHERE num IN (SELECT f.num FROM flow f
                WHERE f.deleted IS NOT NULL AND +f.state > 0
                  AND @{of_flow f}
                ORDER BY f.num LIMIT :batch)
RETURNING id;

-- name: flows_removing (batch int, ns int, first int, last int)
-- returns: id uuid
SELECT f.id FROM flow f
 WHERE f.state < 0 AND f.state = @WEFT_FLOW_REMOVING AND @{of_flow f}
 ORDER BY f.num LIMIT :batch;

-- name: purge_take (flow uuid[], batch int)
-- returns: id uuid, flow uuid, namespace int
SELECT e.id, f.id, f.namespace
  FROM input i CROSS JOIN flow f ON f.id = i.flow CROSS JOIN node n ON n.flow = f.num
 CROSS JOIN execution e ON e.num = n.num
 WHERE +f.state = @WEFT_FLOW_REMOVING
 LIMIT :batch;

-- name: purge_hints (flow uuid[], chunk int)
-- returns: more bool
DELETE FROM completion WHERE seq IN (
    SELECT c.seq FROM input i CROSS JOIN flow f ON f.id = i.flow CROSS JOIN completion c ON c.flow = f.num
     LIMIT :chunk);
DELETE FROM cancel_group WHERE num IN (
    SELECT g.num FROM input i CROSS JOIN flow f ON f.id = i.flow CROSS JOIN cancel_group g ON g.flow = f.num
     LIMIT :chunk);
SELECT EXISTS (SELECT 1 FROM input i CROSS JOIN flow f ON f.id = i.flow CROSS JOIN completion c ON c.flow = f.num)
       OR EXISTS (SELECT 1 FROM input i CROSS JOIN flow f ON f.id = i.flow
                   CROSS JOIN cancel_group g ON g.flow = f.num);

-- name: purge_edges (id uuid[], chunk int)
-- returns: removed bigint
DELETE FROM edge WHERE (upstream, downstream) IN (
    SELECT e.upstream, e.downstream
      FROM input i CROSS JOIN execution x ON x.id = i.id CROSS JOIN edge e ON e.upstream = x.num
     LIMIT :chunk);
SELECT changes();

-- fragment: leaving_members ()
-- The members that no edge leaves any more, as m.
(SELECT x.num, x.id, i.namespace FROM input i CROSS JOIN execution x ON x.id = i.id
  WHERE NOT EXISTS (SELECT 1 FROM edge e WHERE e.upstream = x.num)) m

-- fragment: member_side_removed (table, bit)
DELETE FROM @table WHERE id IN (
    SELECT m.id FROM @{leaving_members}
      LEFT JOIN live l ON l.num = m.num LEFT JOIN outcome o ON o.num = m.num
     WHERE coalesce(l.has, o.has, -1) & @bit <> 0);

-- fragment: member_removed (table)
DELETE FROM @table WHERE num IN (SELECT m.num FROM @{leaving_members});

-- name: purge_members (id uuid[], namespace int[])
-- returns: id uuid, namespace int
-- Executions go last: until then they name the same members to each statement.
SELECT m.id, m.namespace FROM @{leaving_members};
@{each member_side_removed}
@{member_removed live}
@{member_removed outcome}
@{member_removed node}
@{member_removed execution}

-- name: purge_flows (flow uuid[])
-- returns: id uuid
DELETE FROM flow
 WHERE id IN (SELECT i.flow FROM input i) AND state = @WEFT_FLOW_REMOVING
   AND NOT EXISTS (SELECT 1 FROM node n WHERE n.flow = flow.num)
   AND NOT EXISTS (SELECT 1 FROM completion c WHERE c.flow = flow.num)
   AND NOT EXISTS (SELECT 1 FROM cancel_group g WHERE g.flow = flow.num)
RETURNING id;

-- name: purge_left (flow uuid[], most int)
-- returns: count bigint
SELECT count(*)
  FROM (SELECT 1 FROM input i CROSS JOIN flow f ON f.id = i.flow CROSS JOIN node n ON n.flow = f.num
         LIMIT :most);
