-- Flows: the scanners, and removal. ns, first and last are as in
-- pass.sql, of the flow. Looks lock nothing: the transaction that acts takes the lock of the flow.

-- name: completion_due (before bigint, look int, batch int, ns int, first int, last int)
-- returns: flow uuid, completions bigint
-- Flows with completions that have not been processed for a while. Looks at the oldest ones only, so that
-- its cost has a bound.
SELECT c.flow, count(*)
  FROM (SELECT flow, at FROM weft.completion ORDER BY seq LIMIT :look) c
 CROSS JOIN LATERAL (SELECT f.id FROM weft.flow f
                      WHERE f.id = c.flow AND @{of_flow f}
                     OFFSET 0) f
 WHERE c.at <= :before
 GROUP BY c.flow
 LIMIT :batch;

-- name: groups_due (before bigint, look int, batch int, ns int, first int, last int)
-- returns: flow uuid?, orphan bool
-- Flows with groups that have not been dispatched for a while. orphan: the flow, or the node, is gone.
SELECT g.flow, bool_or(f.id IS NULL OR g.node IS NULL)
  FROM (SELECT x.flow, x.at, (SELECT n.id FROM weft.node n WHERE n.id = x.id) AS node
          FROM weft.cancel_group x WHERE x.waiting = false AND x.at >= 0 ORDER BY x.at LIMIT :look) g
  LEFT JOIN LATERAL (SELECT f.id, f.namespace FROM weft.flow f WHERE f.id = g.flow OFFSET 0) f ON true
 WHERE g.at <= :before AND (:ns = 0 OR f.namespace = :ns)
   AND @{of_partition g.flow}
 GROUP BY g.flow
 LIMIT :batch;

-- name: groups_look (after uuid, batch int, ns int, first int, last int)
-- returns: id uuid?, flow uuid?, what int?
-- A walk along all groups. what 0: there is something left to do; 1: the flow or the node is gone; 2:
-- all upstreams have ended; NULL: not this replica's.
SELECT g.id, g.flow,
       CASE WHEN (:ns <> 0 AND f.namespace IS DISTINCT FROM :ns)
              OR (:last - :first <> @WEFT_PARTITION_LAST AND weft.partition(g.flow) NOT BETWEEN :first AND :last) THEN NULL
            WHEN f.id IS NULL OR n.id IS NULL THEN 1
            WHEN NOT EXISTS (SELECT 1 FROM weft.edge e
                              CROSS JOIN LATERAL (SELECT 1 FROM weft.live WHERE id = e.upstream OFFSET 0) l
                              WHERE e.downstream = g.id OFFSET 0) THEN 2
            ELSE 0 END
  FROM (SELECT * FROM weft.cancel_group WHERE id > :after ORDER BY id LIMIT :batch) g
  LEFT JOIN LATERAL (SELECT id, namespace FROM weft.flow WHERE id = g.flow OFFSET 0) f ON true
  LEFT JOIN LATERAL (SELECT id FROM weft.node WHERE id = g.id OFFSET 0) n ON true
 ORDER BY g.id;

-- name: groups_drained (id uuid[])
-- returns: id uuid
-- Removes, under the locks of their flows, the groups all of whose upstreams have ended.
DELETE FROM weft.cancel_group g
 USING unnest(:id) AS i(id)
 WHERE g.id BETWEEN i.id AND i.id
   AND NOT EXISTS (SELECT 1 FROM weft.edge e
                    CROSS JOIN LATERAL (SELECT 1 FROM weft.live WHERE id = e.upstream OFFSET 0) l
                    WHERE e.downstream = g.id OFFSET 0)
RETURNING g.id;

-- name: groups_orphaned (after uuid, batch int)
-- returns: removed bigint
-- Removes, of the same walk, the groups whose flow or node is gone: no other statement removes them, and
-- neither ever comes back.
WITH gone AS (
    DELETE FROM weft.cancel_group d
     USING (SELECT g.id FROM (SELECT * FROM weft.cancel_group WHERE id > :after ORDER BY id LIMIT :batch) g
             WHERE NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id = g.flow OFFSET 0)
                OR NOT EXISTS (SELECT 1 FROM weft.node n WHERE n.id = g.id OFFSET 0)) o
     WHERE d.id BETWEEN o.id AND o.id
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: flows_backlog (batch int, ns int, first int, last int)
-- returns: id uuid
-- Flows with members that are still to be cancelled.
SELECT f.id FROM weft.flow f
 WHERE f.backlog AND @{of_flow f}
 ORDER BY f.id LIMIT :batch;

