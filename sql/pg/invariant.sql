-- The invariants of a sample, and the one kind of damage that has a safe repair. The words are the
-- same as in check.sql, which looks at all rows. OFFSET 0 keeps a probe by key: without it the
-- planner may walk the other table for each row, or read all of it into a hash.

-- name: sample_bounds (namespace int?)
-- returns: first uuid?, last uuid?, first_live uuid?, last_live uuid?, first_outcome uuid?, last_outcome uuid?, first_attempt uuid?, last_attempt uuid?, first_progress uuid?, last_progress uuid?, first_suspension uuid?, last_suspension uuid?, first_resumption uuid?, last_resumption uuid?, first_waitpoint uuid?, last_waitpoint uuid?, first_signal uuid?, last_signal uuid?, first_cost uuid?, last_cost uuid?, first_detail uuid?, last_detail uuid?, first_namespace int?, first_key text?, last_namespace int?, last_key text?
-- The ends of each key. Locks nothing.
SELECT (SELECT id FROM weft.execution ORDER BY id LIMIT 1),
       (SELECT id FROM weft.execution ORDER BY id DESC LIMIT 1),
       (SELECT id FROM weft.live ORDER BY id LIMIT 1),
       (SELECT id FROM weft.live ORDER BY id DESC LIMIT 1),
       (SELECT id FROM weft.outcome ORDER BY id LIMIT 1),
       (SELECT id FROM weft.outcome ORDER BY id DESC LIMIT 1),
       (SELECT id FROM weft.attempt ORDER BY id, epoch, replay LIMIT 1),
       (SELECT id FROM weft.attempt ORDER BY id DESC, epoch DESC, replay DESC LIMIT 1),
       (SELECT id FROM weft.progress ORDER BY id LIMIT 1),
       (SELECT id FROM weft.progress ORDER BY id DESC LIMIT 1),
       (SELECT id FROM weft.suspension ORDER BY id LIMIT 1),
       (SELECT id FROM weft.suspension ORDER BY id DESC LIMIT 1),
       (SELECT id FROM weft.resumption ORDER BY id LIMIT 1),
       (SELECT id FROM weft.resumption ORDER BY id DESC LIMIT 1),
       (SELECT id FROM weft.waitpoint ORDER BY id LIMIT 1),
       (SELECT id FROM weft.waitpoint ORDER BY id DESC LIMIT 1),
       (SELECT id FROM weft.signal ORDER BY id LIMIT 1),
       (SELECT id FROM weft.signal ORDER BY id DESC LIMIT 1),
       (SELECT id FROM weft.cost ORDER BY id LIMIT 1),
       (SELECT id FROM weft.cost ORDER BY id DESC LIMIT 1),
       (SELECT id FROM weft.detail ORDER BY id LIMIT 1),
       (SELECT id FROM weft.detail ORDER BY id DESC LIMIT 1),
       f.namespace, f.key, l.namespace, l.key
  FROM (SELECT) one
  LEFT JOIN LATERAL (SELECT k.namespace, k.key FROM weft.key k
                      WHERE k.namespace BETWEEN coalesce(:namespace, 0) AND coalesce(:namespace, 2147483647)
                      ORDER BY k.namespace, k.key LIMIT 1) f ON true
  LEFT JOIN LATERAL (SELECT k.namespace, k.key FROM weft.key k
                      WHERE k.namespace BETWEEN coalesce(:namespace, 0) AND coalesce(:namespace, 2147483647)
                      ORDER BY k.namespace DESC, k.key DESC LIMIT 1) l ON true;

-- fragment: side_orphans (table, bit)
UNION ALL
SELECT '@table without execution', w.id, @bit, NULL, NULL
  FROM ((SELECT s.id FROM weft.@table s WHERE s.id >= :@table ORDER BY s.id LIMIT :look)
        UNION ALL
        (SELECT s.id FROM weft.@table s WHERE s.id < :@table ORDER BY s.id LIMIT :look)
        LIMIT :look) w
 WHERE weft.partition(w.id) BETWEEN :first AND :last AND :namespace IS NULL
   AND NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id = w.id OFFSET 0)

