-- Budgets: see 0030-budgets and src/engine/limit/budgets.c. The row of a budget is the lock of its dimensions and of
-- what adds up to them. A transaction that locks several takes them in the order of their ids. Claims lock them before
-- rows of `live`, which they skip where these are locked; all others lock no such row.

-- fragment: budget_columns (b)
@b.id, @b.namespace, @b.name, @b.matches, @b.lane, @b.kind, @b.tenant, @b.on_hard, @b.every_us, @b.months, @b.anchor,
@b.next_reset, @b.began, @b.period, @b.breaches, @b.soft_at, @b.hard_at, @b.cancelling

-- fragment: dimension_columns (d)
@d.id, @d.budget, @d.name, @d.hard, @d.soft, @d.estimate, @d.used, @d.reserved

-- The planner may take a table for empty, and then any index will do. So a look says the condition of the one partial
-- index that it is for (`epoch > 0` of ledger_period, which is true of all rows), and says others in a way that fits none:

-- fragment: unsettled (x)
@x.settled + 0 IS NULL

-- fragment: in_use (x)
@x.dropped::int = 0

-- fragment: budgets_charged (first)
-- The budgets that leases are charged to and that are there still, each once and in the order of ids.
(SELECT DISTINCT d.budget AS id
          FROM unnest(@first) AS i(id, epoch)
         CROSS JOIN LATERAL (SELECT x.dimension FROM weft.ledger x
                              WHERE x.id = i.id AND x.epoch = i.epoch AND @{unsettled x} OFFSET 0) g
         CROSS JOIN LATERAL (SELECT x.budget FROM weft.budget_dimension x
                              WHERE x.id = g.dimension AND @{in_use x} OFFSET 0) d
         ORDER BY d.budget) o

-- fragment: budget_named (i)
-- A budget by its name, found by the key whatever the planner thinks of the table.
CROSS JOIN LATERAL (SELECT y.id FROM weft.budget y WHERE y.namespace = @i.namespace AND y.name = @i.name OFFSET 0) n

-- fragment: not_running (g)
-- The lease of a row of the ledger has ended. Epochs only grow, so it will never run again.
NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.id = @g.id AND l.epoch = @g.epoch AND l.state + 0 = @running OFFSET 0)

-- name: budget_lock (namespace int[], name text[])
-- returns: id int, namespace int, name text, matches bool, lane text?, kind text?, tenant text?, on_hard smallint, every_us bigint, months int, anchor bigint, next_reset bigint?, began bigint, period int, breaches bigint, soft_at bigint?, hard_at bigint?, cancelling bool
-- One by one in the order of ids; a name without a budget gives nothing.
SELECT @{budget_columns b}
  FROM (SELECT n.id FROM unnest(:namespace, :name) AS i(namespace, name) @{budget_named i} ORDER BY n.id) o
 CROSS JOIN LATERAL (SELECT * FROM weft.budget x WHERE x.id = o.id FOR UPDATE) b;

-- name: budget_lock_due (now bigint, namespace int, most int)
-- returns: id int, namespace int, name text, matches bool, lane text?, kind text?, tenant text?, on_hard smallint, every_us bigint, months int, anchor bigint, next_reset bigint?, began bigint, period int, breaches bigint, soft_at bigint?, hard_at bigint?, cancelling bool
-- Budgets whose period is over. A locked one is being written by a claim, a report, or the reset of another replica,
-- which see that it is over too. The condition is checked again on the newest row, so no period ends twice, and no row
-- is waited for: see at_rest in pass.sql. Namespace 0: all.
SELECT @{budget_columns b}
  FROM weft.budget b
 WHERE b.next_reset IS NOT NULL AND b.next_reset <= :now AND (:namespace = 0 OR b.namespace = :namespace)
   AND weft.at_rest(b.xmax)
 ORDER BY b.next_reset LIMIT :most FOR UPDATE SKIP LOCKED;

