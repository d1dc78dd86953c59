-- Submitting. Ids were minted by the caller, so an answer is matched by id, never by position.

-- name: submit (now bigint, id uuid[], ord bigint[], queue int[], lane int[], policy int[], priority smallint[], state smallint[], due bigint?[], deadline bigint?[], content_type text?[], tags text?[], key text?[], payload bytea?[], size int[], gate text?[], span_namespace int?[], span_first uuid?[], span_count int?[])
-- New rows only: no other transaction can wait for them. The span_ columns are of the last row of a span, see 0010-lists.
WITH item AS (
    SELECT * FROM unnest(:id, :ord, :queue, :lane, :policy, :priority, :state, :due, :deadline,
                         :content_type, :tags, :key, :payload, :size, :gate, :span_namespace,
                         :span_first, :span_count)
        AS i(id, ord, queue, lane, policy, priority, state, due, deadline,
             content_type, tags, key, payload, size, gate, span_namespace, span_first, span_count)
), fact AS (
    INSERT INTO weft.execution (id, created, queue, content_type, tags, key, payload, gate)
    SELECT id, :now, queue, content_type, tags, key, payload, gate FROM item
), spans AS (@{spans_added})
INSERT INTO weft.live (id, ord, due, deadline, queue, lane, policy, epoch, attempt, forgiven, size,
                       lost, replays, priority, state, has, gate)
SELECT id, ord, due, deadline, queue, lane, policy, 0, 1, 0, size, 0, 0, priority, state, 0, gate FROM item;

-- name: key_take (namespace int[], key text[], id uuid[], fingerprint bytea[])
-- returns: id uuid
-- Takes the keys that are free, in the order of (namespace, key): two submitters of the same keys
-- in opposite order meet here and one waits. A key in another open transaction makes it wait up
-- to lock_timeout. Returns the ids that won; the holders of the other keys are read by a later statement,
-- because this one sees the snapshot from before it waited. Of several items with one key the first
-- in the list wins.
INSERT INTO weft.key (namespace, key, id, fingerprint)
SELECT namespace, key, id, fingerprint
  FROM unnest(:namespace, :key, :id, :fingerprint)
       WITH ORDINALITY AS k(namespace, key, id, fingerprint, place)
 ORDER BY namespace, key, place
    ON CONFLICT DO NOTHING
RETURNING id;

-- name: key_read (namespace int[], key text[])
-- returns: namespace int, key text, id uuid, fingerprint bytea, state smallint
SELECT k.namespace, k.key, k.id, k.fingerprint, coalesce(l.state, o.state)
  FROM unnest(:namespace, :key) AS w(namespace, key)
 CROSS JOIN LATERAL (SELECT * FROM weft.key
                      WHERE namespace = w.namespace AND key = w.key OFFSET 0) k
  @{live_or_outcome state | k.id};

-- name: submit_ended (now bigint, id uuid[], ord bigint[], queue int[], policy int[], state smallint[], ended smallint[], reason text[], error_class text?[], error_message text?[], payload bytea?[], tags text?[], span_namespace int?[], span_first uuid?[], span_count int?[])
-- Executions that are over as they begin: inbox rows that were refused or whose key was taken.
WITH item AS (
    SELECT * FROM unnest(:id, :ord, :queue, :policy, :state, :ended, :reason, :error_class,
                         :error_message, :payload, :tags, :span_namespace, :span_first, :span_count)
        AS i(id, ord, queue, policy, state, ended, reason, error_class, error_message, payload, tags,
             span_namespace, span_first, span_count)
), fact AS (
    INSERT INTO weft.execution (id, created, queue, payload, tags)
    SELECT id, :now, queue, payload, tags FROM item
), spans AS (@{spans_added})
INSERT INTO weft.outcome (id, finished, ord, queue, policy, epoch, attempt, forgiven, lost, replays,
                          priority, state, ended, held, by, reason, error_class, error_message, has)
SELECT id, :now, ord, queue, policy, 0, 1, 0, 0, 0, 0, state, ended, false, 'intake', reason,
       error_class, error_message, 0
  FROM item;