-- name: sample_check (execution uuid, live uuid, outcome uuid, attempt uuid, progress uuid, suspension uuid, resumption uuid, waitpoint uuid, signal uuid, cost uuid, detail uuid, key_namespace int, key text, look int, batch int, namespace int?, first int, last int)
-- returns: problem text?, id uuid?, number bigint, namespace int, key text?
-- One statement, so one snapshot: an execution that ends or is replayed meanwhile is seen as it
-- was before or as it is after. Each table is walked along its key from a place of its own, past
-- the end from the beginning again, over at most `look` rows, of which at most `batch` that fit are
-- taken. The row without a problem tells how many executions were looked at, and where the
-- walk ended; number of a row beside executions is the bit of its table. Tables beside are probed only where
-- `has` has their bit. Locks nothing. A row without an execution is of no namespace, unless it has a column for it.
WITH sample AS MATERIALIZED (
    SELECT w.id
      FROM ((SELECT e.id, e.queue FROM weft.execution e WHERE e.id >= :execution ORDER BY e.id LIMIT :look)
            UNION ALL
            (SELECT e.id, e.queue FROM weft.execution e WHERE e.id < :execution ORDER BY e.id LIMIT :look)
            LIMIT :look) w
     WHERE weft.partition(w.id) BETWEEN :first AND :last
       AND (:namespace IS NULL
            OR (SELECT q.namespace FROM weft.queue q WHERE q.id = w.queue) = :namespace)
     LIMIT :batch
), facts AS MATERIALIZED (
    SELECT s.id, l.epoch AS living, l.state, o.epoch AS over, o.held, p.epoch AS told, a.epoch AS ended,
           EXISTS (SELECT 1 FROM weft.draining d WHERE d.id = s.id AND d.epoch = l.epoch OFFSET 0) AS drains,
           o.held AND o.has & @WEFT_HAS_ATTEMPT <> 0
           AND EXISTS (SELECT 1 FROM weft.attempt x
                        WHERE x.id = s.id AND x.epoch = o.epoch AND x.held OFFSET 0) AS twice
      FROM sample s
      LEFT JOIN LATERAL (SELECT epoch, state, has FROM weft.live WHERE id = s.id OFFSET 0) l ON true
      LEFT JOIN LATERAL (SELECT epoch, held, has FROM weft.outcome WHERE id = s.id OFFSET 0) o ON true
      LEFT JOIN LATERAL (SELECT epoch FROM weft.progress
                          WHERE id = s.id AND coalesce(l.has, o.has, -1) & @WEFT_HAS_PROGRESS <> 0 OFFSET 0) p ON true
      LEFT JOIN LATERAL (SELECT epoch FROM weft.attempt
                          WHERE id = s.id AND coalesce(l.has, o.has, -1) & @WEFT_HAS_ATTEMPT <> 0
                          ORDER BY epoch DESC, replay DESC LIMIT 1) a ON true
)
SELECT NULL::text, coalesce((SELECT s.id FROM sample s WHERE s.id < :execution ORDER BY s.id DESC LIMIT 1),
                            (SELECT s.id FROM sample s ORDER BY s.id DESC LIMIT 1)),
       (SELECT count(*) FROM sample), NULL::int, NULL::text
UNION ALL
SELECT 'in neither live nor outcome', f.id, NULL, NULL, NULL FROM facts f
 WHERE f.living IS NULL AND f.over IS NULL
UNION ALL
SELECT 'in live and in outcome', f.id, NULL, NULL, NULL FROM facts f
 WHERE f.living IS NOT NULL AND f.over IS NOT NULL
UNION ALL
SELECT 'attempt of an epoch that was never given', f.id, NULL, NULL, NULL FROM facts f
 WHERE f.ended > coalesce(f.living, f.over)
UNION ALL
SELECT 'progress of an epoch that was never given', f.id, NULL, NULL, NULL FROM facts f
 WHERE f.told > coalesce(f.living, f.over)
UNION ALL
SELECT 'running under an epoch that has ended', f.id, NULL, NULL, NULL FROM facts f
 WHERE f.state = @running AND (f.ended = f.living OR f.drains)
UNION ALL
SELECT 'two ends of one lease', f.id, NULL, NULL, NULL FROM facts f WHERE f.twice
UNION ALL
SELECT 'live row without execution', w.id, NULL, NULL, NULL
  FROM ((SELECT l.id, l.queue FROM weft.live l WHERE l.id >= :live ORDER BY l.id LIMIT :look)
        UNION ALL
        (SELECT l.id, l.queue FROM weft.live l WHERE l.id < :live ORDER BY l.id LIMIT :look)
        LIMIT :look) w
 WHERE weft.partition(w.id) BETWEEN :first AND :last
   AND (:namespace IS NULL OR (SELECT q.namespace FROM weft.queue q WHERE q.id = w.queue) = :namespace)
   AND NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id = w.id OFFSET 0)
