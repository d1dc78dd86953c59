-- The twins of sql/pg/server.sql.

-- name: poll (after int, most int, whole bool)
-- returns: what int, a bigint?, b bigint?, c bigint?, d bigint?, text text?
WITH RECURSIVE @{ready_queues}, @{lanes_with_leases}, untold(worker) AS (
    SELECT min(worker) FROM draining WHERE NOT told
    UNION ALL
    SELECT (SELECT min(d.worker) FROM draining d WHERE NOT d.told AND d.worker > untold.worker)
      FROM untold WHERE untold.worker IS NOT NULL
)
SELECT @WEFT_POLL_QUEUE, queue, NULL, NULL, NULL, NULL FROM hop WHERE :whole AND queue IS NOT NULL
UNION ALL
SELECT @WEFT_POLL_DUE,
       (SELECT min(due) FROM (
            SELECT min((SELECT min(l.due) FROM live l WHERE l.lane = lanes.lane AND l.state = @running)) AS due
              FROM lanes WHERE lane IS NOT NULL
            UNION ALL
            SELECT min(until) FROM draining)),
       (SELECT min(attempt_deadline) FROM live WHERE attempt_deadline IS NOT NULL),
       (SELECT min(deadline) FROM live WHERE deadline IS NOT NULL),
       (SELECT min(due) FROM live WHERE state = @delayed),
       NULL
 WHERE :whole
UNION ALL
SELECT @WEFT_POLL_STATE, 0, max(id), sum(id), count(*), NULL FROM token
UNION ALL
SELECT @WEFT_POLL_LANE, id, namespace, paused + CASE WHEN window_limit + rate_limit > 0 THEN 2 ELSE 0 END, max_running,
       weights
  FROM lane
UNION ALL
SELECT @WEFT_POLL_HINTS, (SELECT at FROM completion ORDER BY seq LIMIT 1),
       (SELECT min(at) FROM cancel_group WHERE waiting = 0),
       (SELECT min(at) FROM cancel_group WHERE waiting = 1), NULL, NULL
UNION ALL
SELECT @WEFT_POLL_FLOWS, EXISTS (SELECT 1 FROM flow WHERE backlog),
       (SELECT created FROM flow WHERE state < 0 AND state = @WEFT_FLOW_STAGED ORDER BY state, num LIMIT 1),
       EXISTS (SELECT 1 FROM flow WHERE state < 0 AND state = @WEFT_FLOW_REMOVING)
       OR EXISTS (SELECT 1 FROM flow WHERE deleted IS NOT NULL AND +state > 0)
       OR EXISTS (SELECT 1 FROM file WHERE deleted IS NOT NULL)
       OR EXISTS (SELECT 1 FROM batch b WHERE b.deleted IS NOT NULL AND NOT EXISTS (SELECT 1 FROM flow f WHERE f.id = b.id)),
       NULL, NULL
UNION ALL
SELECT @WEFT_POLL_UNTOLD, worker, NULL, NULL, NULL, NULL
  FROM (SELECT worker FROM untold WHERE worker IS NOT NULL LIMIT 1000)
UNION ALL
SELECT @WEFT_POLL_WAITING, (SELECT min(due) FROM suspension WHERE due IS NOT NULL),
       (SELECT min(expires) FROM waitpoint WHERE bound = 0 AND closed IS NULL AND expires IS NOT NULL),
       (SELECT max(id) FROM signing_key),
       (SELECT sum(coalesce(retires, 0) % 1000000007) FROM signing_key), NULL
UNION ALL
SELECT @WEFT_POLL_GATES, (SELECT min(next) FROM gate WHERE next IS NOT NULL), EXISTS (SELECT 1 FROM gate), NULL, NULL, NULL
UNION ALL
SELECT @WEFT_POLL_BUDGETS, (SELECT min(next_reset) FROM budget WHERE next_reset IS NOT NULL),
       EXISTS (SELECT 1 FROM ledger WHERE settled IS NULL) OR EXISTS (SELECT 1 FROM budget WHERE cancelling)
       OR EXISTS (SELECT 1 FROM budget_dimension WHERE dropped OR stale), (SELECT version FROM budget_version), NULL, NULL
UNION ALL
SELECT @WEFT_POLL_ENDPOINTS, version, NULL, NULL, NULL, NULL FROM endpoint_version
UNION ALL
SELECT @WEFT_POLL_ERASURE, EXISTS (SELECT 1 FROM erasure WHERE finished IS NULL), NULL, NULL, NULL, NULL
UNION ALL
SELECT @WEFT_POLL_SCHEMA, version, oldest_binary, NULL, NULL, NULL FROM schema
UNION ALL
SELECT @WEFT_POLL_RETIRED, what, id, NULL, NULL, NULL FROM retired;

