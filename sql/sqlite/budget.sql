-- The twins of sql/pg/budget.sql. The write lock of the file stands for the locks of budgets.

-- fragment: budget_columns (b)
@b.id, @b.namespace, @b.name, @b.matches, @b.lane, @b.kind, @b.tenant, @b.on_hard, @b.every_us, @b.months, @b.anchor,
@b.next_reset, @b.began, @b.period, @b.breaches, @b.soft_at, @b.hard_at, @b.cancelling

-- fragment: dimension_columns (d)
@d.id, @d.budget, @d.name, @d.hard, @d.soft, @d.estimate, @d.used, @d.reserved

-- fragment: budgets_charged ()
(SELECT d.budget FROM input i
           CROSS JOIN ledger g ON g.id = i.id AND g.epoch = i.epoch AND g.settled IS NULL
           CROSS JOIN budget_dimension d ON d.id = g.dimension AND NOT d.dropped)

-- fragment: not_running (g)
NOT EXISTS (SELECT 1 FROM execution e JOIN live l ON l.num = e.num
             WHERE e.id = @g.id AND l.epoch = @g.epoch AND l.state = @running)

-- fragment: counts (g)
-- Whether the dimension of a row of the ledger is in use.
EXISTS (SELECT 1 FROM budget_dimension d WHERE d.id = @g.dimension AND NOT d.dropped)

-- name: budget_lock (namespace int[], name text[])
-- returns: id int, namespace int, name text, matches bool, lane text?, kind text?, tenant text?, on_hard smallint, every_us bigint, months int, anchor bigint, next_reset bigint?, began bigint, period int, breaches bigint, soft_at bigint?, hard_at bigint?, cancelling bool
SELECT @{budget_columns b} FROM budget b WHERE b.namespace = :namespace AND b.name = :name;

-- name: budget_lock_due (now bigint, namespace int, most int)
-- returns: id int, namespace int, name text, matches bool, lane text?, kind text?, tenant text?, on_hard smallint, every_us bigint, months int, anchor bigint, next_reset bigint?, began bigint, period int, breaches bigint, soft_at bigint?, hard_at bigint?, cancelling bool
SELECT @{budget_columns b}
  FROM budget b
 WHERE b.next_reset IS NOT NULL AND b.next_reset <= :now AND (:namespace = 0 OR b.namespace = :namespace)
 ORDER BY b.next_reset LIMIT :most;

-- name: budget_list (namespace int, own text?, after text, most int)
-- returns: id int, namespace int, name text, matches bool, lane text?, kind text?, tenant text?, on_hard smallint, every_us bigint, months int, anchor bigint, next_reset bigint?, began bigint, period int, breaches bigint, soft_at bigint?, hard_at bigint?, cancelling bool
SELECT @{budget_columns b}
  FROM budget b
 WHERE b.namespace = :namespace AND b.name > :after AND b.name BETWEEN coalesce(:own, '') AND coalesce(:own, '~')
 ORDER BY b.name LIMIT :most;

-- name: budgets_matching ()
-- returns: version bigint, namespace int?, name text?, lane text?, kind text?, tenant text?
SELECT v.version, b.namespace, b.name, b.lane, b.kind, b.tenant FROM budget_version v LEFT JOIN budget b ON b.matches;

-- name: budgets_changed ()
UPDATE budget_version SET version = version + 1;

-- name: budgets_counted (namespace int)
-- returns: budgets bigint, matching bigint
SELECT count(*), coalesce(sum(matches), 0) FROM budget WHERE namespace = :namespace;

-- name: dimensions_of (namespace int[], name text[])
-- returns: id int, budget int, name text, hard bigint, soft bigint, estimate bigint, used bigint, reserved bigint
SELECT @{dimension_columns d}
  FROM budget b JOIN budget_dimension d ON d.budget = b.id AND NOT d.dropped
 WHERE b.namespace = :namespace AND b.name = :name ORDER BY d.name;