UNION ALL
SELECT 'outcome without execution', w.id, NULL, NULL, NULL
  FROM ((SELECT o.id, o.queue FROM weft.outcome o WHERE o.id >= :outcome ORDER BY o.id LIMIT :look)
        UNION ALL
        (SELECT o.id, o.queue FROM weft.outcome o WHERE o.id < :outcome ORDER BY o.id LIMIT :look)
        LIMIT :look) w
 WHERE weft.partition(w.id) BETWEEN :first AND :last
   AND (:namespace IS NULL OR (SELECT q.namespace FROM weft.queue q WHERE q.id = w.queue) = :namespace)
   AND NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id = w.id OFFSET 0)
@{each side_orphans}
UNION ALL
SELECT 'key without its execution', w.id, NULL, w.namespace, w.key
  FROM ((SELECT k.namespace, k.key, k.id FROM weft.key k
          WHERE (k.namespace, k.key) >= (:key_namespace, :key)
            AND k.namespace <= coalesce(:namespace, 2147483647)
          ORDER BY k.namespace, k.key LIMIT :look)
        UNION ALL
        (SELECT k.namespace, k.key, k.id FROM weft.key k
          WHERE (k.namespace, k.key) < (:key_namespace, :key) AND k.namespace >= coalesce(:namespace, 0)
          ORDER BY k.namespace, k.key LIMIT :look)
        LIMIT :look) w
 WHERE weft.partition(w.id) BETWEEN :first AND :last
   AND NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id = w.id AND e.key = w.key OFFSET 0);

-- fragment: no_execution (id)
NOT EXISTS (SELECT 1 FROM weft.execution e WHERE e.id = @id OFFSET 0)
AND NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.id = @id OFFSET 0)
AND NOT EXISTS (SELECT 1 FROM weft.outcome o WHERE o.id = @id OFFSET 0)

-- fragment: side_orphans_removed (table, bit)
gone_@table AS (
    DELETE FROM weft.@table d
     USING (SELECT x.id
              FROM unnest(:id, :side) AS i(id, side)
             CROSS JOIN LATERAL (SELECT t.id FROM weft.@table t
                                  WHERE i.side = @bit AND t.id = i.id AND @{no_execution t.id}
                                    FOR UPDATE SKIP LOCKED) x) gone
     WHERE d.id BETWEEN gone.id AND gone.id
    RETURNING d.id
),

-- fragment: side_orphans_gone (table)
UNION ALL SELECT id FROM gone_@table

-- name: orphan_rows (id uuid[], side smallint[])
-- returns: id uuid
-- Removes rows beside executions that do not exist; side: the bit of their table. The writer of such a row
-- holds the lock of a row of `live` or `outcome`, which came in the transaction of its execution and goes with
-- it. So when one snapshot, that of this statement, shows the row and none of the three, none can come any
-- more: an id is minted once, and a submission under way has written no such row. While there is a row of
-- `live` or `outcome`, the row is the history of something that a person must look at.
WITH @{each side_orphans_removed} none AS (SELECT NULL::uuid AS id WHERE false)
SELECT id FROM none
@{each side_orphans_gone};

-- name: orphan_keys (namespace int[], key text[], id uuid[])
-- returns: id uuid
-- As orphan_rows: a submission takes its key and writes its execution in one transaction, so that
-- a snapshot shows both or neither. A key that is gone and was taken again meanwhile has another id.
DELETE FROM weft.key k
 USING (SELECT x.namespace, x.key
          FROM unnest(:namespace, :key, :id) AS i(namespace, key, id)
         CROSS JOIN LATERAL (SELECT t.namespace, t.key FROM weft.key t
                              WHERE t.namespace = i.namespace AND t.key = i.key AND t.id = i.id
                                AND @{no_execution t.id}
                                FOR UPDATE SKIP LOCKED) x) gone
 WHERE k.namespace BETWEEN gone.namespace AND gone.namespace AND k.key = gone.key
RETURNING k.id;
