-- The poll, tokens, workers and tallies of a server.

-- name: poll (after int, most int, whole bool)
-- returns: what int, a bigint?, b bigint?, c bigint?, d bigint?, text text?
-- Runs every second on every replica, without a transaction around it. Locks nothing.
-- The version of the schema comes with it, because another process may migrate at any time. A part is a
-- function of 0021-poll-parts or a later migration. poll_work is called only with :whole.
SELECT what, a, b, c, d, text FROM weft.poll_work(:after, :most) WHERE :whole
UNION ALL
SELECT what, a, b, c, d, text FROM weft.poll_settings()
UNION ALL
SELECT what, a, b, c, d, text FROM weft.poll_flows()
UNION ALL
SELECT what, a, b, c, d, text FROM weft.poll_workers()
UNION ALL
SELECT what, a, b, c, d, text FROM weft.poll_waiting()
UNION ALL
SELECT what, a, b, c, d, text FROM weft.poll_gates()
UNION ALL
SELECT what, a, b, c, d, text FROM weft.poll_budgets()
UNION ALL
SELECT what, a, b, c, d, text FROM weft.poll_endpoints()
UNION ALL
SELECT what, a, b, c, d, text FROM weft.poll_erasure()
UNION ALL
SELECT @WEFT_POLL_SCHEMA, version, oldest_binary, NULL, NULL, NULL FROM weft.schema
UNION ALL
SELECT @WEFT_POLL_RETIRED, what, id, NULL, NULL, NULL FROM weft.retired;

-- name: execution_queues (id uuid[])
-- returns: id uuid, queue int
-- Locks nothing: an execution never changes its queue.
SELECT e.id, e.queue
  FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT id, queue FROM weft.execution WHERE id = i.id OFFSET 0) e;

-- name: token_add (name text, namespace text?, scopes int, hash bytea, created bigint, expires bigint?, secret_of int?)
-- returns: id int
INSERT INTO weft.token (name, namespace, scopes, hash, created, expires, secret_of)
VALUES (:name, :namespace, :scopes, :hash, :created, :expires, :secret_of)
RETURNING id;

-- name: token_lock (id int)
-- returns: id int
-- Rotations and revocations of a token take its own row first and look at its secrets in a later
-- statement. Otherwise the secret of a rotation that commits while a revocation waits would not be
-- in the snapshot of the revocation, and would outlive it.
SELECT id FROM weft.token WHERE id = :id AND secret_of IS NULL
   FOR UPDATE;

-- name: token_secrets (id int)
-- returns: id int, name text, namespace text?, scopes int, expires bigint?
-- The newest comes last.
SELECT id, name, namespace, scopes, expires FROM weft.token WHERE id = :id OR secret_of = :id ORDER BY id;

-- name: token_retire (id int, until bigint)
-- All secrets that there are expire, unless they do so earlier.
UPDATE weft.token SET expires = :until
 WHERE (id = :id OR secret_of = :id) AND (expires IS NULL OR expires > :until);

-- name: token_purge (id int, now bigint)
-- Secrets of earlier rotations that are no longer good. The row of the token itself stays.
DELETE FROM weft.token WHERE secret_of = :id AND expires <= :now;

-- name: token_revoke (id int)
-- returns: id int
DELETE FROM weft.token WHERE id = :id OR secret_of = :id RETURNING id;

-- name: token_used (id int[], at bigint[])
-- Replicas write of the same tokens: the rows are locked in the order of ids, and the latest use
-- stays.
WITH used AS MATERIALIZED (
    SELECT t.id, i.at
      FROM unnest(:id, :at) AS i(id, at) JOIN weft.token t ON t.id = i.id
     WHERE t.last_used IS NULL OR t.last_used < i.at
     ORDER BY t.id
       FOR UPDATE OF t
)
UPDATE weft.token t SET last_used = u.at FROM used u WHERE t.id = u.id;

