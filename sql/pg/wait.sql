-- Waiting: suspensions, waitpoints, signals, signing keys. All rows about an execution are read and written under
-- the lock of its living row (live_lock), in later statements than the lock.

-- name: waitpoints_bound (id uuid[], bound int[])
-- returns: waitpoint uuid, id uuid, created bigint, expires bigint?, closed bigint?, epoch int, bound int, signals int, key int, replay smallint, name text
-- The waitpoints of executions that belong to the suspension of an epoch; 0: pending ones, also closed ones.
SELECT @{waitpoint_columns w}
  FROM unnest(:id, :bound) AS i(id, bound)
 CROSS JOIN LATERAL (SELECT * FROM weft.waitpoint x WHERE x.id = i.id AND x.bound = i.bound OFFSET 0) w;

-- name: waitpoints_open (id uuid[])
-- returns: waitpoint uuid, id uuid, created bigint, expires bigint?, closed bigint?, epoch int, bound int, signals int, key int, replay smallint, name text, condition text, delay bigint
-- The waitpoints of suspended executions that have the epoch of the suspension, and what it waits for.
SELECT @{waitpoint_columns w}, s.condition, s.delay
  FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT x.epoch, x.condition, x.delay FROM weft.suspension x WHERE x.id = i.id OFFSET 0) s
 CROSS JOIN LATERAL (SELECT * FROM weft.waitpoint x WHERE x.id = i.id AND x.bound = s.epoch OFFSET 0) w;

-- name: waitpoints_named (waitpoint uuid[])
-- returns: waitpoint uuid, id uuid, created bigint, expires bigint?, closed bigint?, epoch int, bound int, signals int, key int, replay smallint, name text
SELECT @{waitpoint_columns w}
  FROM unnest(:waitpoint) AS i(waitpoint)
 CROSS JOIN LATERAL (SELECT * FROM weft.waitpoint x WHERE x.waitpoint = i.waitpoint OFFSET 0) w;

-- name: waitpoint_add (waitpoint uuid[], id uuid[], created bigint[], expires bigint?[], epoch int[], bound int[], key int[], replay smallint[], name text[], marked bool[])
-- marked: live_put has set the bits, because the execution is suspended.
INSERT INTO weft.waitpoint (waitpoint, id, created, expires, epoch, bound, signals, key, replay, name, marked)
SELECT waitpoint, id, created, expires, epoch, bound, 0, key, replay, name, marked
  FROM unnest(:waitpoint, :id, :created, :expires, :epoch, :bound, :key, :replay, :name, :marked)
    AS i(waitpoint, id, created, expires, epoch, bound, key, replay, name, marked);

-- name: waitpoint_bind (waitpoint uuid[], bound int[])
-- Binds pending waitpoints to a suspension.
UPDATE weft.waitpoint w SET bound = i.bound
  FROM unnest(:waitpoint, :bound) AS i(waitpoint, bound) WHERE w.waitpoint BETWEEN i.waitpoint AND i.waitpoint;

-- name: suspension_read (id uuid[])
-- returns: id uuid, epoch int, since bigint, condition text, on_timeout smallint, delay bigint, escalated bigint?, reason text?
SELECT s.id, s.epoch, s.since, s.condition, s.on_timeout, s.delay, s.escalated, s.reason
  FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.suspension x WHERE x.id = i.id OFFSET 0) s;

-- name: suspension_add (id uuid[], epoch int[], since bigint[], due bigint?[], lane int[], condition text[], on_timeout smallint[], delay bigint[], reason text?[])
-- An older binary may have ended a suspension without its row.
INSERT INTO weft.suspension (id, epoch, since, due, lane, condition, on_timeout, delay, reason)
SELECT * FROM unnest(:id, :epoch, :since, :due, :lane, :condition, :on_timeout, :delay, :reason)
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, since = excluded.since, due = excluded.due,
       lane = excluded.lane, condition = excluded.condition,
       on_timeout = excluded.on_timeout, delay = excluded.delay, reason = excluded.reason, escalated = NULL;