-- name: budget_put (namespace int, name text, matches bool, lane text?, kind text?, tenant text?, on_hard smallint, every_us bigint, months int, anchor bigint, next_reset bigint?, now bigint, oldest int)
-- returns: id int
UPDATE schema SET oldest_binary = :oldest WHERE oldest_binary < :oldest;
INSERT INTO budget (namespace, name, matches, lane, kind, tenant, on_hard, every_us, months, anchor, next_reset, began)
VALUES (:namespace, :name, :matches, :lane, :kind, :tenant, :on_hard, :every_us, :months, :anchor, :next_reset, :now)
    ON CONFLICT (namespace, name) DO UPDATE
   SET matches = excluded.matches, lane = excluded.lane, kind = excluded.kind, tenant = excluded.tenant,
       on_hard = excluded.on_hard, every_us = excluded.every_us, months = excluded.months, anchor = excluded.anchor,
       next_reset = excluded.next_reset, hard_at = NULL, soft_at = NULL, cancelling = 0
RETURNING id;

-- name: dimensions_put (budget int, name text[], hard bigint[], soft bigint[], estimate bigint[])
INSERT INTO budget_dimension (budget, name, hard, soft, estimate)
VALUES (:budget, :name, :hard, :soft, :estimate)
    ON CONFLICT (budget, name) WHERE NOT dropped DO UPDATE
   SET hard = excluded.hard, soft = excluded.soft, estimate = excluded.estimate;

-- name: ledger_widen (now bigint, budget int, name text[])
INSERT INTO ledger (id, epoch, dimension, period, reserved, total, earlier, changed)
SELECT DISTINCT x.id, x.epoch, n.id, b.period, 0, 0, 0, :now
  FROM budget b JOIN budget_dimension d ON d.budget = b.id AND NOT d.dropped
  JOIN ledger x ON x.dimension = d.id AND x.settled IS NULL
  JOIN budget_dimension n ON n.budget = b.id AND n.name = :name AND NOT n.dropped
 WHERE b.id = :budget
    ON CONFLICT DO NOTHING;

-- name: dimensions_drop (budget int, name text[])
UPDATE budget_dimension SET dropped = 1
 WHERE budget = :budget AND NOT dropped AND name NOT IN (SELECT i.name FROM input i);

-- name: budget_remove (namespace int, name text)
-- returns: id int
UPDATE budget_dimension SET dropped = 1
 WHERE budget = (SELECT id FROM budget WHERE namespace = :namespace AND name = :name);
DELETE FROM budget WHERE namespace = :namespace AND name = :name RETURNING id;

-- name: budget_mark (id int[], breaches bigint[], soft_at bigint?[], hard_at bigint?[], cancelling bool[])
UPDATE budget SET breaches = :breaches, soft_at = :soft_at, hard_at = :hard_at, cancelling = :cancelling WHERE id = :id;

-- name: budget_begin (now bigint, id int[], next_reset bigint?[], began bigint[])
UPDATE budget_dimension SET used = 0, stale = 1 WHERE budget = :id AND NOT dropped;
UPDATE ledger
   SET period = (SELECT period FROM budget WHERE id = :id) + 1, earlier = total, changed = :now
 WHERE settled IS NULL AND dimension IN (SELECT id FROM budget_dimension WHERE budget = :id AND NOT dropped);
UPDATE budget
   SET period = period + 1, next_reset = :next_reset, began = :began, breaches = 0, soft_at = NULL, hard_at = NULL,
       cancelling = 0
 WHERE id = :id;

-- name: budget_next ()
-- returns: next bigint?, cancelling bool
SELECT (SELECT next_reset FROM budget WHERE next_reset IS NOT NULL ORDER BY next_reset LIMIT 1),
       EXISTS (SELECT 1 FROM budget WHERE cancelling);

-- name: charge_heads (queue int[], depth int[])
-- returns: queue int, priority smallint, ord bigint, id uuid, costs bool
SELECT h.queue, h.priority, h.ord, e.id, h.has & @WEFT_HAS_COST <> 0
  FROM (SELECT num, queue, priority, ord, has FROM live
         WHERE queue = :queue AND state = @ready
         ORDER BY priority DESC, ord, num LIMIT :depth) h
 CROSS JOIN execution e ON e.num = h.num;

-- name: costs_of (id uuid[])
-- returns: id uuid, dimension text, amount bigint
SELECT id, dimension, amount FROM cost WHERE id = :id;