-- name: tokens ()
-- returns: id int, token int, name text, namespace text?, scopes int, hash bytea, created bigint, expires bigint?, last_used bigint?
-- Every secret, with the token that it belongs to. A binary from before rotations revokes the row of
-- a token alone: its secrets are good for nothing then.
SELECT t.id, coalesce(t.secret_of, t.id), t.name, t.namespace, t.scopes, t.hash, t.created,
       t.expires, t.last_used
  FROM weft.token t
 WHERE t.secret_of IS NULL
    OR EXISTS (SELECT 1 FROM weft.token o WHERE o.id = t.secret_of)
 ORDER BY t.id;

-- name: worker_put (name int[], namespace int[], lanes text[], capabilities text[], seen bigint[])
-- Sorted, so that two servers that heard of the same workers wait for each other in one order. The
-- latest report stays, and so does a goodbye (see worker_gone).
INSERT INTO weft.worker AS w (name, namespace, lanes, capabilities, seen)
SELECT * FROM unnest(:name, :namespace, :lanes, :capabilities, :seen)
    AS i(name, namespace, lanes, capabilities, seen) ORDER BY 1
    ON CONFLICT (name) DO UPDATE SET lanes = excluded.lanes, capabilities = excluded.capabilities,
                                     seen = excluded.seen
 WHERE w.seen < excluded.seen OR (w.seen = excluded.seen AND w.lanes <> '');

-- name: workers (namespace int)
-- returns: name int, lanes text, capabilities text, seen bigint
SELECT name, lanes, capabilities, seen FROM weft.worker WHERE namespace = :namespace AND lanes <> '';

-- name: counts_by_worker ()
-- returns: worker int, number bigint
-- Looks at every lease.
SELECT worker, count(*) FROM weft.live WHERE state = @running GROUP BY worker;

-- name: worker_leases (worker int, batch int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?
-- The leases of one worker, for release. Rare, so no index is kept for it: looks at every lease.
-- SKIP LOCKED: a lease that is just being completed or lost needs no release.
SELECT @{live_columns l}
  FROM weft.live l
 WHERE l.state = @running AND l.worker = :worker
 LIMIT :batch
   FOR UPDATE SKIP LOCKED;

-- name: worker_gone (name int, namespace int, now bigint)
-- A row without lanes is one that said goodbye: it is listed no more, and keeps an older report of
-- another replica, written later, from listing the worker again. worker_expire removes it.
INSERT INTO weft.worker AS w (name, namespace, lanes, capabilities, seen)
VALUES (:name, :namespace, '', '', :now)
    ON CONFLICT (name) DO UPDATE SET lanes = '', capabilities = '',
                                     seen = greatest(w.seen, excluded.seen);

-- name: tally_add (lane int[], minute bigint[], succeeded bigint[], failed bigint[])
-- Sorted, as worker_put.
INSERT INTO weft.tally AS t (lane, minute, succeeded, failed)
SELECT * FROM unnest(:lane, :minute, :succeeded, :failed)
    AS i(lane, minute, succeeded, failed) ORDER BY 1, 2
    ON CONFLICT (lane, minute) DO UPDATE SET succeeded = t.succeeded + excluded.succeeded,
                                             failed = t.failed + excluded.failed;

-- name: tally_purge (minute bigint)
-- SKIP LOCKED: another replica may be at it, and nothing here is in a hurry.
DELETE FROM weft.tally
 WHERE (lane, minute) IN (SELECT t.lane, t.minute FROM weft.tally t WHERE t.minute < :minute
                             FOR UPDATE SKIP LOCKED);

-- name: tally_read (namespace int?, minute bigint)
-- returns: namespace int, lane int, succeeded bigint, failed bigint
SELECT n.namespace, t.lane, sum(t.succeeded)::bigint, sum(t.failed)::bigint
  FROM weft.tally t JOIN weft.name n ON n.id = t.lane
 WHERE t.minute >= :minute AND (:namespace IS NULL OR n.namespace = :namespace)
 GROUP BY n.namespace, t.lane;