-- name: suspension_escalate (id uuid[], at bigint)
UPDATE weft.suspension s
   SET escalated = :at, due = NULL,
       namespace = (SELECT q.namespace FROM weft.queue q
                     WHERE q.id = (SELECT l.queue FROM weft.live l WHERE l.id = s.id))
  FROM unnest(:id) AS i(id) WHERE s.id BETWEEN i.id AND i.id;

-- name: suspension_drop (id uuid[])
-- With the step that ends a suspended execution.
DELETE FROM weft.suspension s USING unnest(:id) AS i(id) WHERE s.id BETWEEN i.id AND i.id;

-- name: suspension_resume (id uuid[], epoch int[], at bigint[], by smallint[], reason text?[])
-- With the step by which a suspended execution goes on: its suspension goes, its resumption comes.
WITH resumed AS MATERIALIZED (
    SELECT * FROM unnest(:id, :epoch, :at, :by, :reason) AS i(id, epoch, at, by, reason)
), gone AS (
    DELETE FROM weft.suspension s USING resumed i WHERE s.id BETWEEN i.id AND i.id
)
INSERT INTO weft.resumption (id, epoch, at, by, reason)
SELECT id, epoch, at, by, reason FROM resumed
@{resumption_replaced};

-- fragment: resumption_replaced ()
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, at = excluded.at, by = excluded.by,
       reason = excluded.reason

-- name: resumption_put (id uuid[], epoch int[], at bigint[], by smallint[], reason text?[])
-- The same for one that never was suspended: its suspend was satisfied at once.
INSERT INTO weft.resumption (id, epoch, at, by, reason)
SELECT * FROM unnest(:id, :epoch, :at, :by, :reason)
@{resumption_replaced};

-- name: signal_heads (id uuid[], waitpoint uuid[])
-- returns: id uuid, waitpoint uuid, n int, at bigint, name text?, source text?
-- The signals of waitpoints as a condition sees them, in the order of their arrival at each.
SELECT i.id, i.waitpoint, s.n, s.at, s.name, s.source
  FROM unnest(:id, :waitpoint) AS i(id, waitpoint)
 CROSS JOIN LATERAL (SELECT x.n, x.at, x.name, x.source FROM weft.signal x
                      WHERE x.id = i.id AND x.waitpoint = i.waitpoint ORDER BY x.n OFFSET 0) s;

-- name: signal_keys (waitpoint uuid[], key text[])
-- returns: waitpoint uuid, key text, effect smallint
-- Which of these signals have come before, by their keys.
SELECT i.waitpoint, i.key, s.effect
  FROM unnest(:waitpoint, :key) AS i(waitpoint, key)
 CROSS JOIN LATERAL (SELECT x.effect FROM weft.signal x
                      WHERE x.waitpoint = i.waitpoint AND x.key = i.key OFFSET 0) s;

-- name: signal_add (id uuid[], waitpoint uuid[], n int[], at bigint[], effect smallint[], name text?[], source text?[], key text?[], content_type text?[], payload bytea?[])
-- Its waitpoint counts it: n is the number of the last signal that it has got.
WITH sent AS MATERIALIZED (
    SELECT * FROM unnest(:id, :waitpoint, :n, :at, :effect, :name, :source, :key, :content_type, :payload)
        AS i(id, waitpoint, n, at, effect, name, source, key, content_type, payload)
), counted AS (
    UPDATE weft.waitpoint w SET signals = i.n
      FROM (SELECT waitpoint, max(n) AS n FROM sent GROUP BY waitpoint) i
     WHERE w.waitpoint BETWEEN i.waitpoint AND i.waitpoint
)
INSERT INTO weft.signal (id, waitpoint, n, at, effect, name, source, key, content_type, payload)
SELECT * FROM sent;