-- fragment: inbox_columns ()
-- A row i of the inbox without fields that are too large; whether there is an execution with its id.
i.id, left(i.namespace, 1024), left(i.lane, 1024), left(i.kind, 1024),
       CASE WHEN i.size <= @WEFT_PAYLOAD_MAX THEN i.payload END, i.size, left(i.content_type, 1024), i.priority,
       i.delay_ms, i.run_at, i.deadline, CASE WHEN i.oversize IS NULL THEN i.capabilities END,
       left(i.tenant, 1024), CASE WHEN octet_length(i.tags) <= @WEFT_INBOX_JSON_MAX THEN i.tags END, left(i.key, 4096),
       CASE WHEN i.oversize IS NULL THEN i.policy END, CASE WHEN i.oversize IS NULL THEN i.limits END, i.oversize,
       EXISTS (SELECT 1 FROM weft.execution e WHERE e.id = i.id OFFSET 0)

-- fragment: inbox_sizes ()
-- The size of the payload of a row b, and the first of its other fields that is too large.
coalesce(octet_length(b.payload), 0) AS size,
               CASE WHEN octet_length(b.capabilities) > @WEFT_INBOX_JSON_MAX THEN 'capabilities'
                    WHEN octet_length(b.tags) > @WEFT_INBOX_JSON_MAX THEN 'tags'
                    WHEN octet_length(b.policy) > @WEFT_INBOX_JSON_MAX THEN 'policy'
                    WHEN octet_length(b.limits) > @WEFT_INBOX_JSON_MAX THEN 'limits' END AS oversize

-- fragment: inbox_bytes ()
-- The bytes of a row b for the limit of a look.
least(coalesce(octet_length(b.payload), 0), @WEFT_PAYLOAD_MAX)
+ least(coalesce(octet_length(b.capabilities), 0), @WEFT_INBOX_JSON_MAX)
+ least(coalesce(octet_length(b.tags), 0), @WEFT_INBOX_JSON_MAX)
+ least(coalesce(octet_length(b.policy), 0), @WEFT_INBOX_JSON_MAX)
+ least(coalesce(octet_length(b.limits), 0), @WEFT_INBOX_JSON_MAX)

-- fragment: inbox_namespace ()
-- The expression of the index inbox_namespace.
left(n.namespace, @WEFT_NAME_MAX) COLLATE "C"

-- fragment: old_notes_removed ()
-- Notes of refused rows are kept for a week.
DELETE FROM weft.inbox_refused WHERE at < :now - 604800000000

-- name: inbox_peek (batch int, bytes bigint, namespace text?, first int, last int)
-- returns: id uuid, namespace text, lane text?, kind text?, payload bytea?, size int, content_type text?, priority int?, delay_ms bigint?, run_at bigint?, deadline bigint?, capabilities text?, tenant text?, tags text?, key text?, policy text?, limits text?, oversize text?, known bool, next text?
-- only: pg, because SQLite has no weft_submit(): programs that share the file use the library
-- Rows that wait, oldest first, without locks and bounded in bytes. A field that is too large to be
-- accepted is not read: `oversize` names it, and size is that of the payload. known: an execution with
-- this id is there. namespace NULL: of all; partitions as in pass.sql. next: in the last row, '' if the bytes
-- kept a row of the batch back.
SELECT @{inbox_columns}, i.next
  FROM (SELECT b.*, @{inbox_sizes},
               sum(@{inbox_bytes}) OVER (ORDER BY b.id) AS total,
               row_number() OVER (ORDER BY b.id) AS place,
               lead(''::text) OVER (ORDER BY b.id) AS next
          FROM (SELECT n.* FROM weft.inbox n
                 WHERE (:namespace IS NULL OR n.namespace = :namespace)
                   AND @{of_partition n.id}
                 ORDER BY n.id LIMIT :batch) b) i
 WHERE i.total <= :bytes OR i.place = 1
 ORDER BY i.id;

