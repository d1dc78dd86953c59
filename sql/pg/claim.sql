-- Claiming.

-- name: queues_ready (after int, most int)
-- returns: queue int
-- The queues behind `after` that have ready work, by hopping from one to the next in the index: the
-- cost follows the number of queues that are given, not of rows. Locks nothing.
WITH RECURSIVE hop AS (
    (SELECT queue FROM weft.live WHERE state = @ready AND queue > :after ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT l.queue FROM weft.live l
             WHERE l.state = @ready AND l.queue > hop.queue ORDER BY l.queue LIMIT 1)
      FROM hop WHERE hop.queue IS NOT NULL
)
SELECT queue FROM hop WHERE queue IS NOT NULL LIMIT :most;

-- name: lane_walk (place int[], namespace int[], lane text[], after int[], most int)
-- returns: place int, queue int, ready bool
-- The queues of lanes behind `after` and whether they have ready work: a probe for each, so the cost
-- follows the number of queues that are given. EXISTS could be planned as a scan of all ready rows
-- into a hash table. Locks nothing.
SELECT w.place, q.id,
       (SELECT 1 FROM weft.live l WHERE l.queue = q.id AND l.state = @ready LIMIT 1) IS NOT NULL
  FROM unnest(:place, :namespace, :lane, :after) AS w(place, namespace, lane, after)
 CROSS JOIN LATERAL (SELECT id FROM weft.name
                      WHERE sort = @WEFT_NAME_LANE AND namespace = w.namespace AND text = w.lane OFFSET 0) n
 CROSS JOIN LATERAL (SELECT id FROM weft.queue
                      WHERE lane = n.id AND id > w.after ORDER BY id LIMIT :most) q;

-- name: queue_heads (queue int[], depth int[])
-- returns: queue int, priority smallint, ord bigint
-- A look at the heads of several queues, without locks: only to decide how many to take of each.
SELECT w.queue, h.priority, h.ord
  FROM unnest(:queue, :depth) AS w(queue, depth)
 CROSS JOIN LATERAL (SELECT l.priority, l.ord FROM weft.live l
                      WHERE l.queue = w.queue AND l.state = @ready
                      ORDER BY l.priority DESC, l.ord, l.id LIMIT w.depth) h;

-- name: lane_lock (lane int[])
-- returns: lane int, paused bool, max_running int, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint, full_ns bigint?
-- Lanes with a limit are claimed from by one at a time. A lane that is taken is skipped: its
-- claimer serves it, this one serves others.
SELECT s.id, s.paused, s.max_running, s.window_limit, s.window_us, s.rate_limit, s.rate_us, s.rate_burst, s.full_ns
  FROM weft.lane s
 WHERE s.id = ANY(:lane) ORDER BY s.id FOR UPDATE SKIP LOCKED;

-- name: lane_running (now bigint, lane int[], span bigint[])
-- returns: lane int, running bigint, started bigint, oldest bigint?
-- Counts the leases of locked lanes, and the draining ones: ended by others while the worker may still run.
-- A statement of its own: within the one that locks, the snapshot would be from before the lock. One
-- statement for both tables: see draining.sql. now is never ahead of the store's clock, so that no
-- draining row is left out before its time. `until + 0` keeps the planner to the index by lane, whose
-- rows past their time are few. span: of a window, 0: the lane has none.
SELECT w.lane, (SELECT count(*) FROM weft.live l WHERE l.lane = w.lane AND l.state = @running)
               + (SELECT count(*) FROM weft.draining d WHERE d.lane = w.lane AND d.until + 0 > :now),
       coalesce(s.started, 0), s.oldest
  FROM unnest(:lane, :span) AS w(lane, span)
  LEFT JOIN LATERAL (SELECT sum(x.count)::bigint AS started, min(x.at) AS oldest FROM weft.lane_start x
                      WHERE x.lane = w.lane AND x.at > :now - w.span) s ON w.span > 0;

-- name: lane_charge (lane int[], at bigint[], count bigint[], full_ns bigint?[], until bigint[])
-- What a claim has started in lanes that it has locked. count 0: the lane has no window. full_ns NULL: it has
-- no rate. Starts up to `until` are outside of the window.
WITH charge AS MATERIALIZED (
    SELECT * FROM unnest(:lane, :at, :count, :full_ns, :until) AS i(lane, at, count, full_ns, until)
), old AS (
    DELETE FROM weft.lane_start s USING charge c WHERE s.lane BETWEEN c.lane AND c.lane AND s.at <= c.until
), started AS (
    INSERT INTO weft.lane_start AS s (lane, at, count) SELECT lane, at, count FROM charge WHERE count > 0
        ON CONFLICT (lane, at) DO UPDATE SET count = s.count + excluded.count
)
UPDATE weft.lane l SET full_ns = c.full_ns FROM charge c
 WHERE l.id BETWEEN c.lane AND c.lane AND c.full_ns IS NOT NULL;