-- name: budget_list (namespace int, own text?, after text, most int)
-- returns: id int, namespace int, name text, matches bool, lane text?, kind text?, tenant text?, on_hard smallint, every_us bigint, months int, anchor bigint, next_reset bigint?, began bigint, period int, breaches bigint, soft_at bigint?, hard_at bigint?, cancelling bool
SELECT @{budget_columns b}
  FROM weft.budget b
 WHERE b.namespace = :namespace AND b.name > :after AND b.name BETWEEN coalesce(:own, '') AND coalesce(:own, '~')
 ORDER BY b.name LIMIT :most;

-- name: budgets_matching ()
-- returns: version bigint, namespace int?, name text?, lane text?, kind text?, tenant text?
-- The budgets that are attached by what an execution is, and the number that the poll gives; a row without a budget
-- when there is none.
SELECT v.version, b.namespace, b.name, b.lane, b.kind, b.tenant
  FROM weft.budget_version v LEFT JOIN weft.budget b ON b.matches;

-- name: budgets_changed ()
-- In a transaction that changes settings, behind its locks on budgets.
UPDATE weft.budget_version SET version = version + 1;

-- name: budgets_counted (namespace int)
-- returns: budgets bigint, matching bigint
SELECT count(*), count(*) FILTER (WHERE matches) FROM weft.budget WHERE namespace = :namespace;

-- name: dimensions_of (namespace int[], name text[])
-- returns: id int, budget int, name text, hard bigint, soft bigint, estimate bigint, used bigint, reserved bigint
-- The dimensions of budgets. Where they are locked, a statement of its own behind the lock.
SELECT @{dimension_columns d}
  FROM unnest(:namespace, :name) AS i(namespace, name) @{budget_named i}
 CROSS JOIN LATERAL (SELECT * FROM weft.budget_dimension x WHERE x.budget = n.id AND NOT x.dropped OFFSET 0) d
 ORDER BY d.budget, d.name;

-- name: budget_put (namespace int, name text, matches bool, lane text?, kind text?, tenant text?, on_hard smallint, every_us bigint, months int, anchor bigint, next_reset bigint?, now bigint, oldest int)
-- returns: id int
-- Makes a budget or replaces its settings, which ends a breach; the limits say whether there is one still. The first
-- budget is the first use of budgets: see 0030.
WITH raised AS (
    UPDATE weft.schema SET oldest_binary = :oldest WHERE oldest_binary < :oldest
)
INSERT INTO weft.budget AS b (namespace, name, matches, lane, kind, tenant, on_hard, every_us, months, anchor, next_reset,
                              began)
VALUES (:namespace, :name, :matches, :lane, :kind, :tenant, :on_hard, :every_us, :months, :anchor, :next_reset, :now)
    ON CONFLICT (namespace, name) DO UPDATE
   SET matches = excluded.matches, lane = excluded.lane, kind = excluded.kind, tenant = excluded.tenant,
       on_hard = excluded.on_hard, every_us = excluded.every_us, months = excluded.months, anchor = excluded.anchor,
       next_reset = excluded.next_reset, hard_at = NULL, soft_at = NULL, cancelling = false
RETURNING b.id;

-- name: dimensions_put (budget int, name text[], hard bigint[], soft bigint[], estimate bigint[])
-- The dimensions of a locked budget. Sums stay as they are.
INSERT INTO weft.budget_dimension (budget, name, hard, soft, estimate)
SELECT :budget, name, hard, soft, estimate
  FROM unnest(:name, :hard, :soft, :estimate) AS i(name, hard, soft, estimate)
    ON CONFLICT (budget, name) WHERE NOT dropped DO UPDATE
   SET hard = excluded.hard, soft = excluded.soft, estimate = excluded.estimate;

