-- The twins of sql/pg/wait.sql.

-- name: waitpoints_bound (id uuid[], bound int[])
-- returns: waitpoint uuid, id uuid, created bigint, expires bigint?, closed bigint?, epoch int, bound int, signals int, key int, replay smallint, name text
SELECT @{waitpoint_columns w} FROM waitpoint w WHERE w.id = :id AND w.bound = :bound;

-- name: waitpoints_open (id uuid[])
-- returns: waitpoint uuid, id uuid, created bigint, expires bigint?, closed bigint?, epoch int, bound int, signals int, key int, replay smallint, name text, condition text, delay bigint
SELECT @{waitpoint_columns w}, s.condition, s.delay
  FROM suspension s CROSS JOIN waitpoint w ON w.id = s.id AND w.bound = s.epoch
 WHERE s.id = :id;

-- name: waitpoints_named (waitpoint uuid[])
-- returns: waitpoint uuid, id uuid, created bigint, expires bigint?, closed bigint?, epoch int, bound int, signals int, key int, replay smallint, name text
SELECT @{waitpoint_columns w} FROM waitpoint w WHERE w.waitpoint = :waitpoint;

-- name: waitpoint_add (waitpoint uuid[], id uuid[], created bigint[], expires bigint?[], epoch int[], bound int[], key int[], replay smallint[], name text[], marked bool[])
INSERT INTO waitpoint (waitpoint, id, created, expires, epoch, bound, signals, key, replay, name, marked)
VALUES (:waitpoint, :id, :created, :expires, :epoch, :bound, 0, :key, :replay, :name, :marked);
UPDATE live SET has = has | @WEFT_HAS_WAITING
 WHERE NOT :marked AND num = (SELECT num FROM execution WHERE id = :id) AND has & @WEFT_HAS_WAITING <> @WEFT_HAS_WAITING;

-- name: waitpoint_bind (waitpoint uuid[], bound int[])
UPDATE waitpoint SET bound = :bound WHERE waitpoint = :waitpoint;

-- name: suspension_read (id uuid[])
-- returns: id uuid, epoch int, since bigint, condition text, on_timeout smallint, delay bigint, escalated bigint?, reason text?
SELECT id, epoch, since, condition, on_timeout, delay, escalated, reason FROM suspension WHERE id = :id;

-- name: suspension_add (id uuid[], epoch int[], since bigint[], due bigint?[], lane int[], condition text[], on_timeout smallint[], delay bigint[], reason text?[])
INSERT INTO suspension (id, epoch, since, due, lane, condition, on_timeout, delay, reason)
VALUES (:id, :epoch, :since, :due, :lane, :condition, :on_timeout, :delay, :reason)
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, since = excluded.since, due = excluded.due,
       lane = excluded.lane, condition = excluded.condition,
       on_timeout = excluded.on_timeout, delay = excluded.delay, reason = excluded.reason, escalated = NULL;

-- name: suspension_escalate (id uuid[], at bigint)
UPDATE suspension
   SET escalated = :at, due = NULL,
       namespace = (SELECT q.namespace FROM queue q
                     WHERE q.id = (SELECT e.queue FROM execution e WHERE e.id = :id))
 WHERE id = :id;

-- name: suspension_drop (id uuid[])
DELETE FROM suspension WHERE id = :id;

-- name: suspension_resume (id uuid[], epoch int[], at bigint[], by smallint[], reason text?[])
DELETE FROM suspension WHERE id = :id;
INSERT INTO resumption (id, epoch, at, by, reason) VALUES (:id, :epoch, :at, :by, :reason)
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, at = excluded.at, by = excluded.by,
       reason = excluded.reason;

-- name: resumption_put (id uuid[], epoch int[], at bigint[], by smallint[], reason text?[])
INSERT INTO resumption (id, epoch, at, by, reason) VALUES (:id, :epoch, :at, :by, :reason)
    ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, at = excluded.at, by = excluded.by,
       reason = excluded.reason;

-- name: signal_heads (id uuid[], waitpoint uuid[])
-- returns: id uuid, waitpoint uuid, n int, at bigint, name text?, source text?
SELECT id, waitpoint, n, at, name, source FROM signal WHERE id = :id AND waitpoint = :waitpoint ORDER BY n;

-- name: signal_keys (waitpoint uuid[], key text[])
-- returns: waitpoint uuid, key text, effect smallint
SELECT waitpoint, key, effect FROM signal WHERE waitpoint = :waitpoint AND key = :key;

-- name: signal_add (id uuid[], waitpoint uuid[], n int[], at bigint[], effect smallint[], name text?[], source text?[], key text?[], content_type text?[], payload bytea?[])
INSERT INTO signal (id, waitpoint, n, at, effect, name, source, key, content_type, payload)
VALUES (:id, :waitpoint, :n, :at, :effect, :name, :source, :key, :content_type, :payload);
UPDATE waitpoint SET signals = :n WHERE waitpoint = :waitpoint;

-- name: signals_read (id uuid[], bound int?[], bytes bigint)
-- returns: id uuid, resumed bigint?, by smallint?, epoch int?, waitpoint uuid?, waitpoint_name text?, n int?, at bigint?, effect smallint?, name text?, source text?, key text?, content_type text?, payload bytea?, more bool?
SELECT i.id, r.at, r.by, r.epoch, t.waitpoint, t.waitpoint_name, t.n, t.at, t.effect, t.name, t.source, t.key, t.content_type,
       CASE WHEN t.sum <= :bytes THEN t.payload END, t.sum > :bytes
  FROM (SELECT :id AS id) i
  LEFT JOIN resumption r ON r.id = :id
  LEFT JOIN (SELECT s.*, w.name AS waitpoint_name,
                    sum(coalesce(length(s.payload), 0) + @WEFT_SIGNAL_BYTES) OVER (ORDER BY s.at, s.waitpoint, s.n) AS sum,
                    coalesce(length(s.payload), 0) + @WEFT_SIGNAL_BYTES AS size
               FROM waitpoint w JOIN signal s ON s.id = w.id AND s.waitpoint = w.waitpoint
              WHERE w.id = :id AND w.bound = coalesce(:bound, (SELECT x.epoch FROM resumption x WHERE x.id = :id))
              ORDER BY s.at, s.waitpoint, s.n) t ON t.sum - t.size <= :bytes;