-- fragment: claim_allowed ()
-- A lane that was paused, or got a limit this claim did not count under, gives nothing.
LEFT JOIN weft.lane s ON s.id BETWEEN w.lane AND w.lane
     WHERE NOT coalesce(s.paused, false) AND (w.counted OR coalesce(s.max_running + s.window_limit + s.rate_limit, 0) = 0)

-- fragment: claim_ranked ()
-- Gives each want w the places skip+1 .. upto of its queue, within its bytes.
ranked AS (
    SELECT id, queue, policy, row_number() OVER line AS place, sum(size) OVER line AS bytes
      FROM picked
    WINDOW line AS (PARTITION BY queue ORDER BY priority DESC, ord, id ROWS UNBOUNDED PRECEDING)
)
UPDATE weft.live l
   SET state = @running, epoch = l.epoch + 1, worker = w.worker, claimed = :now,
       due = :now + coalesce(w.lease, p.lease_us), started = coalesce(l.started, :now),
       attempt_deadline = CASE WHEN p.timeout_us > 0 THEN :now + p.timeout_us END
  FROM ranked r
  JOIN want w ON w.queue = r.queue AND r.place > w.skip AND r.place <= w.upto
             AND (r.bytes <= w.bytes OR (w.n = 0 AND r.place = 1))
  JOIN weft.policy p ON p.id BETWEEN r.policy AND r.policy
 CROSS JOIN LATERAL (SELECT * FROM weft.execution WHERE id = r.id OFFSET 0) e
 WHERE l.id BETWEEN r.id AND r.id
RETURNING w.n, l.id, l.queue, l.priority, l.ord, l.epoch, l.attempt, l.due, l.deadline,
          e.created, e.content_type, e.tags, e.payload, l.size, l.has, l.flow, l.attempt_deadline

-- name: claim (now bigint, want int[], queue int[], lane int[], counted bool[], worker int[], lease bigint?[], skip int[], upto int[], bytes bigint[])
-- returns: want int, id uuid, queue int, priority smallint, ord bigint, epoch int, attempt int, due bigint, deadline bigint?, created bigint, content_type text?, tags text?, payload bytea?, size int, has smallint, flow uuid?, attempt_deadline bigint?
-- moves: ready CLAIM running
-- Each want takes the places skip+1 .. upto of its queue, as long as the payloads of that queue up
-- to there stay within `bytes`; the first want gets a row whatever its size. The whole predicate
-- stands beside FOR UPDATE, the only level at which it is re-checked on the newest version of the
-- row; the outer join is on the key. A lane that was paused, or got a limit this claim did not
-- count under, gives nothing. The rows come in no particular order.
WITH want AS MATERIALIZED (
    SELECT w.*
      FROM unnest(:want, :queue, :lane, :counted, :worker, :lease, :skip, :upto, :bytes)
        AS w(n, queue, lane, counted, worker, lease, skip, upto, bytes)
      @{claim_allowed}
), picked AS MATERIALIZED (
    SELECT l.*
      FROM (SELECT queue, max(upto) AS upto FROM want GROUP BY queue) q
     CROSS JOIN LATERAL (SELECT r.id, r.queue, r.priority, r.ord, r.size, r.policy FROM weft.live r
                          WHERE r.queue = q.queue AND r.state = @ready
                          ORDER BY r.priority DESC, r.ord, r.id
                          LIMIT q.upto
                            FOR UPDATE SKIP LOCKED) l
), @{claim_ranked};

-- name: claim_above (now bigint, want int[], queue int[], lane int[], counted bool[], worker int[], lease bigint?[], skip int[], upto int[], bytes bigint[], floor_priority smallint[], floor_ord bigint[])
-- returns: want int, id uuid, queue int, priority smallint, ord bigint, epoch int, attempt int, due bigint, deadline bigint?, created bigint, content_type text?, tags text?, payload bytea?, size int, has smallint, flow uuid?, attempt_deadline bigint?
-- moves: ready CLAIM running
-- only: pg, because in SQLite a removed row leaves nothing behind
-- The same for queues of which this process knows that no ready row lies before (priority, ord), see
-- floor.c: the index is entered there, so the dead rows before it cost nothing. Rows of a lower
-- priority are left to `claim`.
WITH want AS MATERIALIZED (
    SELECT w.*
      FROM unnest(:want, :queue, :lane, :counted, :worker, :lease, :skip, :upto, :bytes,
              :floor_priority, :floor_ord)
        AS w(n, queue, lane, counted, worker, lease, skip, upto, bytes, floor_priority, floor_ord)
      @{claim_allowed}
), picked AS MATERIALIZED (
    SELECT l.*
      FROM (SELECT queue, max(upto) AS upto, min(floor_priority) AS priority, min(floor_ord) AS ord
              FROM want GROUP BY queue) q
     CROSS JOIN LATERAL (SELECT r.id, r.queue, r.priority, r.ord, r.size, r.policy FROM weft.live r
                          WHERE r.queue = q.queue AND r.state = @ready
                            AND r.priority = q.priority AND r.ord >= q.ord
                          ORDER BY r.ord, r.id
                          LIMIT q.upto
                            FOR UPDATE SKIP LOCKED) l
), @{claim_ranked};