-- name: ledger_widen (now bigint, budget int, name text[])
-- Leases that run under a locked budget are charged in its new dimensions too, from nothing on.
INSERT INTO weft.ledger (id, epoch, dimension, period, reserved, total, earlier, changed)
SELECT DISTINCT x.id, x.epoch, n.id, b.period, 0, 0, 0, :now
  FROM (SELECT y.id, y.period FROM weft.budget y WHERE y.id = :budget OFFSET 0) b
 CROSS JOIN unnest(:name) AS i(name)
 CROSS JOIN LATERAL (SELECT y.id FROM weft.budget_dimension y
                      WHERE y.budget = b.id AND y.name = i.name AND NOT y.dropped OFFSET 0) n
 CROSS JOIN LATERAL (SELECT y.id FROM weft.budget_dimension y WHERE y.budget = b.id AND NOT y.dropped OFFSET 0) d
 CROSS JOIN LATERAL (SELECT y.id, y.epoch FROM weft.ledger y
                      WHERE y.dimension = d.id AND y.settled IS NULL OFFSET 0) x
    ON CONFLICT DO NOTHING;

-- name: dimensions_drop (budget int, name text[])
-- The dimensions of a locked budget that are not named. Their ledger is removed by the scanner budget_reset.
UPDATE weft.budget_dimension SET dropped = true
 WHERE budget = :budget AND NOT dropped AND name NOT IN (SELECT unnest(:name));

-- name: budget_remove (namespace int, name text)
-- returns: id int
WITH gone AS (
    DELETE FROM weft.budget WHERE namespace = :namespace AND name = :name RETURNING id
), dropped AS (
    UPDATE weft.budget_dimension d SET dropped = true FROM gone g WHERE d.budget = g.id AND NOT d.dropped
)
SELECT id FROM gone;

-- name: budget_mark (id int[], breaches bigint[], soft_at bigint?[], hard_at bigint?[], cancelling bool[])
-- What became of locked budgets.
UPDATE weft.budget b SET breaches = i.breaches, soft_at = i.soft_at, hard_at = i.hard_at, cancelling = i.cancelling
  FROM unnest(:id, :breaches, :soft_at, :hard_at, :cancelling) AS i(id, breaches, soft_at, hard_at, cancelling)
 WHERE b.id BETWEEN i.id AND i.id;

-- name: budget_begin (now bigint, id int[], next_reset bigint?[], began bigint[])
-- A new period of locked budgets. What running leases have reserved stays reserved; what they have spent belongs to
-- the period before.
WITH zero AS (
    UPDATE weft.budget_dimension d SET used = 0, stale = true WHERE d.budget = ANY (:id) AND NOT d.dropped
), opened AS (
    UPDATE weft.ledger g SET period = g.period + 1, earlier = g.total, changed = :now
     WHERE g.ctid = ANY (ARRAY(
        SELECT x.ctid
          FROM unnest(:id) AS i(id)
         CROSS JOIN LATERAL (SELECT y.id FROM weft.budget_dimension y
                              WHERE y.budget = i.id AND NOT y.dropped OFFSET 0) d
         CROSS JOIN LATERAL (SELECT y.ctid FROM weft.ledger y
                              WHERE y.dimension = d.id AND y.settled IS NULL OFFSET 0) x))
)
UPDATE weft.budget b
   SET period = b.period + 1, next_reset = i.next_reset, began = i.began, breaches = 0, soft_at = NULL, hard_at = NULL,
       cancelling = false
  FROM unnest(:id, :next_reset, :began) AS i(id, next_reset, began) WHERE b.id BETWEEN i.id AND i.id;

-- name: budget_next ()
-- returns: next bigint?, cancelling bool
SELECT (SELECT next_reset FROM weft.budget WHERE next_reset IS NOT NULL ORDER BY next_reset LIMIT 1),
       EXISTS (SELECT 1 FROM weft.budget WHERE cancelling);

-- name: charge_heads (queue int[], depth int[])
-- returns: queue int, priority smallint, ord bigint, id uuid, costs bool
-- queue_heads with the ids, and whether the execution has rows in weft.cost. Locks nothing.
SELECT w.queue, h.priority, h.ord, h.id, h.has & @WEFT_HAS_COST <> 0
  FROM unnest(:queue, :depth) AS w(queue, depth)
 CROSS JOIN LATERAL (SELECT l.priority, l.ord, l.id, l.has FROM weft.live l
                      WHERE l.queue = w.queue AND l.state = @ready
                      ORDER BY l.priority DESC, l.ord, l.id LIMIT w.depth) h;