-- name: cost_add (id uuid[], dimension text[], amount bigint[])
INSERT INTO cost (id, dimension, amount) VALUES (:id, :dimension, :amount);
UPDATE live SET has = has | @WEFT_HAS_COST
 WHERE num = (SELECT num FROM execution WHERE id = :id) AND has & @WEFT_HAS_COST = 0;

-- name: budget_lock_charged (id uuid[], epoch int[])
-- returns: id int, namespace int, name text, matches bool, lane text?, kind text?, tenant text?, on_hard smallint, every_us bigint, months int, anchor bigint, next_reset bigint?, began bigint, period int, breaches bigint, soft_at bigint?, hard_at bigint?, cancelling bool
SELECT @{budget_columns b} FROM budget b WHERE b.id IN @{budgets_charged} ORDER BY b.id;

-- name: dimensions_charged (id uuid[], epoch int[])
-- returns: id int, budget int, name text, hard bigint, soft bigint, estimate bigint, used bigint, reserved bigint
SELECT @{dimension_columns d}
  FROM budget_dimension d WHERE NOT d.dropped AND d.budget IN @{budgets_charged} ORDER BY d.budget, d.name;

-- name: charges_of (id uuid[], epoch int[])
-- returns: id uuid, running bool, dimension int?, reserved bigint?, total bigint?
SELECT i.id, NOT @{not_running i}, g.dimension, g.reserved, g.total
  FROM input i LEFT JOIN ledger g ON g.id = i.id AND g.epoch = i.epoch AND g.settled IS NULL;

-- name: ledger_put (now bigint, id uuid[], epoch int[], dimension int[], period int[], reserved bigint[], total bigint[])
INSERT INTO ledger (id, epoch, dimension, period, reserved, total, earlier, changed)
VALUES (:id, :epoch, :dimension, :period, :reserved, :total, 0, :now)
    ON CONFLICT (id, epoch, dimension) DO UPDATE
   SET reserved = excluded.reserved, total = excluded.total, changed = excluded.changed;

-- name: sums_add (dimension int[], used bigint[], reserved bigint[])
UPDATE budget_dimension SET used = used + :used, reserved = reserved + :reserved WHERE id = :dimension;

-- fragment: ended_charges ()
-- Open rows of the ledger of a lease that has ended.
FROM ledger g
 WHERE g.id = :id AND g.epoch = :epoch AND g.settled IS NULL AND @{not_running g} AND @{counts g}

-- name: settle (now bigint, id uuid[], epoch int[])
-- returns: settled bigint, freed bool, full bool
SELECT count(*), coalesce(max(g.reserved > 0), 0),
       coalesce(max(g.reserved > 0 AND (SELECT d.hard > 0 AND d.used + d.reserved + max(d.estimate, g.reserved, 1) > d.hard
                                          FROM budget_dimension d WHERE d.id = g.dimension)), 0) @{ended_charges};
UPDATE budget_dimension
   SET reserved = reserved - (SELECT g.reserved FROM ledger g
                               WHERE g.id = :id AND g.epoch = :epoch AND g.dimension = budget_dimension.id)
 WHERE id IN (SELECT g.dimension @{ended_charges});
UPDATE ledger SET reserved = 0, settled = :now, changed = :now
 WHERE id = :id AND epoch = :epoch AND dimension IN (SELECT g.dimension @{ended_charges});

-- name: ledger_walk (dimension int, id uuid, epoch int, most int)
-- returns: dimension int, id uuid, epoch int, ended bool
SELECT g.dimension, g.id, g.epoch, @{not_running g}
  FROM ledger g
 WHERE g.settled IS NULL AND (g.dimension, g.id, g.epoch) > (:dimension, :id, :epoch)
 ORDER BY g.dimension, g.id, g.epoch LIMIT :most;

-- name: budgets_cancelling (most int)
-- returns: id int, namespace int, name text, hard_at bigint?
SELECT id, namespace, name, hard_at FROM budget WHERE cancelling ORDER BY id LIMIT :most;

-- name: charges_running (budget int, most int)
-- returns: id uuid
SELECT g.id
  FROM budget_dimension d JOIN ledger g ON g.dimension = d.id AND g.settled IS NULL
 WHERE d.budget = :budget AND NOT d.dropped AND NOT @{not_running g}
 LIMIT :most;

