-- The twins of sql/pg/submit.sql. The write lock of the file is held: nothing else moves, and numbers
-- are given one after the other. OR FAIL, because a failed call is rolled back as a whole: SQLite need
-- not be able to undo half a statement. Spans: see 0019-one-namespace.

-- name: submit (now bigint, id uuid[], ord bigint[], queue int[], lane int[], policy int[], priority smallint[], state smallint[], due bigint?[], deadline bigint?[], content_type text?[], tags text?[], key text?[], payload bytea?[], size int[], gate text?[], span_namespace int?[], span_first uuid?[], span_count int?[])
INSERT OR FAIL INTO execution (id, created, queue, content_type, tags, key, payload, gate)
SELECT i.id, :now, i.queue, i.content_type, i.tags, i.key, i.payload, i.gate FROM input i;
INSERT OR FAIL INTO live (num, ord, due, deadline, queue, lane, policy, epoch, attempt, forgiven, size,
                          lost, replays, priority, state, has, gate)
SELECT (SELECT max(num) FROM execution) - i.rest, i.ord, i.due, i.deadline, i.queue, i.lane, i.policy,
       0, 1, 0, i.size, 0, 0, i.priority, i.state, 0, i.gate
  FROM input i;
INSERT OR FAIL INTO span (namespace, last, first, count)
SELECT i.span_namespace, i.id, i.span_first, i.span_count FROM input i
 WHERE i.span_namespace IS NOT NULL AND @{several_namespaces};

-- name: key_take (namespace int[], key text[], id uuid[], fingerprint bytea[])
-- returns: id uuid
INSERT INTO key (namespace, key, id, fingerprint) VALUES (:namespace, :key, :id, :fingerprint)
    ON CONFLICT DO NOTHING
RETURNING id;

-- name: key_read (namespace int[], key text[])
-- returns: namespace int, key text, id uuid, fingerprint bytea, state smallint
SELECT k.namespace, k.key, k.id, k.fingerprint, coalesce(l.state, o.state)
  FROM key k CROSS JOIN execution e ON e.id = k.id
  LEFT JOIN live l ON l.num = e.num LEFT JOIN outcome o ON o.num = e.num
 WHERE k.namespace = :namespace AND k.key = :key;

-- name: submit_ended (now bigint, id uuid[], ord bigint[], queue int[], policy int[], state smallint[], ended smallint[], reason text[], error_class text?[], error_message text?[], payload bytea?[], tags text?[], span_namespace int?[], span_first uuid?[], span_count int?[])
INSERT INTO execution (id, created, queue, payload, tags) VALUES (:id, :now, :queue, :payload, :tags);
INSERT INTO outcome (num, finished, ord, queue, policy, epoch, attempt, forgiven, lost, replays,
                     priority, state, ended, held, by, reason, error_class, error_message, has)
VALUES (last_insert_rowid(), :now, :ord, :queue, :policy, 0, 1, 0, 0, 0, 0, :state, :ended, 0,
        'intake', :reason, :error_class, :error_message, 0);
INSERT INTO span @{span_added};
