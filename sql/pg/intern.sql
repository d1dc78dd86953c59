-- Interned rows: looked up, and added in transactions of their own. They are never changed, and
-- deleted only long after they were retired (see unused.h), so nothing is locked; ON CONFLICT waits
-- for a concurrent adder and then finds its row.

-- name: name_find (sort smallint[], namespace int[], text text[])
-- returns: id int, sort smallint, namespace int, text text, retired int
SELECT n.id, n.sort, n.namespace, n.text,
       EXISTS (SELECT 1 FROM weft.retired r
                WHERE r.what = @WEFT_INTERNED_NAME AND r.id = n.id)::int
  FROM unnest(:sort, :namespace, :text) AS w(sort, namespace, text)
 CROSS JOIN LATERAL (SELECT * FROM weft.name
                      WHERE sort = w.sort AND namespace = w.namespace AND text = w.text OFFSET 0) n;

-- name: name_add (sort smallint[], namespace int[], text text[])
-- Sorted, so that two adders of the same names wait for each other in one order.
INSERT INTO weft.name (sort, namespace, text)
SELECT * FROM unnest(:sort, :namespace, :text) AS w(sort, namespace, text) ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING;

-- name: name_load (id int[])
-- returns: id int, sort smallint, namespace int, text text, retired int
SELECT n.id, n.sort, n.namespace, n.text,
       EXISTS (SELECT 1 FROM weft.retired r
                WHERE r.what = @WEFT_INTERNED_NAME AND r.id = n.id)::int
  FROM unnest(:id) AS w(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.name WHERE id = w.id OFFSET 0) n;

-- name: policy_find (text text[])
-- returns: id int, text text
SELECT p.id, p.text
  FROM unnest(:text) AS w(text)
 CROSS JOIN LATERAL (SELECT * FROM weft.policy WHERE text = w.text OFFSET 0) p;

-- name: policy_add (text text[], lease_us bigint[], timeout_us bigint[])
INSERT INTO weft.policy (text, lease_us, timeout_us)
SELECT * FROM unnest(:text, :lease_us, :timeout_us) AS w(text, lease_us, timeout_us) ORDER BY 1
    ON CONFLICT DO NOTHING;

-- name: policy_load (id int[])
-- returns: id int, text text
SELECT p.id, p.text
  FROM unnest(:id) AS w(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.policy WHERE id = w.id OFFSET 0) p;

-- name: queue_find (namespace int[], lane int[], kind text[], route int[], tenant int[])
-- returns: id int, namespace int, lane int, kind text, route int, tenant int, retired int
SELECT q.id, q.namespace, q.lane, q.kind, q.route, q.tenant,
       EXISTS (SELECT 1 FROM weft.retired r
                WHERE r.what = @WEFT_INTERNED_QUEUE AND r.id = q.id)::int
  FROM unnest(:namespace, :lane, :kind, :route, :tenant) AS w(namespace, lane, kind, route, tenant)
 CROSS JOIN LATERAL (SELECT * FROM weft.queue
                      WHERE namespace = w.namespace AND lane = w.lane AND kind = w.kind
                        AND route = w.route AND tenant = w.tenant OFFSET 0) q;

-- name: queue_add (namespace int[], lane int[], kind text[], route int[], tenant int[])
INSERT INTO weft.queue (namespace, lane, kind, route, tenant)
SELECT * FROM unnest(:namespace, :lane, :kind, :route, :tenant) AS w(namespace, lane, kind, route, tenant)
 ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT DO NOTHING;

-- name: queue_load (id int[])
-- returns: id int, namespace int, lane int, kind text, route int, tenant int, retired int
SELECT q.id, q.namespace, q.lane, q.kind, q.route, q.tenant,
       EXISTS (SELECT 1 FROM weft.retired r
                WHERE r.what = @WEFT_INTERNED_QUEUE AND r.id = q.id)::int
  FROM unnest(:id) AS w(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.queue WHERE id = w.id OFFSET 0) q;

-- name: namespace_queues (namespace int, most int)
-- returns: queues bigint
-- How many queues a namespace has; the count stops at `most`.
SELECT count(*) FROM (SELECT 1 FROM weft.queue WHERE namespace = :namespace LIMIT :most) AS q;

-- name: retired_keep (what smallint[], id int[])
-- Retired rows are wanted again. Sorted, so that two transactions that want the same rows wait in one order.
-- Waits for a remover that has the row; the caller then adds the removed name again.
WITH kept AS MATERIALIZED (
    SELECT r.what, r.id
      FROM weft.retired r JOIN unnest(:what, :id) AS w(what, id) ON r.what = w.what AND r.id = w.id
     ORDER BY 1, 2 FOR UPDATE OF r
)
DELETE FROM weft.retired r USING kept k WHERE r.what = k.what AND r.id = k.id;

-- name: namespace_workers (namespace int, most int)
-- returns: workers bigint
-- How many names of workers a namespace has; the count stops at `most`.
SELECT count(*) FROM (SELECT 1 FROM weft.name WHERE sort = @WEFT_NAME_WORKER AND namespace = :namespace LIMIT :most) AS n;
