-- The twins of sql/pg/retention.sql.

-- name: retention_groups (namespace int)
-- returns: queue int, policy int, state smallint, oldest bigint, namespace int, lane_us bigint
-- Each hop finds the next row of the index by its number, because a step of a recursion has one
-- subquery of one column. Without the + signs SQLite would use the index for the first column alone
-- and walk through a queue's whole history; so it would without a latest possible `finished`, because
-- it seeks to the first row that equals the bound and only then compares.
WITH RECURSIVE hop(num) AS (
    SELECT (SELECT num FROM outcome WHERE flow IS NULL ORDER BY queue, policy, state, finished LIMIT 1)
    UNION ALL
    SELECT (SELECT n.num FROM outcome n
             WHERE n.flow IS NULL AND (n.queue, n.policy, n.state, n.finished)
                   > (+o.queue, +o.policy, +o.state, 9223372036854775807)
             ORDER BY n.queue, n.policy, n.state, n.finished LIMIT 1)
      FROM hop CROSS JOIN outcome o ON o.num = hop.num
)
SELECT o.queue, o.policy, o.state, o.finished, q.namespace, coalesce(l.retention_us, 0)
  FROM hop CROSS JOIN outcome o ON o.num = hop.num CROSS JOIN queue q ON q.id = o.queue
  LEFT JOIN lane l ON l.id = q.lane
 WHERE :namespace = 0 OR q.namespace = :namespace;

-- fragment: retention_partition (id)
(:partition_last = 0 OR weft_partition(@id) BETWEEN :partition_first AND :partition_last)

-- name: retention_take (place int[], queue int[], policy int[], state smallint[], since bigint[], until bigint[], partition_first int, partition_last int, batch int)
-- returns: place int, id uuid, finished bigint, bytes int, has smallint, key text?
SELECT i.place, e.id, o.finished, coalesce(length(o.result), 0) + coalesce(length(e.payload), 0),
       o.has, e.key
  FROM input i CROSS JOIN outcome o CROSS JOIN execution e ON e.num = o.num
 WHERE o.flow IS NULL AND o.queue = i.queue AND o.policy = i.policy AND o.state = i.state
   AND o.finished BETWEEN i.since AND i.until
   AND @{retention_partition e.id}
 LIMIT :batch;

-- fragment: side_removed (table, bit)
DELETE FROM @table WHERE id IN (SELECT i.id FROM input i WHERE i.has & @bit <> 0);
SELECT @bit, changes();

-- name: retention_remove (id uuid[], has smallint[], namespace int[], key text?[])
-- returns: what int, removed bigint
@{each side_removed}
DELETE FROM key
 WHERE (namespace, key) IN (SELECT i.namespace, i.key FROM input i WHERE i.key IS NOT NULL)
   AND id IN (SELECT i.id FROM input i);
SELECT 0, changes();
DELETE FROM outcome
 WHERE num IN (SELECT e.num FROM input i CROSS JOIN execution e ON e.id = i.id);
DELETE FROM execution WHERE id IN (SELECT i.id FROM input i);

-- name: spans_remove (namespace int[], first uuid[], last uuid[])
DELETE FROM span
 WHERE namespace = :namespace AND last BETWEEN :first AND :last
   AND NOT EXISTS (SELECT 1 FROM execution e WHERE e.id BETWEEN span.first AND span.last);

-- name: retention_left (queue int[], policy int[], state smallint[], until bigint[], partition_first int, partition_last int, most int)
-- returns: count bigint
SELECT count(*)
  FROM (SELECT 1
          FROM input i CROSS JOIN outcome o CROSS JOIN execution e ON e.num = o.num
         WHERE o.flow IS NULL AND o.queue = i.queue AND o.policy = i.policy AND o.state = i.state
           AND o.finished <= i.until
           AND @{retention_partition e.id}
         LIMIT :most);
