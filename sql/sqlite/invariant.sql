-- The twins of sql/pg/invariant.sql. Living rows and outcomes are keyed by number, so a place among
-- them is that of an execution, and one without an execution has no id to tell: it counts as of
-- partition 0.

-- name: sample_bounds (namespace int?)
-- returns: first uuid?, last uuid?, first_live uuid?, last_live uuid?, first_outcome uuid?, last_outcome uuid?, first_attempt uuid?, last_attempt uuid?, first_progress uuid?, last_progress uuid?, first_suspension uuid?, last_suspension uuid?, first_resumption uuid?, last_resumption uuid?, first_waitpoint uuid?, last_waitpoint uuid?, first_signal uuid?, last_signal uuid?, first_cost uuid?, last_cost uuid?, first_detail uuid?, last_detail uuid?, first_namespace int?, first_key text?, last_namespace int?, last_key text?
SELECT (SELECT min(id) FROM execution), (SELECT max(id) FROM execution),
       (SELECT coalesce(e.id, zeroblob(16)) FROM live l LEFT JOIN execution e ON e.num = l.num
         ORDER BY l.num LIMIT 1),
       (SELECT coalesce(e.id, zeroblob(16)) FROM live l LEFT JOIN execution e ON e.num = l.num
         ORDER BY l.num DESC LIMIT 1),
       (SELECT coalesce(e.id, zeroblob(16)) FROM outcome o LEFT JOIN execution e ON e.num = o.num
         ORDER BY o.num LIMIT 1),
       (SELECT coalesce(e.id, zeroblob(16)) FROM outcome o LEFT JOIN execution e ON e.num = o.num
         ORDER BY o.num DESC LIMIT 1),
       (SELECT min(id) FROM attempt), (SELECT max(id) FROM attempt),
       (SELECT min(id) FROM progress), (SELECT max(id) FROM progress),
       (SELECT min(id) FROM suspension), (SELECT max(id) FROM suspension),
       (SELECT min(id) FROM resumption), (SELECT max(id) FROM resumption),
       (SELECT min(id) FROM waitpoint), (SELECT max(id) FROM waitpoint),
       (SELECT min(id) FROM signal), (SELECT max(id) FROM signal),
       (SELECT min(id) FROM cost), (SELECT max(id) FROM cost),
       (SELECT min(id) FROM detail), (SELECT max(id) FROM detail),
       f.namespace, f.key, l.namespace, l.key
  FROM (SELECT 1) one
  LEFT JOIN (SELECT k.namespace, k.key FROM key k
              WHERE k.namespace BETWEEN coalesce(:namespace, 0) AND coalesce(:namespace, 2147483647)
              ORDER BY k.namespace, k.key LIMIT 1) f
  LEFT JOIN (SELECT k.namespace, k.key FROM key k
              WHERE k.namespace BETWEEN coalesce(:namespace, 0) AND coalesce(:namespace, 2147483647)
              ORDER BY k.namespace DESC, k.key DESC LIMIT 1) l;

-- fragment: sample_partition ()
substr(hex(substr(w.id, 7, 2)), 2, 2) BETWEEN printf('%02X', :first) AND printf('%02X', :last)

-- fragment: side_orphans (table, bit)
UNION ALL
SELECT '@table without execution', w.id, @bit, NULL, NULL
  FROM (SELECT * FROM (SELECT s.id FROM @table s WHERE s.id >= :@table ORDER BY s.id LIMIT :look)
        UNION ALL
        SELECT * FROM (SELECT s.id FROM @table s WHERE s.id < :@table ORDER BY s.id LIMIT :look)
        LIMIT :look) w
 WHERE @{sample_partition}
   AND :namespace IS NULL
   AND NOT EXISTS (SELECT 1 FROM execution e WHERE e.id = w.id)