-- name: costs_of (id uuid[])
-- returns: id uuid, dimension text, amount bigint
SELECT c.id, c.dimension, c.amount
  FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.cost x WHERE x.id = i.id OFFSET 0) c;

-- name: cost_add (id uuid[], dimension text[], amount bigint[])
-- In the transaction that submits the executions.
WITH added AS (
    INSERT INTO weft.cost (id, dimension, amount)
    SELECT id, dimension, amount FROM unnest(:id, :dimension, :amount) AS i(id, dimension, amount)
)
UPDATE weft.live l SET has = l.has | @WEFT_HAS_COST
  FROM (SELECT DISTINCT id FROM unnest(:id) AS x(id)) i WHERE l.id BETWEEN i.id AND i.id;

-- name: budget_lock_charged (id uuid[], epoch int[])
-- returns: id int, namespace int, name text, matches bool, lane text?, kind text?, tenant text?, on_hard smallint, every_us bigint, months int, anchor bigint, next_reset bigint?, began bigint, period int, breaches bigint, soft_at bigint?, hard_at bigint?, cancelling bool
-- The budgets that leases are charged to, locked one by one in the order of their ids. A lease and its rows of the
-- ledger begin in one transaction, so the budgets of a lease that a worker knows are all seen.
SELECT @{budget_columns b}
  FROM @{budgets_charged :id, :epoch}
 CROSS JOIN LATERAL (SELECT * FROM weft.budget x WHERE x.id = o.id FOR UPDATE) b;

-- name: dimensions_charged (id uuid[], epoch int[])
-- returns: id int, budget int, name text, hard bigint, soft bigint, estimate bigint, used bigint, reserved bigint
-- Behind the lock.
SELECT @{dimension_columns d}
  FROM @{budgets_charged :id, :epoch}
 CROSS JOIN LATERAL (SELECT * FROM weft.budget_dimension x WHERE x.budget = o.id AND NOT x.dropped OFFSET 0) d
 ORDER BY d.budget, d.name;

-- name: charges_of (id uuid[], epoch int[])
-- returns: id uuid, running bool, dimension int?, reserved bigint?, total bigint?
-- Which of the leases run, with their rows of the ledger. Behind the lock of their budgets: a lease that runs in this
-- snapshot is settled by a transaction that waits for the lock, however soon it ends.
SELECT i.id, NOT @{not_running i}, g.dimension, g.reserved, g.total
  FROM unnest(:id, :epoch) AS i(id, epoch)
  LEFT JOIN LATERAL (SELECT * FROM weft.ledger x
                      WHERE x.id = i.id AND x.epoch = i.epoch AND @{unsettled x} OFFSET 0) g ON true;

-- name: ledger_put (now bigint, id uuid[], epoch int[], dimension int[], period int[], reserved bigint[], total bigint[])
-- Rows of leases that run, while their budgets are locked.
INSERT INTO weft.ledger AS g (id, epoch, dimension, period, reserved, total, earlier, changed)
SELECT id, epoch, dimension, period, reserved, total, 0, :now
  FROM unnest(:id, :epoch, :dimension, :period, :reserved, :total) AS i(id, epoch, dimension, period, reserved, total)
    ON CONFLICT (id, epoch, dimension) DO UPDATE
   SET reserved = excluded.reserved, total = excluded.total, changed = excluded.changed;

-- name: sums_add (dimension int[], used bigint[], reserved bigint[])
-- Adds to the dimensions of locked budgets. Each stands in the list once.
UPDATE weft.budget_dimension d SET used = d.used + i.used, reserved = d.reserved + i.reserved
  FROM unnest(:dimension, :used, :reserved) AS i(dimension, used, reserved)
 WHERE d.id BETWEEN i.dimension AND i.dimension;