-- name: flows_unfinished (before bigint, batch int, ns int, first int, last int)
-- returns: id uuid
-- Flows whose submission ended half way: from here on they are being removed. The next process goes on with batches. SKIP LOCKED: one that is
-- being written still is locked by its part, and its next part finds that it is too late. At rest: see
-- pass.sql.
WITH m AS MATERIALIZED (
    SELECT f.id FROM weft.flow f
     WHERE f.state < 0 AND f.state = @WEFT_FLOW_STAGED AND f.created <= :before
       AND NOT EXISTS (SELECT 1 FROM weft.batch b WHERE b.id = f.id AND b.phase = 0 AND b.deleted IS NULL OFFSET 0)
       AND @{of_flow f}
       AND weft.at_rest(f.xmax)
     ORDER BY f.id LIMIT :batch
       FOR UPDATE SKIP LOCKED
)
UPDATE weft.flow u SET state = @WEFT_FLOW_REMOVING, key = NULL FROM m WHERE u.id BETWEEN m.id AND m.id RETURNING u.id;

-- name: flows_kept (state smallint[], until bigint[], batch int, ns int, first int, last int)
-- returns: id uuid
-- Flows that were kept long enough: from here on readers do not see them, they are being removed. The lock
-- keeps a replay out, which would open them again.
WITH m AS MATERIALIZED (
    SELECT d.id FROM unnest(:state, :until) AS s(state, until)
     CROSS JOIN LATERAL (SELECT f.id FROM weft.flow f
                          WHERE f.state = s.state AND f.finished <= s.until
                            AND @{of_flow f}
                            AND weft.at_rest(f.xmax)
                          ORDER BY f.finished LIMIT :batch
                            FOR UPDATE SKIP LOCKED) d
     LIMIT :batch
)
UPDATE weft.flow u SET state = @WEFT_FLOW_REMOVING, key = NULL FROM m WHERE u.id BETWEEN m.id AND m.id RETURNING u.id;

-- name: flows_deleted (batch int, ns int, first int, last int)
-- returns: id uuid
-- The same for flows that were deleted and have ended.
WITH m AS MATERIALIZED (
    SELECT f.id FROM weft.flow f
     WHERE f.deleted IS NOT NULL AND f.state > 0
       AND @{of_flow f}
       AND weft.at_rest(f.xmax)
     ORDER BY f.id LIMIT :batch
       FOR UPDATE SKIP LOCKED
)
UPDATE weft.flow u SET state = @WEFT_FLOW_REMOVING, key = NULL FROM m WHERE u.id BETWEEN m.id AND m.id RETURNING u.id;

-- name: flows_removing (batch int, ns int, first int, last int)
-- returns: id uuid
SELECT f.id FROM weft.flow f
 WHERE f.state < 0 AND f.state = @WEFT_FLOW_REMOVING AND @{of_flow f}
 ORDER BY f.id LIMIT :batch;

-- name: purge_take (flow uuid[], batch int)
-- returns: id uuid, flow uuid, namespace int
-- Locks members of flows that are being removed, flow after flow. SKIP LOCKED on the members and nothing on
-- the flow: replicas share one large flow and have disjoint members. No other transaction writes these rows,
-- and one that is gone already has no new version to wait for. The members stay locked while the next
-- statements remove what mentions them.
SELECT m.id, x.id, x.namespace
  FROM unnest(:flow) AS i(flow)
 CROSS JOIN LATERAL (SELECT f.id, f.namespace FROM weft.flow f
                      WHERE f.id = i.flow AND f.state = @WEFT_FLOW_REMOVING OFFSET 0) x
 CROSS JOIN LATERAL (SELECT n.id FROM weft.node n
                      WHERE (n.flow, n.id) > (x.id, @{no_id}) AND n.flow <= x.id AND n.k >= 0
                      ORDER BY n.flow, n.id LIMIT :batch
                        FOR UPDATE SKIP LOCKED) m
 LIMIT :batch;

