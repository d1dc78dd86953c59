-- Retention: outcomes that were kept long enough are removed, with all rows that mention them. Members of a flow go
-- with it: see flow_scan.sql.

-- name: retention_groups (namespace int)
-- returns: queue int, policy int, state smallint, oldest bigint, namespace int, lane_us bigint
-- How long an outcome is kept follows from its lane, its policy and its state. This hops over the
-- groups of these in the index, so its cost follows their number and never the history's length.
-- namespace 0: all. Locks nothing.
WITH RECURSIVE hop AS (
    (SELECT queue, policy, state, finished FROM weft.outcome WHERE flow IS NULL
      ORDER BY queue, policy, state, finished LIMIT 1)
    UNION ALL
    SELECT n.queue, n.policy, n.state, n.finished
      FROM hop
     CROSS JOIN LATERAL (SELECT o.queue, o.policy, o.state, o.finished FROM weft.outcome o
                          WHERE o.flow IS NULL
                            AND (o.queue, o.policy, o.state) > (hop.queue, hop.policy, hop.state)
                          ORDER BY o.queue, o.policy, o.state, o.finished LIMIT 1) n
)
SELECT h.queue, h.policy, h.state, h.finished, q.namespace, coalesce(l.retention_us, 0)
  FROM hop h
 CROSS JOIN LATERAL (SELECT lane, namespace FROM weft.queue WHERE id = h.queue OFFSET 0) q
  LEFT JOIN LATERAL (SELECT retention_us FROM weft.lane WHERE id = q.lane OFFSET 0) l ON true
 WHERE :namespace = 0 OR q.namespace = :namespace;

-- fragment: retention_partition (id)
(:partition_last = 0 OR weft.partition(@id) BETWEEN :partition_first AND :partition_last)

-- name: retention_take (place int[], queue int[], policy int[], state smallint[], since bigint[], until bigint[], partition_first int, partition_last int, batch int)
-- returns: place int, id uuid, finished bigint, bytes int, has smallint, key text?
-- The oldest of each group, group after group. SKIP LOCKED and the predicate beside it: replicas
-- share the work, and an execution that was replayed a moment ago is left alone. since is where
-- this pass has got to: without it each batch would begin at the rows that it has just removed.
SELECT o.place, o.id, o.finished,
       coalesce(octet_length(o.result), 0) + coalesce(octet_length(e.payload), 0),
       o.has, e.key
  FROM (SELECT g.place, d.*
          FROM unnest(:place, :queue, :policy, :state, :since, :until)
            AS g(place, queue, policy, state, since, until)
         CROSS JOIN LATERAL (SELECT x.id, x.finished, x.result, x.has
                               FROM weft.outcome x
                              WHERE x.flow IS NULL AND x.queue = g.queue AND x.policy = g.policy
                                AND x.state = g.state AND x.finished BETWEEN g.since AND g.until
                                AND @{retention_partition x.id}
                              ORDER BY x.finished LIMIT :batch
                                FOR UPDATE SKIP LOCKED) d
         LIMIT :batch) o
  LEFT JOIN LATERAL (SELECT key, payload FROM weft.execution WHERE id = o.id OFFSET 0) e ON true;

-- fragment: side_removed (table, bit)
-- Removes the rows of a table beside executions. known: the executions, with their `has`.
gone_@table AS (
    DELETE FROM weft.@table s USING known k WHERE k.has & @bit <> 0 AND s.id BETWEEN k.id AND k.id
    RETURNING 1
),

-- fragment: side_count (table, bit)
UNION ALL SELECT @bit, count(*) FROM gone_@table

-- name: retention_remove (id uuid[], has smallint[], namespace int[], key text?[])
-- returns: what int, removed bigint
-- Every table of src/core/tables.def that a single execution may be in, once. The outcomes are locked by this
-- transaction, so no other one writes about these executions. A key goes only if it still is this execution's;
-- a submission of the same key that waits for it holds nothing that is wanted here.
-- what: 0 for keys, else the bit of the table
WITH known AS (
    SELECT i.id, i.has FROM unnest(:id, :has) AS i(id, has)
), outcomes AS (
    DELETE FROM weft.outcome o USING known k WHERE o.id BETWEEN k.id AND k.id
), executions AS (
    DELETE FROM weft.execution e USING known k WHERE e.id BETWEEN k.id AND k.id
), @{each side_removed} claims AS (
    DELETE FROM weft.key k USING unnest(:id, :namespace, :key) AS i(id, namespace, key)
     WHERE i.key IS NOT NULL AND k.namespace BETWEEN i.namespace AND i.namespace
       AND k.key = i.key AND k.id = i.id
    RETURNING 1
)
SELECT 0, count(*) FROM claims
@{each side_count};

-- name: spans_remove (namespace int[], first uuid[], last uuid[])
-- Spans that end between two ids of a namespace, when nothing is left in them. Runs after the statement
-- that removed executions, so that it sees its effect.
DELETE FROM weft.span s
 USING unnest(:namespace, :first, :last) AS i(namespace, first, last)
 WHERE s.namespace BETWEEN i.namespace AND i.namespace AND s.last BETWEEN i.first AND i.last
   AND NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id BETWEEN s.first AND s.last OFFSET 0);

-- name: retention_left (queue int[], policy int[], state smallint[], until bigint[], partition_first int, partition_last int, most int)
-- returns: count bigint
-- How many are due all the same, up to most: others hold them. Locks nothing.
SELECT count(*)
  FROM (SELECT 1
          FROM unnest(:queue, :policy, :state, :until) AS g(queue, policy, state, until)
         CROSS JOIN LATERAL (SELECT 1 FROM weft.outcome x
                              WHERE x.flow IS NULL AND x.queue = g.queue AND x.policy = g.policy
                                AND x.state = g.state AND x.finished <= g.until
                                AND @{retention_partition x.id}
                              LIMIT :most) d
         LIMIT :most) x;