-- name: sample_check (execution uuid, live uuid, outcome uuid, attempt uuid, progress uuid, suspension uuid, resumption uuid, waitpoint uuid, signal uuid, cost uuid, detail uuid, key_namespace int, key text, look int, batch int, namespace int?, first int, last int)
-- returns: problem text?, id uuid?, number bigint, namespace int, key text?
WITH sample AS MATERIALIZED (
    SELECT w.num, w.id
      FROM (SELECT * FROM (SELECT e.num, e.id, e.queue FROM execution e WHERE e.id >= :execution
                            ORDER BY e.id LIMIT :look)
            UNION ALL
            SELECT * FROM (SELECT e.num, e.id, e.queue FROM execution e WHERE e.id < :execution
                            ORDER BY e.id LIMIT :look)
            LIMIT :look) w
     WHERE @{sample_partition}
       AND (:namespace IS NULL OR (SELECT q.namespace FROM queue q WHERE q.id = w.queue) = :namespace)
     LIMIT :batch
), facts AS MATERIALIZED (
    SELECT s.id, l.epoch AS living, l.state, o.epoch AS over, p.epoch AS told,
           CASE WHEN coalesce(l.has, o.has, -1) & @WEFT_HAS_ATTEMPT <> 0
                THEN (SELECT max(a.epoch) FROM attempt a WHERE a.id = s.id) END AS ended,
           EXISTS (SELECT 1 FROM draining d WHERE d.id = s.id AND d.epoch = l.epoch) AS drains,
           o.held AND o.has & @WEFT_HAS_ATTEMPT <> 0
           AND EXISTS (SELECT 1 FROM attempt x
                        WHERE x.id = s.id AND x.epoch = o.epoch AND x.held) AS twice
      FROM sample s
      LEFT JOIN live l ON l.num = s.num
      LEFT JOIN outcome o ON o.num = s.num
      LEFT JOIN progress p ON p.id = s.id AND coalesce(l.has, o.has, -1) & @WEFT_HAS_PROGRESS <> 0
), place AS MATERIALIZED (
    SELECT coalesce((SELECT num FROM execution WHERE id >= :live ORDER BY id LIMIT 1), 0) AS live,
           coalesce((SELECT num FROM execution WHERE id >= :outcome ORDER BY id LIMIT 1), 0) AS outcome
)
SELECT NULL, coalesce((SELECT max(s.id) FROM sample s WHERE s.id < :execution),
                      (SELECT max(s.id) FROM sample s)),
       (SELECT count(*) FROM sample), NULL, NULL
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
SELECT 'two ends of one lease', f.id, NULL, NULL, NULL FROM facts f
 WHERE f.twice
UNION ALL
SELECT 'live row without execution', NULL, NULL, NULL, NULL
  FROM (SELECT * FROM (SELECT l.num, l.queue FROM live l WHERE l.num >= (SELECT live FROM place)
                        ORDER BY l.num LIMIT :look)
        UNION ALL
        SELECT * FROM (SELECT l.num, l.queue FROM live l WHERE l.num < (SELECT live FROM place)
                        ORDER BY l.num LIMIT :look)
        LIMIT :look) w
 WHERE :first = 0
   AND (:namespace IS NULL OR (SELECT q.namespace FROM queue q WHERE q.id = w.queue) = :namespace)
   AND NOT EXISTS (SELECT 1 FROM execution e WHERE e.num = w.num)
UNION ALL
SELECT 'outcome without execution', NULL, NULL, NULL, NULL
  FROM (SELECT * FROM (SELECT o.num, o.queue FROM outcome o WHERE o.num >= (SELECT outcome FROM place)
                        ORDER BY o.num LIMIT :look)
        UNION ALL
        SELECT * FROM (SELECT o.num, o.queue FROM outcome o WHERE o.num < (SELECT outcome FROM place)
                        ORDER BY o.num LIMIT :look)
        LIMIT :look) w
 WHERE :first = 0
   AND (:namespace IS NULL OR (SELECT q.namespace FROM queue q WHERE q.id = w.queue) = :namespace)
   AND NOT EXISTS (SELECT 1 FROM execution e WHERE e.num = w.num)
@{each side_orphans}
UNION ALL
SELECT 'key without its execution', w.id, NULL, w.namespace, w.key
  FROM (SELECT * FROM (SELECT k.namespace, k.key, k.id FROM key k WHERE (k.namespace, k.key) >= (:key_namespace, :key)
                          AND k.namespace <= coalesce(:namespace, 2147483647)
                        ORDER BY k.namespace, k.key LIMIT :look)
        UNION ALL
        SELECT * FROM (SELECT k.namespace, k.key, k.id FROM key k WHERE (k.namespace, k.key) < (:key_namespace, :key)
                          AND k.namespace >= coalesce(:namespace, 0)
                        ORDER BY k.namespace, k.key LIMIT :look)
        LIMIT :look) w
 WHERE @{sample_partition}
   AND NOT EXISTS (SELECT 1 FROM execution e WHERE e.id = w.id AND e.key = w.key);

-- fragment: side_orphans_removed (table, bit)
DELETE FROM @table
 WHERE id = :id AND :side = @bit AND NOT EXISTS (SELECT 1 FROM execution e WHERE e.id = :id)
RETURNING id;

-- name: orphan_rows (id uuid[], side smallint[])
-- returns: id uuid
@{each side_orphans_removed}

-- name: orphan_keys (namespace int[], key text[], id uuid[])
-- returns: id uuid
DELETE FROM key
 WHERE namespace = :namespace AND key = :key AND id = :id
   AND NOT EXISTS (SELECT 1 FROM execution e WHERE e.id = :id)
RETURNING id;