-- name: inbox_turns (batch int, bytes bigint, start text, most int, first int, last int)
-- returns: id uuid, namespace text, lane text?, kind text?, payload bytea?, size int, content_type text?, priority int?, delay_ms bigint?, run_at bigint?, deadline bigint?, capabilities text?, tenant text?, tags text?, key text?, policy text?, limits text?, oversize text?, known bool, next text?
-- only: pg, as inbox_peek
-- The look after one that could not see all: namespaces take turns. Hops over the namespaces of the inbox from
-- :start on, at most :most of them, and looks at the same number of rows of each, oldest first. The bytes go to
-- the first row of every namespace, then to the second ones, and so on. next: the namespace to go on with, '' to
-- begin again. Names that are too long to be one count by their first 128 characters.
WITH RECURSIVE hop AS (
    (SELECT @{inbox_namespace} AS name FROM weft.inbox n
      WHERE @{inbox_namespace} >= :start
      ORDER BY @{inbox_namespace} LIMIT 1)
    UNION ALL
    SELECT (SELECT @{inbox_namespace} FROM weft.inbox n
             WHERE @{inbox_namespace} > hop.name
             ORDER BY @{inbox_namespace} LIMIT 1)
      FROM hop WHERE hop.name IS NOT NULL
), looked AS MATERIALIZED (
    SELECT w.name, row_number() OVER () AS turn
      FROM (SELECT hop.name FROM hop WHERE hop.name IS NOT NULL LIMIT :most + 1) w
), waiting AS (
    SELECT b.*, @{inbox_sizes},
           @{inbox_bytes} AS bytes,
           looked.turn, row_number() OVER (PARTITION BY looked.turn ORDER BY b.id) AS place
      FROM looked
     CROSS JOIN LATERAL (SELECT n.* FROM weft.inbox n
                          WHERE @{inbox_namespace} = looked.name
                            AND @{of_partition n.id}
                          ORDER BY n.id
                          LIMIT greatest(:batch / least((SELECT count(*) FROM looked), :most), 1)) b
     WHERE looked.turn <= :most
), fit AS (
    SELECT f.*
      FROM (SELECT w.*, sum(w.bytes) OVER (ORDER BY w.place, w.turn) AS total,
                   row_number() OVER (ORDER BY w.place, w.turn) AS number
              FROM waiting w) f
     WHERE (f.total <= :bytes OR f.number = 1) AND f.number <= :batch
)
SELECT @{inbox_columns},
       coalesce((SELECT looked.name FROM looked
                  WHERE looked.turn = (SELECT max(fit.turn) FROM fit) + 1), '')
  FROM fit i
 ORDER BY i.id;

-- name: inbox_refuse (now bigint, id uuid[], namespace text[], reason text[])
-- returns: id uuid
-- only: pg, as inbox_peek
-- Removes rows that cannot become executions and notes each once; notes of more than a week ago go.
WITH gone AS (
    DELETE FROM weft.inbox
     WHERE id IN (SELECT i.id FROM weft.inbox i WHERE i.id = ANY(:id) ORDER BY i.id FOR UPDATE SKIP LOCKED)
    RETURNING id
), old AS (
    @{old_notes_removed}
)
INSERT INTO weft.inbox_refused (id, at, namespace, reason)
SELECT g.id, :now, w.namespace, w.reason
  FROM unnest(:id, :namespace, :reason) AS w(id, namespace, reason) JOIN gone g ON g.id = w.id
RETURNING id;

-- name: inbox_note (now bigint, id uuid[], namespace text[], reason text[])
-- only: pg, as inbox_peek
-- Notes rows that became failed executions, for `weft doctor`; notes of more than a week ago go.
WITH old AS (
    @{old_notes_removed}
)
INSERT INTO weft.inbox_refused (id, at, namespace, reason)
SELECT id, :now, namespace, reason FROM unnest(:id, :namespace, :reason) AS w(id, namespace, reason);

-- name: inbox_take (id uuid[])
-- returns: id uuid
-- only: pg, as inbox_peek
-- Deletes rows in the transaction that makes executions of them. SKIP LOCKED splits them between
-- replicas: a row that another replica is just taking is not returned.
DELETE FROM weft.inbox
 WHERE id IN (SELECT i.id FROM weft.inbox i WHERE i.id = ANY(:id) ORDER BY i.id FOR UPDATE SKIP LOCKED)
RETURNING id;