-- name: signals_read (id uuid[], bound int?[], bytes bigint)
-- returns: id uuid, resumed bigint?, by smallint?, epoch int?, waitpoint uuid?, waitpoint_name text?, n int?, at bigint?, effect smallint?, name text?, source text?, key text?, content_type text?, payload bytea?, more bool?
-- The last resumption of each execution, and the signals of the waitpoints of a suspension (bound null: of the one
-- that this resumption ended), in the order of their arrival, as long as their payloads are within `bytes` for an
-- execution. One row without a waitpoint: there are no signals. more: the row stands for itself and all later signals,
-- without its payload. Locks nothing: read by the holder of a lease, or for it.
SELECT i.id, i.resumed, i.by, i.epoch, t.waitpoint, t.waitpoint_name, t.n, t.at, t.effect, t.name, t.source, t.key,
       t.content_type, CASE WHEN t.sum <= :bytes THEN t.payload END, t.sum > :bytes
  FROM (SELECT u.id, coalesce(u.bound, r.epoch) AS bound, r.at AS resumed, r.by, r.epoch
          FROM unnest(:id, :bound) AS u(id, bound)
          LEFT JOIN LATERAL (SELECT * FROM weft.resumption x WHERE x.id = u.id OFFSET 0) r ON true OFFSET 0) i
  LEFT JOIN LATERAL (
     SELECT s.*, w.name AS waitpoint_name,
            sum(coalesce(octet_length(s.payload), 0) + @WEFT_SIGNAL_BYTES) OVER (ORDER BY s.at, s.waitpoint, s.n) AS sum,
            coalesce(octet_length(s.payload), 0) + @WEFT_SIGNAL_BYTES AS size
       FROM (SELECT * FROM weft.waitpoint x WHERE x.id = i.id AND x.bound = i.bound OFFSET 0) w
      CROSS JOIN LATERAL (SELECT * FROM weft.signal x
                           WHERE x.id = w.id AND x.waitpoint = w.waitpoint OFFSET 0) s
      ORDER BY s.at, s.waitpoint, s.n) t ON t.sum - t.size <= :bytes;

-- name: waitpoints_list (id uuid, after uuid, most int)
-- returns: waitpoint uuid, id uuid, created bigint, expires bigint?, closed bigint?, epoch int, bound int, signals int, key int, replay smallint, name text
-- The waitpoints of an execution behind one of them, in the order of their ids. Locks nothing.
SELECT @{waitpoint_columns w}
  FROM weft.waitpoint w WHERE w.id = :id AND w.waitpoint > :after ORDER BY w.waitpoint LIMIT :most;

-- name: signals_list (id uuid, after uuid, after_n int, most int, bytes bigint)
-- returns: waitpoint uuid, waitpoint_name text, n int, at bigint, effect smallint, name text?, source text?, key text?, content_type text?, payload bytea?
-- The signals of an execution behind one of them, by waitpoint and number, up to `bytes` of payloads, one at least.
-- Locks nothing.
SELECT t.waitpoint, (SELECT w.name FROM weft.waitpoint w WHERE w.waitpoint = t.waitpoint), t.n, t.at, t.effect,
       t.name, t.source, t.key, t.content_type, t.payload
  FROM (SELECT s.*, sum(coalesce(octet_length(s.payload), 0)) OVER (ORDER BY s.waitpoint, s.n)
                    - coalesce(octet_length(s.payload), 0) AS before
          FROM (SELECT * FROM weft.signal x
                 WHERE x.id = :id AND (x.waitpoint, x.n) > (:after, :after_n)
                 ORDER BY x.waitpoint, x.n LIMIT :most) s) t
 WHERE t.before <= :bytes
 ORDER BY t.waitpoint, t.n;

-- name: waitpoint_expire (now bigint, batch int, ns int, first int, last int)
-- returns: waitpoint uuid, id uuid
-- Closes pending waitpoints whose time has passed. A suspend that takes such a waitpoint holds the lock of its row,
-- or finds it closed.
UPDATE weft.waitpoint w SET closed = :now
  FROM (SELECT x.waitpoint FROM weft.waitpoint x
         WHERE x.bound = 0 AND x.closed IS NULL AND x.expires IS NOT NULL AND x.expires <= :now
           AND (:ns = 0 OR (SELECT q.namespace FROM weft.queue q
                             WHERE q.id = (SELECT e.queue FROM weft.execution e WHERE e.id = x.id)) = :ns)
           AND @{of_partition x.id}
         ORDER BY x.expires LIMIT :batch
           FOR UPDATE SKIP LOCKED) d
 WHERE w.waitpoint BETWEEN d.waitpoint AND d.waitpoint