-- name: settle (now bigint, id uuid[], epoch int[])
-- returns: settled bigint, freed bool, full bool
-- Gives back what leases that have ended have reserved and not used; each stands in the list once. Their budgets are
-- locked: a second session that settles the same leases finds nothing. full: before this, an execution like one of
-- these did not fit.
WITH ended AS MATERIALIZED (
    SELECT g.place, g.dimension, g.reserved,
           d.hard > 0 AND d.used + d.reserved + greatest(d.estimate, g.reserved, 1) > d.hard AS full_before
      FROM unnest(:id, :epoch) AS i(id, epoch)
     CROSS JOIN LATERAL (SELECT x.ctid AS place, x.* FROM weft.ledger x
                          WHERE x.id = i.id AND x.epoch = i.epoch AND @{unsettled x} OFFSET 0) g
     CROSS JOIN LATERAL (SELECT * FROM weft.budget_dimension x
                          WHERE x.id = g.dimension AND @{in_use x} OFFSET 0) d
     WHERE @{not_running g}
), closed AS (
    UPDATE weft.ledger g SET reserved = 0, settled = :now, changed = :now
     WHERE g.ctid = ANY (ARRAY(SELECT e.place FROM ended e))
), freed AS (
    UPDATE weft.budget_dimension d
       SET reserved = d.reserved - (SELECT sum(e.reserved) FROM ended e WHERE e.dimension = d.id)
     WHERE d.id = ANY (ARRAY(SELECT e.dimension FROM ended e))
)
SELECT count(*), coalesce(bool_or(reserved > 0), false), coalesce(bool_or(full_before AND reserved > 0), false)
  FROM ended;

-- name: ledger_walk (dimension int, id uuid, epoch int, most int)
-- returns: dimension int, id uuid, epoch int, ended bool
-- Rows behind (dimension, id, epoch) that are not settled, and whether they are to be. Locks nothing.
SELECT g.dimension, g.id, g.epoch, @{not_running g}
  FROM (SELECT * FROM weft.ledger x
         WHERE x.settled IS NULL AND (x.dimension, x.id, x.epoch) > (:dimension, :id, :epoch)
         ORDER BY x.dimension, x.id, x.epoch LIMIT :most) g
 ORDER BY g.dimension, g.id, g.epoch;

-- name: budgets_cancelling (most int)
-- returns: id int, namespace int, name text, hard_at bigint?
SELECT id, namespace, name, hard_at FROM weft.budget WHERE cancelling ORDER BY id LIMIT :most;

-- name: charges_running (budget int, most int)
-- returns: id uuid
-- Executions that run under a budget, perhaps once for each of its dimensions. Locks nothing.
SELECT g.id
  FROM weft.budget_dimension d
 CROSS JOIN LATERAL (SELECT x.id, x.epoch FROM weft.ledger x
                      WHERE x.dimension = d.id AND x.settled IS NULL
                        AND EXISTS (SELECT 1 FROM weft.live l
                                     WHERE l.id = x.id AND l.epoch = x.epoch AND l.state + 0 = @running OFFSET 0)
                      ORDER BY x.id, x.epoch LIMIT :most) g
 WHERE d.budget = :budget AND NOT d.dropped;

-- name: cancelling_done (id int, hard_at bigint?)
-- Nothing runs under it any more. A later breach has another moment, and cancels again.
UPDATE weft.budget SET cancelling = false WHERE id = :id AND hard_at IS NOT DISTINCT FROM :hard_at;

