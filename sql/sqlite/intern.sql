-- The twins of sql/pg/intern.sql.

-- name: name_find (sort smallint[], namespace int[], text text[])
-- returns: id int, sort smallint, namespace int, text text, retired int
SELECT id, sort, namespace, text,
       EXISTS (SELECT 1 FROM retired r WHERE r.what = @WEFT_INTERNED_NAME AND r.id = name.id)
  FROM name WHERE sort = :sort AND namespace = :namespace AND text = :text;

-- name: name_add (sort smallint[], namespace int[], text text[])
-- With the second namespace every row gets a span: see 0019-one-namespace.
INSERT INTO name (sort, namespace, text) VALUES (:sort, :namespace, :text) ON CONFLICT DO NOTHING;
INSERT OR REPLACE INTO span (namespace, last, first, count)
SELECT q.namespace, max(e.id), min(e.id), count(*)
  FROM execution e CROSS JOIN queue q ON q.id = e.queue
 WHERE :sort = @WEFT_NAME_NAMESPACE AND changes() > 0
   AND (SELECT count(*) FROM (SELECT 1 FROM name WHERE sort = @WEFT_NAME_NAMESPACE LIMIT 3)) = 2
 GROUP BY q.namespace, substr(e.id, 1, 6);

-- name: name_load (id int[])
-- returns: id int, sort smallint, namespace int, text text, retired int
SELECT id, sort, namespace, text,
       EXISTS (SELECT 1 FROM retired r WHERE r.what = @WEFT_INTERNED_NAME AND r.id = name.id)
  FROM name WHERE id = :id;

-- name: policy_find (text text[])
-- returns: id int, text text
SELECT id, text FROM policy WHERE text = :text;

-- name: policy_add (text text[], lease_us bigint[], timeout_us bigint[])
INSERT INTO policy (text, lease_us, timeout_us) VALUES (:text, :lease_us, :timeout_us) ON CONFLICT DO NOTHING;

-- name: policy_load (id int[])
-- returns: id int, text text
SELECT id, text FROM policy WHERE id = :id;

-- name: queue_find (namespace int[], lane int[], kind text[], route int[], tenant int[])
-- returns: id int, namespace int, lane int, kind text, route int, tenant int, retired int
SELECT id, namespace, lane, kind, route, tenant,
       EXISTS (SELECT 1 FROM retired r WHERE r.what = @WEFT_INTERNED_QUEUE AND r.id = queue.id)
  FROM queue
 WHERE namespace = :namespace AND lane = :lane AND kind = :kind AND route = :route AND tenant = :tenant;

-- name: queue_add (namespace int[], lane int[], kind text[], route int[], tenant int[])
INSERT INTO queue (namespace, lane, kind, route, tenant) VALUES (:namespace, :lane, :kind, :route, :tenant)
    ON CONFLICT DO NOTHING;

-- name: queue_load (id int[])
-- returns: id int, namespace int, lane int, kind text, route int, tenant int, retired int
SELECT id, namespace, lane, kind, route, tenant,
       EXISTS (SELECT 1 FROM retired r WHERE r.what = @WEFT_INTERNED_QUEUE AND r.id = queue.id)
  FROM queue WHERE id = :id;

-- name: namespace_queues (namespace int, most int)
-- returns: queues bigint
SELECT count(*) FROM (SELECT 1 FROM queue WHERE namespace = :namespace LIMIT :most) AS q;

-- name: retired_keep (what smallint[], id int[])
DELETE FROM retired WHERE what = :what AND id = :id;

-- name: namespace_workers (namespace int, most int)
-- returns: workers bigint
SELECT count(*) FROM (SELECT 1 FROM name WHERE sort = @WEFT_NAME_WORKER AND namespace = :namespace LIMIT :most) AS n;