-- name: cancelling_done (id int, hard_at bigint?)
UPDATE budget SET cancelling = 0 WHERE id = :id AND hard_at IS :hard_at;

-- name: ledger_read (namespace int, name text, first uuid, most int)
-- returns: id uuid, dimension text, reserved bigint, used bigint, settled bool, changed bigint
WITH RECURSIVE own(dimension, name, period) AS MATERIALIZED (
    SELECT d.id, d.name, b.period FROM budget b JOIN budget_dimension d ON d.budget = b.id AND NOT d.dropped
     WHERE b.namespace = :namespace AND b.name = :name
), page(id, n) AS ( -- hops from one id to the next of any dimension
    SELECT (SELECT min((SELECT g.id FROM ledger g
                         WHERE g.dimension = o.dimension AND g.period = o.period AND g.epoch > 0 AND g.id >= :first
                         ORDER BY g.id LIMIT 1)) FROM own o), 1
    UNION ALL
    SELECT (SELECT min((SELECT g.id FROM ledger g
                         WHERE g.dimension = o.dimension AND g.period = o.period AND g.epoch > 0 AND g.id > page.id
                         ORDER BY g.id LIMIT 1)) FROM own o), n + 1
      FROM page WHERE page.id IS NOT NULL AND n < :most
)
SELECT g.id, o.name, sum(g.reserved), sum(g.total - g.earlier), min(g.settled IS NOT NULL), max(g.changed)
  FROM page CROSS JOIN own o
 CROSS JOIN ledger g ON g.dimension = o.dimension AND g.period = o.period AND g.epoch > 0 AND g.id = page.id
 GROUP BY g.id, o.name ORDER BY g.id, o.name;

-- fragment: unswept ()
SELECT d.id, CASE WHEN d.dropped THEN 2147483647 ELSE (SELECT b.period FROM budget b WHERE b.id = d.budget) END AS upto
  FROM budget_dimension d WHERE d.dropped OR d.stale ORDER BY d.id LIMIT :dimensions

-- fragment: swept (d)
-- Dimensions without a row that is to be removed.
@d.id IN (SELECT u.id FROM (@{unswept}) u
           WHERE NOT EXISTS (SELECT 1 FROM ledger x WHERE x.dimension = u.id AND x.epoch > 0 AND x.period < u.upto))

-- name: ledger_sweep (most int, dimensions int)
-- returns: removed bigint
SELECT count(*) FROM (SELECT 1 FROM (@{unswept}) u CROSS JOIN ledger g ON g.dimension = u.id AND g.epoch > 0 AND g.period < u.upto LIMIT :most);
DELETE FROM ledger WHERE (id, epoch, dimension) IN (
    SELECT g.id, g.epoch, g.dimension
      FROM (@{unswept}) u CROSS JOIN ledger g ON g.dimension = u.id AND g.epoch > 0 AND g.period < u.upto LIMIT :most);
UPDATE budget_dimension SET stale = 0 WHERE NOT dropped AND @{swept budget_dimension};
DELETE FROM budget_dimension WHERE dropped AND @{swept budget_dimension};

-- name: ledger_fold (before bigint, most int)
-- returns: folded bigint
INSERT INTO ledger (id, epoch, dimension, period, reserved, total, earlier, settled, changed)
SELECT zeroblob(16), period, dimension, period, 0, sum(used), 0, 0, max(changed)
  FROM (SELECT g.period, g.dimension, g.total - g.earlier AS used, g.changed FROM ledger g
         WHERE g.settled > 0 AND g.settled < :before ORDER BY g.settled, g.id, g.epoch, g.dimension LIMIT :most)
 WHERE true GROUP BY dimension, period
    ON CONFLICT (id, epoch, dimension) DO UPDATE
   SET total = total + excluded.total, changed = max(changed, excluded.changed);
SELECT count(*) FROM (SELECT 1 FROM ledger g WHERE g.settled > 0 AND g.settled < :before LIMIT :most);
DELETE FROM ledger WHERE (id, epoch, dimension) IN (
    SELECT g.id, g.epoch, g.dimension FROM ledger g
     WHERE g.settled > 0 AND g.settled < :before ORDER BY g.settled, g.id, g.epoch, g.dimension LIMIT :most);