-- name: ledger_read (namespace int, name text, first uuid, most int)
-- returns: id uuid, dimension text, reserved bigint, used bigint, settled bool, changed bigint
-- What executions have reserved and used in this period, over all their leases, from the id `first` on, each with all
-- its dimensions.
SELECT x.id, d.name, x.reserved, x.used, x.settled, x.changed
  FROM (SELECT y.id, y.period FROM weft.budget y
         WHERE y.namespace = :namespace AND y.name = :name ORDER BY y.namespace, y.name LIMIT 1) b
 CROSS JOIN LATERAL (SELECT y.id, y.name FROM weft.budget_dimension y
                      WHERE y.budget = b.id AND NOT y.dropped OFFSET 0) d
 CROSS JOIN LATERAL (SELECT g.id, sum(g.reserved)::bigint AS reserved, sum(g.total - g.earlier)::bigint AS used,
                            bool_and(g.settled IS NOT NULL) AS settled, pg_catalog.max(g.changed) AS changed
                       FROM weft.ledger g
                      WHERE g.dimension = d.id AND g.period = b.period AND g.epoch > 0 AND g.id >= :first
                      GROUP BY g.id ORDER BY g.id LIMIT :most) x
 ORDER BY x.id, d.name;

-- name: ledger_sweep (most int, dimensions int)
-- returns: removed bigint
-- Removes rows of earlier periods and of dropped dimensions, and dropped dimensions that have none any more. Rows that
-- another session folds or removes are passed by: the next sweep finds what is left of them.
WITH unswept AS MATERIALIZED (
    SELECT d.id, d.dropped,
           CASE WHEN d.dropped THEN 2147483647
                ELSE (SELECT b.period FROM weft.budget b WHERE b.id = d.budget) END AS upto
      FROM weft.budget_dimension d
     WHERE (d.dropped OR d.stale) AND weft.at_rest(d.xmax)
     ORDER BY d.id LIMIT :dimensions FOR UPDATE SKIP LOCKED
), old AS MATERIALIZED (
    SELECT g.place
      FROM unswept u
     CROSS JOIN LATERAL (SELECT x.ctid AS place FROM weft.ledger x
                          WHERE x.dimension = u.id AND x.epoch > 0 AND x.period < u.upto
                          ORDER BY x.period, x.id LIMIT :most FOR UPDATE SKIP LOCKED) g
     LIMIT :most
), gone AS (
    DELETE FROM weft.ledger g WHERE g.ctid = ANY (ARRAY(SELECT o.place FROM old o)) RETURNING 1
), done AS MATERIALIZED (
    SELECT u.id, u.dropped FROM unswept u
     WHERE NOT EXISTS (SELECT 1 FROM weft.ledger x
                        WHERE x.dimension = u.id AND x.epoch > 0 AND x.period < u.upto OFFSET 0)
), swept AS (
    UPDATE weft.budget_dimension d SET stale = false
     WHERE d.id = ANY (ARRAY(SELECT o.id FROM done o WHERE NOT o.dropped))
), removed AS (
    DELETE FROM weft.budget_dimension d WHERE d.id = ANY (ARRAY(SELECT o.id FROM done o WHERE o.dropped))
)
SELECT count(*) FROM gone;

-- name: ledger_fold (before bigint, most int)
-- returns: folded bigint
-- Adds up rows that were settled before a moment: one row for each dimension and period, in the order of these, so that
-- two sessions that add to the same rows do not wait for each other in a circle.
WITH old AS MATERIALIZED (
    SELECT g.ctid AS place, g.dimension, g.period, g.total - g.earlier AS used, g.changed FROM weft.ledger g
     WHERE g.settled > 0 AND g.settled < :before
     ORDER BY g.settled LIMIT :most FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM weft.ledger g WHERE g.ctid = ANY (ARRAY(SELECT o.place FROM old o)) RETURNING 1
), kept AS (
    INSERT INTO weft.ledger AS g (id, epoch, dimension, period, reserved, total, earlier, settled, changed)
    SELECT @{no_id}::uuid, period, dimension, period, 0, sum(used)::bigint, 0, 0, pg_catalog.max(changed)
      FROM old GROUP BY dimension, period ORDER BY dimension, period
        ON CONFLICT (id, epoch, dimension) DO UPDATE
       SET total = g.total + excluded.total, changed = greatest(g.changed, excluded.changed)
)
SELECT count(*) FROM gone;