-- name: execution_queues (id uuid[])
-- returns: id uuid, queue int
SELECT id, queue FROM execution WHERE id = :id;

-- name: token_add (name text, namespace text?, scopes int, hash bytea, created bigint, expires bigint?, secret_of int?)
-- returns: id int
INSERT INTO token (name, namespace, scopes, hash, created, expires, secret_of)
VALUES (:name, :namespace, :scopes, :hash, :created, :expires, :secret_of)
RETURNING id;

-- name: token_lock (id int)
-- returns: id int
SELECT id FROM token WHERE id = :id AND secret_of IS NULL;

-- name: token_secrets (id int)
-- returns: id int, name text, namespace text?, scopes int, expires bigint?
SELECT id, name, namespace, scopes, expires FROM token WHERE id = :id OR secret_of = :id ORDER BY id;

-- name: token_retire (id int, until bigint)
UPDATE token SET expires = :until
 WHERE (id = :id OR secret_of = :id) AND (expires IS NULL OR expires > :until);

-- name: token_purge (id int, now bigint)
DELETE FROM token WHERE secret_of = :id AND expires <= :now;

-- name: token_revoke (id int)
-- returns: id int
DELETE FROM token WHERE id = :id OR secret_of = :id RETURNING id;

-- name: token_used (id int[], at bigint[])
UPDATE token SET last_used = :at WHERE id = :id AND (last_used IS NULL OR last_used < :at);

-- name: tokens ()
-- returns: id int, token int, name text, namespace text?, scopes int, hash bytea, created bigint, expires bigint?, last_used bigint?
SELECT t.id, coalesce(t.secret_of, t.id), t.name, t.namespace, t.scopes, t.hash, t.created,
       t.expires, t.last_used
  FROM token t
 WHERE t.secret_of IS NULL
    OR EXISTS (SELECT 1 FROM token o WHERE o.id = t.secret_of)
 ORDER BY t.id;

-- name: worker_put (name int[], namespace int[], lanes text[], capabilities text[], seen bigint[])
INSERT INTO worker (name, namespace, lanes, capabilities, seen)
VALUES (:name, :namespace, :lanes, :capabilities, :seen)
    ON CONFLICT (name) DO UPDATE SET lanes = excluded.lanes, capabilities = excluded.capabilities,
                                     seen = excluded.seen
 WHERE worker.seen < excluded.seen OR (worker.seen = excluded.seen AND worker.lanes <> '');

-- name: workers (namespace int)
-- returns: name int, lanes text, capabilities text, seen bigint
SELECT name, lanes, capabilities, seen FROM worker WHERE namespace = :namespace AND lanes <> '';

-- name: counts_by_worker ()
-- returns: worker int, number bigint
SELECT worker, count(*) FROM live WHERE state = @running GROUP BY worker;

-- name: worker_leases (worker int, batch int)
-- returns: id uuid?, ord bigint, due bigint?, attempt_deadline bigint?, deadline bigint?, started bigint?, claimed bigint?, queue int, lane int, policy int, worker int?, epoch int, attempt int, forgiven int, size int, lost smallint, replays smallint, priority smallint, state smallint, has smallint, gate text?
SELECT @{live_columns}
  FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.state = @running AND l.worker = :worker
 LIMIT :batch;

-- name: worker_gone (name int, namespace int, now bigint)
INSERT INTO worker (name, namespace, lanes, capabilities, seen)
VALUES (:name, :namespace, '', '', :now)
    ON CONFLICT (name) DO UPDATE SET lanes = '', capabilities = '',
                                     seen = max(worker.seen, excluded.seen);

-- name: tally_add (lane int[], minute bigint[], succeeded bigint[], failed bigint[])
INSERT INTO tally (lane, minute, succeeded, failed) VALUES (:lane, :minute, :succeeded, :failed)
    ON CONFLICT (lane, minute) DO UPDATE SET succeeded = tally.succeeded + excluded.succeeded,
                                             failed = tally.failed + excluded.failed;

-- name: tally_purge (minute bigint)
DELETE FROM tally WHERE minute < :minute;

-- name: tally_read (namespace int?, minute bigint)
-- returns: namespace int, lane int, succeeded bigint, failed bigint
SELECT n.namespace, t.lane, sum(t.succeeded), sum(t.failed)
  FROM tally t JOIN name n ON n.id = t.lane
 WHERE t.minute >= :minute AND (:namespace IS NULL OR n.namespace = :namespace)
 GROUP BY n.namespace, t.lane;