-- name: waitpoints_list (id uuid, after uuid, most int)
-- returns: waitpoint uuid, id uuid, created bigint, expires bigint?, closed bigint?, epoch int, bound int, signals int, key int, replay smallint, name text
SELECT @{waitpoint_columns w}
  FROM waitpoint w WHERE w.id = :id AND w.waitpoint > :after ORDER BY w.waitpoint LIMIT :most;

-- name: signals_list (id uuid, after uuid, after_n int, most int, bytes bigint)
-- returns: waitpoint uuid, waitpoint_name text, n int, at bigint, effect smallint, name text?, source text?, key text?, content_type text?, payload bytea?
SELECT t.waitpoint, (SELECT w.name FROM waitpoint w WHERE w.waitpoint = t.waitpoint), t.n, t.at, t.effect,
       t.name, t.source, t.key, t.content_type, t.payload
  FROM (SELECT s.*, sum(coalesce(length(s.payload), 0)) OVER (ORDER BY s.waitpoint, s.n)
                    - coalesce(length(s.payload), 0) AS before
          FROM (SELECT * FROM signal x
                 WHERE x.id = :id AND (x.waitpoint, x.n) > (:after, :after_n)
                 ORDER BY x.waitpoint, x.n LIMIT :most) s) t
 WHERE t.before <= :bytes
 ORDER BY t.waitpoint, t.n;

-- name: waitpoint_expire (now bigint, batch int, ns int, first int, last int)
-- returns: waitpoint uuid, id uuid
UPDATE waitpoint SET closed = :now
 WHERE waitpoint IN (SELECT x.waitpoint FROM waitpoint x
                      WHERE x.bound = 0 AND x.closed IS NULL AND x.expires IS NOT NULL AND x.expires <= :now
                        AND (:ns = 0 OR (SELECT q.namespace FROM queue q
                                          WHERE q.id = (SELECT e.queue FROM execution e WHERE e.id = x.id)) = :ns)
                        AND @{of_partition x.id}
                      ORDER BY x.expires LIMIT :batch)
RETURNING waitpoint, id;

-- name: waitpoint_next (now bigint, batch int, ns int, first int, last int)
-- returns: left bigint, due bigint?
SELECT (SELECT count(*)
          FROM (SELECT 1 FROM waitpoint x
                 WHERE x.bound = 0 AND x.closed IS NULL AND x.expires IS NOT NULL AND x.expires <= :now
                   AND (:ns = 0 OR (SELECT q.namespace FROM queue q
                                     WHERE q.id = (SELECT e.queue FROM execution e WHERE e.id = x.id)) = :ns)
                   AND @{of_partition x.id}
                 ORDER BY x.expires LIMIT :batch) s),
       (SELECT x.expires FROM waitpoint x
         WHERE x.bound = 0 AND x.closed IS NULL AND x.expires IS NOT NULL AND x.expires > :now
         ORDER BY x.expires LIMIT 1);

-- name: waiting_read (id uuid)
-- returns: namespace int, epoch int?, timeout bigint?, since bigint?, condition text?, on_timeout smallint?, delay bigint?, escalated bigint?, reason text?, resumed bigint?, by smallint?, resumed_reason text?
SELECT q.namespace, s.epoch, CASE WHEN s.epoch IS NOT NULL THEN l.due END, s.since, s.condition, s.on_timeout, s.delay,
       s.escalated, s.reason, r.at, r.by, r.reason
  FROM execution e JOIN queue q ON q.id = e.queue
  LEFT JOIN live l ON l.num = e.num
  LEFT JOIN suspension s ON s.id = e.id AND s.epoch = l.epoch AND l.state = @suspended
  LEFT JOIN resumption r ON r.id = e.id
 WHERE e.id = :id;

-- name: keys_read ()
-- returns: id int, secret bytea, created bigint, retires bigint?
SELECT id, secret, created, retires FROM signing_key ORDER BY id;

-- name: key_lock ()
-- returns: version int
SELECT version FROM schema;

-- name: key_add (secret bytea, created bigint, oldest int)
-- returns: id int
UPDATE schema SET oldest_binary = :oldest WHERE oldest_binary < :oldest;
INSERT INTO signing_key (secret, created) VALUES (:secret, :created) RETURNING id;

-- name: waiting_used (oldest int)
UPDATE schema SET oldest_binary = :oldest WHERE oldest_binary < :oldest;

-- name: key_retire (id int, retires bigint)
UPDATE signing_key SET retires = min(coalesce(retires, :retires), :retires) WHERE id < :id;

-- name: keys_remove (now bigint)
DELETE FROM signing_key WHERE retires IS NOT NULL AND retires < :now;

-- name: wait_live (id uuid)
-- returns: namespace int, epoch int?, replays smallint?, state smallint?
SELECT q.namespace, l.epoch, l.replays, l.state
  FROM execution e JOIN queue q ON q.id = e.queue
  LEFT JOIN live l ON l.num = e.num
 WHERE e.id = :id;