RETURNING w.waitpoint, w.id;

-- name: waitpoint_next (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
SELECT (SELECT count(*)
          FROM (SELECT 1 FROM weft.waitpoint x
                 WHERE x.bound = 0 AND x.closed IS NULL AND x.expires IS NOT NULL AND x.expires <= :now
                   AND (:ns = 0 OR (SELECT q.namespace FROM weft.queue q
                                     WHERE q.id = (SELECT e.queue FROM weft.execution e WHERE e.id = x.id)) = :ns)
                   AND @{of_partition x.id}
                 ORDER BY x.expires LIMIT :batch) s),
       (SELECT x.expires FROM weft.waitpoint x
         WHERE x.bound = 0 AND x.closed IS NULL AND x.expires IS NOT NULL AND x.expires > :now
         ORDER BY x.expires LIMIT 1);

-- name: waiting_read (id uuid)
-- returns: namespace int, epoch int?, timeout bigint?, since bigint?, condition text?, on_timeout smallint?, delay bigint?, escalated bigint?, reason text?, resumed bigint?, by smallint?, resumed_reason text?
-- What an execution waits for (the columns from epoch to reason; null: it is not suspended), and how it went on
-- the last time. Locks nothing.
SELECT q.namespace, s.epoch, CASE WHEN s.epoch IS NOT NULL THEN l.due END, s.since, s.condition, s.on_timeout, s.delay,
       s.escalated, s.reason, r.at, r.by, r.reason
  FROM weft.execution e JOIN weft.queue q ON q.id = e.queue
  LEFT JOIN weft.live l ON l.id = e.id
  LEFT JOIN weft.suspension s ON s.id = e.id AND s.epoch = l.epoch AND l.state = @suspended
  LEFT JOIN weft.resumption r ON r.id = e.id
 WHERE e.id = :id;

-- name: keys_read ()
-- returns: id int, secret bytea, created bigint, retires bigint?
SELECT id, secret, created, retires FROM weft.signing_key ORDER BY id;

-- name: key_lock ()
-- returns: version int
-- A process that makes a key waits here for others that do, and then sees theirs.
SELECT version FROM weft.schema FOR UPDATE;

-- name: key_add (secret bytea, created bigint, oldest int)
-- returns: id int
-- The first key is the first use of waiting: binaries that do not know it may not use the store any more.
WITH raised AS (
    UPDATE weft.schema SET oldest_binary = :oldest WHERE oldest_binary < :oldest
)
INSERT INTO weft.signing_key (secret, created) VALUES (:secret, :created) RETURNING id;

-- name: waiting_used (oldest int)
-- The same without a key: the keys are in a file.
UPDATE weft.schema SET oldest_binary = :oldest WHERE oldest_binary < :oldest;

-- name: key_retire (id int, retires bigint)
-- The keys before this one verify until then, or until an earlier time that they have.
UPDATE weft.signing_key SET retires = least(coalesce(retires, :retires), :retires) WHERE id < :id;

-- name: keys_remove (now bigint)
DELETE FROM weft.signing_key WHERE retires IS NOT NULL AND retires < :now;

-- name: wait_live (id uuid)
-- returns: namespace int, epoch int?, replays smallint?, state smallint?
-- The namespace of an execution, and of its living row what the state of its waitpoints follows from; null: it has
-- ended. Locks nothing.
SELECT q.namespace, l.epoch, l.replays, l.state
  FROM weft.execution e JOIN weft.queue q ON q.id = e.queue
  LEFT JOIN weft.live l ON l.id = e.id
 WHERE e.id = :id;