-- name: purge_hints (flow uuid[], chunk int)
-- returns: more bool
-- A chunk of the completions and of the groups of each flow, those that no other transaction removes. more:
-- there may be more of them.
WITH hints AS (
    DELETE FROM weft.completion c
     USING (SELECT x.seq FROM unnest(:flow) AS i(flow)
             CROSS JOIN LATERAL (SELECT p.seq FROM weft.completion p
                                  WHERE (p.flow, p.seq) > (i.flow, 0) AND p.flow <= i.flow
                                  ORDER BY p.flow, p.seq LIMIT :chunk
                                    FOR UPDATE SKIP LOCKED) x
             LIMIT :chunk) d
     WHERE c.seq BETWEEN d.seq AND d.seq
    RETURNING 1
), groups AS (
    DELETE FROM weft.cancel_group g
     USING (SELECT x.id FROM unnest(:flow) AS i(flow)
             CROSS JOIN LATERAL (SELECT p.id FROM weft.cancel_group p
                                  WHERE (p.flow, p.id) > (i.flow, @{no_id}) AND p.flow <= i.flow
                                  ORDER BY p.flow, p.id LIMIT :chunk
                                    FOR UPDATE SKIP LOCKED) x
             LIMIT :chunk) d
     WHERE g.id BETWEEN d.id AND d.id
    RETURNING 1
)
SELECT greatest((SELECT count(*) FROM hints), (SELECT count(*) FROM groups)) >= :chunk;

-- name: purge_edges (id uuid[], chunk int)
-- returns: removed bigint
-- A chunk of the edges that leave members which purge_take has locked.
WITH gone AS (
    DELETE FROM weft.edge e
     USING (SELECT x.place FROM unnest(:id) AS m(id)
             CROSS JOIN LATERAL (SELECT ctid AS place FROM weft.edge
                                  WHERE upstream = m.id LIMIT :chunk) x
             LIMIT :chunk) p
     WHERE e.ctid = p.place
    RETURNING 1
)
SELECT count(*) FROM gone;

-- name: purge_members (id uuid[], namespace int[])
-- returns: id uuid, namespace int
-- Every table of src/core/tables.def that a member may be in is here or in the two statements before, once. Of
-- the members that purge_take has locked the ones go that no edge leaves any more. Members have no keys of their
-- own. No process writes about a member of a flow that is being removed, so nothing here waits.
WITH m AS MATERIALIZED (
    SELECT i.id, i.namespace FROM unnest(:id, :namespace) AS i(id, namespace)
     WHERE NOT EXISTS (SELECT 1 FROM weft.edge e WHERE e.upstream = i.id OFFSET 0)
), living AS (
    DELETE FROM weft.live l USING m WHERE l.id BETWEEN m.id AND m.id RETURNING l.id, l.has
), ended AS (
    DELETE FROM weft.outcome o USING m WHERE o.id BETWEEN m.id AND m.id RETURNING o.id, o.has
), executions AS (
    DELETE FROM weft.execution e USING m WHERE e.id BETWEEN m.id AND m.id
), known AS (
    SELECT id, has FROM living UNION ALL SELECT id, has FROM ended
), @{each side_removed} gone AS (
    DELETE FROM weft.node n USING m WHERE n.id BETWEEN m.id AND m.id RETURNING n.id, m.namespace
)
SELECT id, namespace FROM gone;

-- name: purge_flows (flow uuid[])
-- returns: id uuid
-- The flows themselves, of these, that have nothing left. A member that another transaction is about to
-- remove still counts: then the flow goes with a later batch.
WITH m AS MATERIALIZED (
    SELECT f.id FROM unnest(:flow) AS i(flow)
     CROSS JOIN LATERAL (SELECT d.id FROM weft.flow d
                          WHERE d.id = i.flow AND d.state = @WEFT_FLOW_REMOVING
                            AND NOT EXISTS (SELECT 1 FROM weft.node n
                                             WHERE n.flow = d.id AND n.k >= 0 OFFSET 0)
                            AND NOT EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = d.id OFFSET 0)
                            AND NOT EXISTS (SELECT 1 FROM weft.cancel_group g WHERE g.flow = d.id OFFSET 0)
                            FOR UPDATE SKIP LOCKED) f
)
DELETE FROM weft.flow d USING m WHERE d.id BETWEEN m.id AND m.id RETURNING d.id;

-- name: purge_left (flow uuid[], most int)
-- returns: count bigint
-- How many members are there all the same, up to most: others hold them. Locks nothing.
SELECT count(*)
  FROM (SELECT 1
          FROM unnest(:flow) AS i(flow)
         CROSS JOIN LATERAL (SELECT 1 FROM weft.node n
                              WHERE n.flow = i.flow AND n.k >= 0 LIMIT :most) d
         LIMIT :most) x;
