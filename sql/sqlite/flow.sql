-- The twins of sql/pg/flow.sql. The write lock of the file is the mutex of every flow.

-- name: flow_add (now bigint, id uuid[], namespace int[], name text?[], key text?[], fingerprint bytea?[], state smallint[], nodes int[])
-- returns: id uuid
INSERT INTO flow (id, namespace, name, key, fingerprint, state, revision, nodes, created, cancel, backlog)
VALUES (:id, :namespace, :name, :key, :fingerprint, :state, 1, :nodes, :now, 0, 0)
    ON CONFLICT (namespace, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id;

-- name: flow_of_key (namespace int[], key text[])
-- returns: id uuid, namespace int, key text, fingerprint bytea?, state smallint, revision int
SELECT id, namespace, key, fingerprint, state, revision FROM flow
 WHERE namespace = :namespace AND key = :key;

-- name: flow_members (flow uuid, after uuid, batch int)
-- returns: id uuid, name text
SELECT e.id, n.name FROM node n CROSS JOIN execution e ON e.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :flow)
   AND n.num > coalesce((SELECT num FROM execution WHERE id = :after), -1)
 ORDER BY n.num LIMIT :batch;

-- name: flow_nodes (now bigint, flow uuid[], id uuid[], ord bigint[], queue int[], lane int[], policy int[], priority smallint[], state smallint[], due bigint?[], deadline bigint?[], content_type text?[], tags text?[], payload bytea?[], size int[], gate text?[], name text[], join_policy smallint[], k int[], let_run bool[], total int[], fired smallint[], delay bigint[], run_at bigint[], model smallint?[], span_namespace int?[], span_first uuid?[], span_count int?[])
INSERT OR FAIL INTO execution (id, created, queue, content_type, tags, payload, gate)
VALUES (:id, :now, :queue, :content_type, :tags, :payload, :gate);
INSERT OR FAIL INTO live (num, ord, due, deadline, queue, lane, policy, epoch, attempt, forgiven, size,
                          lost, replays, priority, state, flow, has, gate)
VALUES (last_insert_rowid(), :ord, :due, :deadline, :queue, :lane, :policy, 0, 1, 0, :size, 0, 0,
        :priority, :state, (SELECT num FROM flow WHERE id = :flow), 0, :gate);
INSERT OR FAIL INTO node (num, flow, name, policy, k, let_run, total, succeeded, failed, fired, delay, run_at, model)
VALUES (last_insert_rowid(), (SELECT num FROM flow WHERE id = :flow), :name, :join_policy, :k,
        :let_run, :total, 0, 0, :fired, :delay, :run_at, :model);
INSERT OR FAIL INTO span @{span_added};

-- name: flow_edges (upstream uuid[], downstream uuid[])
INSERT INTO edge (upstream, downstream, state)
VALUES ((SELECT num FROM execution WHERE id = :upstream),
        (SELECT num FROM execution WHERE id = :downstream), 0);

-- name: flow_open (flow uuid)
-- returns: id uuid
UPDATE flow SET state = @WEFT_FLOW_OPEN WHERE id = :flow AND state = @WEFT_FLOW_STAGED RETURNING id;

-- name: flow_lock (flow uuid[])
-- returns: id uuid, state smallint, cancel smallint, reason text?, cancels int
SELECT id, state, cancel, reason, cancels FROM flow WHERE id = :flow AND state <> @WEFT_FLOW_STAGED;

-- Limits here are of one flow or group. The limit of all is `most` of the call: no row behind it
-- is read.

-- name: cascade_look (flow uuid[], chunk int, share int)
-- returns: seq bigint, flow uuid, id uuid, upstream_state smallint, bad bool, own_fired smallint?, downstream uuid?, edge_state smallint, policy smallint, k int, let_run bool, total int, succeeded int, failed int, fired smallint, delay bigint, run_at bigint, again int
-- The loops keep the order. To sort by it would read all edges of a completion for each chunk of them.
SELECT c.seq, :flow, CASE WHEN c.num = 0 THEN :flow ELSE u.id END, coalesce(l.state, o.state), s.bad,
       s.fired, d.id, e.state, n.policy, n.k, n.let_run, n.total, n.succeeded, n.failed, n.fired, n.delay, n.run_at, n.again
  FROM (SELECT * FROM completion WHERE flow = (SELECT num FROM flow WHERE id = :flow)
         ORDER BY seq LIMIT :share) c
  LEFT JOIN execution u ON u.num = c.num
  LEFT JOIN live l ON l.num = c.num
  LEFT JOIN outcome o ON o.num = c.num
  LEFT JOIN node s ON s.num = c.num
  LEFT JOIN edge e ON e.upstream = c.num AND e.downstream > coalesce(c.cursor, -1)
  LEFT JOIN node n ON n.num = e.downstream
  LEFT JOIN execution d ON d.num = e.downstream
 LIMIT :chunk + 1;

-- name: flow_roots (seq bigint, flow uuid, chunk int)
-- returns: id uuid, root bool, delay bigint, run_at bigint
SELECT e.id, n.total = 0 AND n.fired = @WEFT_FIRED_NOT, n.delay, n.run_at
  FROM node n CROSS JOIN execution e ON e.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :flow)
   AND n.num > coalesce((SELECT cursor FROM completion WHERE seq = :seq), -1)
 ORDER BY n.num LIMIT :chunk;

-- name: edge_put (upstream uuid[], downstream uuid[], state smallint[])
UPDATE edge SET state = :state
 WHERE upstream = (SELECT num FROM execution WHERE id = :upstream)
   AND downstream = (SELECT num FROM execution WHERE id = :downstream);

-- name: node_put (id uuid[], succeeded int[], failed int[], fired smallint[])
UPDATE node SET succeeded = :succeeded, failed = :failed, fired = :fired
 WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: node_mark (id uuid[], bad bool[])
UPDATE node SET bad = :bad WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: nodes_replay (id uuid[], succeeded int[], failed int[], fired smallint[], again int[])
UPDATE node SET succeeded = :succeeded, failed = :failed, fired = :fired, again = :again
 WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: joins_read (id uuid[])
-- returns: id uuid, policy smallint, k int, total int, succeeded int, failed int
SELECT :id, policy, k, total, succeeded, failed FROM node
 WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: edges_among (id uuid[])
-- returns: upstream uuid, downstream uuid, edge_state smallint
SELECT u.id, i.id, e.state
  FROM input i
 CROSS JOIN execution d ON d.id = i.id
 CROSS JOIN edge e ON e.downstream = d.num
 CROSS JOIN execution u ON u.num = e.upstream
 WHERE e.state <> @WEFT_EDGE_PENDING AND u.id IN (SELECT w.id FROM input w);

-- name: upstream_failed (id uuid[])
-- returns: id uuid, name text, state smallint?
SELECT :id, n.name, o.state
  FROM edge e CROSS JOIN node n ON n.num = e.upstream LEFT JOIN outcome o ON o.num = e.upstream
 WHERE e.downstream = (SELECT num FROM execution WHERE id = :id) AND e.state = @WEFT_EDGE_FAILED
 ORDER BY e.upstream LIMIT 1;

-- name: completion_add (flow uuid[], id uuid[], at bigint)
INSERT INTO completion (flow, num, at, anew)
VALUES ((SELECT num FROM flow WHERE id = :flow),
        coalesce((SELECT num FROM execution WHERE id = :id), 0), :at, 1);

-- name: completion_done (seq bigint[])
DELETE FROM completion WHERE seq = :seq;

-- name: completion_cursor (seq bigint[], cursor uuid[])
UPDATE completion SET cursor = (SELECT num FROM execution WHERE id = :cursor) WHERE seq = :seq;

-- name: completion_any (flow uuid[])
-- returns: flow uuid, groups bool
SELECT x.id, x.groups
  FROM (SELECT f.id, EXISTS (SELECT 1 FROM completion c WHERE c.flow = f.num) AS completions,
               EXISTS (SELECT 1 FROM cancel_group g WHERE g.flow = f.num AND NOT g.waiting) AS groups
          FROM flow f WHERE f.id = :flow) x
 WHERE x.completions OR x.groups;

-- name: flow_due (flow uuid[])
-- returns: flow uuid, pending bool, anew bool, living bool
SELECT f.id,
       EXISTS (SELECT 1 FROM completion c WHERE c.flow = f.num)
       OR EXISTS (SELECT 1 FROM cancel_group g WHERE g.flow = f.num AND NOT g.waiting),
       EXISTS (SELECT 1 FROM completion c WHERE c.flow = f.num AND c.anew),
       EXISTS (SELECT 1 FROM live l WHERE l.flow = f.num)
  FROM flow f WHERE f.id = :flow;

-- name: group_add (id uuid[], flow uuid[], reason smallint[], at bigint)
INSERT INTO cancel_group (num, flow, reason, at, waiting)
SELECT (SELECT num FROM execution WHERE id = :id), f.num, :reason, :at, 0
  FROM flow f
 WHERE f.id = :flow
   AND (:reason > 0 OR EXISTS (SELECT 1 FROM cancel_group g WHERE g.flow = f.num AND g.reason > 0))
    ON CONFLICT (num) DO UPDATE SET reason = excluded.reason, waiting = 0, wakes = wakes + 1;

-- name: flow_over (flow uuid[])
-- returns: id uuid, bad bool
SELECT f.id, EXISTS (SELECT 1 FROM node n WHERE n.flow = f.num AND n.bad)
  FROM flow f
 WHERE f.id = :flow
   AND NOT EXISTS (SELECT 1 FROM live l WHERE l.flow = f.num)
   AND NOT EXISTS (SELECT 1 FROM completion c WHERE c.flow = f.num);

-- name: flow_end (flow uuid[], state smallint[], now bigint)
UPDATE flow SET state = :state, finished = :now, backlog = 0 WHERE id = :flow;

-- name: groups_take (flow uuid[], chunk int)
-- returns: id uuid, flow uuid, reason smallint, at bigint, wakes int
SELECT e.id, :flow, g.reason, g.at, g.wakes FROM cancel_group g CROSS JOIN execution e ON e.num = g.num
 WHERE g.flow = (SELECT num FROM flow WHERE id = :flow) AND NOT g.waiting
   AND NOT EXISTS (SELECT 1 FROM completion c WHERE c.flow = g.flow AND c.anew)
 ORDER BY g.num LIMIT :chunk;

-- name: group_members (id uuid[], reason smallint[], after uuid[], chunk int)
-- returns: node uuid, id uuid, fate int?
SELECT :id, u.id,
       CASE WHEN NOT EXISTS (SELECT 1 FROM live l WHERE l.num = e.upstream) THEN NULL
            WHEN (SELECT n.fired FROM edge o CROSS JOIN node n ON n.num = o.downstream
                   WHERE o.upstream = e.upstream AND n.fired = @WEFT_FIRED_NOT
                     AND EXISTS (SELECT 1 FROM live m WHERE m.num = o.downstream)
                   ORDER BY o.downstream DESC LIMIT 1) = @WEFT_FIRED_NOT THEN @WEFT_FATE_SPARED
            WHEN :reason > 0 THEN :reason
            ELSE coalesce((SELECT c.reason FROM edge o CROSS JOIN cancel_group c ON c.num = o.downstream
                            WHERE o.upstream = e.upstream AND c.reason > 0 LIMIT 1), @WEFT_FATE_UNASKED) END
  FROM edge e CROSS JOIN execution u ON u.num = e.upstream
 WHERE e.downstream = (SELECT num FROM execution WHERE id = :id)
   AND e.upstream > coalesce((SELECT num FROM execution WHERE id = :after), 0)
 ORDER BY e.upstream LIMIT :chunk;

-- name: groups_done (id uuid[])
DELETE FROM cancel_group WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: groups_wait (id uuid[])
UPDATE cancel_group SET waiting = 1 WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: flow_hold (flow uuid[])
-- returns: id uuid, namespace int, state smallint, revision int, nodes int, cancel smallint, reason text?, backlog bool, deleted bigint?, cancelled int, cancels int
SELECT id, namespace, state, revision, nodes, cancel, reason, backlog, deleted, cancelled, cancels
  FROM flow WHERE id = :flow;

-- name: flow_patience (lock_timeout text)
-- returns: lock_timeout text
-- Nothing to set: no flow has a lock of its own.
SELECT :lock_timeout;

-- name: flows_of (id uuid[])
-- returns: id uuid, flow uuid
SELECT :id, f.id FROM node n CROSS JOIN flow f ON f.num = n.flow
 WHERE n.num = (SELECT num FROM execution WHERE id = :id);

-- name: flow_reopen (flow uuid[])
UPDATE flow SET state = @WEFT_FLOW_OPEN, finished = NULL WHERE id = :flow AND state > 0;

-- name: flow_cancel (flow uuid, cancel smallint, reason text?, backlog bool)
UPDATE flow SET cancel = :cancel, reason = :reason, backlog = :backlog, drained = NULL,
                cancels = cancels + 1
 WHERE id = :flow;

-- name: flow_living (flow uuid, batch int)
-- returns: id uuid, running bool
SELECT e.id, +l.state = @running FROM live l CROSS JOIN execution e ON e.num = l.num
 WHERE l.flow = (SELECT num FROM flow WHERE id = :flow)
   AND l.num > coalesce((SELECT drained FROM flow WHERE id = :flow), -1)
 ORDER BY l.num LIMIT :batch;

-- name: flow_drained (flow uuid, cancelled int, more bool, to uuid?)
UPDATE flow SET backlog = backlog AND :more, cancelled = cancelled + :cancelled,
                drained = (SELECT num FROM execution WHERE id = :to)
 WHERE id = :flow;

-- name: flow_count (flow uuid[], cancelled int[])
UPDATE flow SET cancelled = cancelled + :cancelled WHERE id = :flow;

-- name: flow_remove (flow uuid, now bigint)
UPDATE flow SET deleted = :now WHERE id = :flow AND deleted IS NULL;

-- name: flow_grow (flow uuid, nodes int)
UPDATE flow SET revision = revision + 1, nodes = nodes + :nodes WHERE id = :flow;

-- name: nodes_named (flow uuid, name text[])
-- returns: id uuid, name text, state smallint?
SELECT e.id, n.name, o.state
  FROM node n CROSS JOIN execution e ON e.num = n.num LEFT JOIN outcome o ON o.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :flow) AND n.name = :name;

-- name: nodes_widen (id uuid[], by int[])
UPDATE node SET total = total + :by WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: live_widen (id uuid[], by int[])
UPDATE live SET size = size + @WEFT_UPSTREAM_BYTES * :by WHERE num = (SELECT num FROM execution WHERE id = :id);

-- name: edges_there (upstream uuid[], downstream uuid[])
-- returns: upstream uuid, downstream uuid
SELECT :upstream, :downstream FROM edge
 WHERE upstream = (SELECT num FROM execution WHERE id = :upstream)
   AND downstream = (SELECT num FROM execution WHERE id = :downstream);

-- name: flow_edge_count (flow uuid)
-- returns: count bigint
SELECT coalesce(sum(total), 0) FROM node WHERE flow = (SELECT num FROM flow WHERE id = :flow);

-- name: edge_circle (from uuid, to uuid[])
-- returns: name text
WITH RECURSIVE up(num) AS (
    SELECT num FROM execution WHERE id = :from
    UNION
    SELECT e.upstream FROM up CROSS JOIN edge e ON e.downstream = up.num
)
SELECT n.name FROM node n
 WHERE n.num = (SELECT num FROM execution WHERE id = :to) AND n.num IN (SELECT up.num FROM up);

-- name: flow_last (flow uuid)
-- returns: id uuid
SELECT e.id FROM node n CROSS JOIN execution e ON e.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :flow)
 ORDER BY n.num DESC LIMIT 1;

-- name: flow_read (id uuid)
-- returns: id uuid, namespace int, name text?, state smallint, revision int, nodes int, created bigint, finished bigint?, cancel smallint, reason text?, over bool
SELECT id, namespace, name, state, revision, nodes, created, finished, cancel, reason,
       state = @WEFT_FLOW_OPEN AND NOT EXISTS (SELECT 1 FROM live l WHERE l.flow = flow.num)
       AND EXISTS (SELECT 1 FROM completion c WHERE c.flow = flow.num)
  FROM flow WHERE id = :id AND state >= 0 AND deleted IS NULL;

-- name: flow_list (namespace int, after uuid, batch int)
-- returns: id uuid, name text?, state smallint, revision int, nodes int, created bigint, finished bigint?, cancel smallint, reason text?, deleted bigint?
SELECT id, name, state, revision, nodes, created, finished, cancel, reason, deleted
  FROM flow
 WHERE namespace = :namespace AND id < :after
 ORDER BY id DESC LIMIT :batch;

-- name: flow_counts (flow uuid)
-- returns: state smallint, number bigint
SELECT coalesce(l.state, o.state) AS state, count(*)
  FROM node n LEFT JOIN live l ON l.num = n.num LEFT JOIN outcome o ON o.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :flow)
 GROUP BY 1;

-- name: flow_page (flow uuid, after uuid, batch int)
-- returns: id uuid, name text, policy smallint, k int, let_run bool, total int, fired smallint, state smallint, attempt int, epoch int, worker int?, started bigint?, finished bigint?, reason text?, error_class text?, error_message text?, timeout bigint?, escalated bigint?, waitpoints text?
-- An id of :after that is not there stands for the last one before it.
SELECT s.id, n.name, n.policy, n.k, n.let_run, n.total, n.fired, s.state, s.attempt, s.epoch, s.worker,
       s.started, s.finished, s.reason, s.error_class, s.error_message,
       CASE WHEN s.state = @suspended THEN s.due END, s.escalated,
       CASE WHEN s.state = @suspended THEN
           (SELECT group_concat(w.name, ',') FROM (SELECT x.name FROM waitpoint x WHERE x.id = s.id AND x.bound = s.epoch
                   LIMIT @WEFT_FLOW_WAITPOINTS) w) END
  FROM node n CROSS JOIN snapshot s ON s.num = n.num
 WHERE n.flow = (SELECT num FROM flow WHERE id = :flow)
   AND n.num > coalesce((SELECT num FROM execution WHERE id <= :after ORDER BY id DESC LIMIT 1), -1)
 ORDER BY n.num LIMIT :batch;

-- name: upstreams (id uuid[])
-- returns: id uuid, upstream uuid, name text, edge_state smallint
SELECT :id, u.id, n.name, e.state
  FROM edge e CROSS JOIN node n ON n.num = e.upstream CROSS JOIN execution u ON u.num = e.upstream
 WHERE e.downstream = (SELECT num FROM execution WHERE id = :id)
 ORDER BY e.upstream;

-- name: upstream_results (id uuid[], each int, total bigint)
-- returns: id uuid, node text, upstream uuid?, name text?, state smallint, content_type text?, size int?, result bytea?
-- The running sum is made of lengths alone: bytes are read where they come along.
SELECT x.id, x.node, x.upstream, x.name, x.state, x.content_type, x.size, r.result
  FROM (SELECT i.id, i.rest, n.name AS node, e.upstream AS num, u.id AS upstream, m.name,
               coalesce(l.state, o.state) AS state, o.content_type, length(o.result) AS size,
               sum(CASE WHEN length(o.result) <= :each THEN length(o.result) ELSE 0 END)
                   OVER (ORDER BY i.rest DESC, e.upstream ROWS UNBOUNDED PRECEDING) AS sum
          FROM input i
         CROSS JOIN execution d ON d.id = i.id
         CROSS JOIN node n ON n.num = d.num
          LEFT JOIN edge e ON e.downstream = n.num
          LEFT JOIN execution u ON u.num = e.upstream
          LEFT JOIN node m ON m.num = e.upstream
          LEFT JOIN live l ON l.num = e.upstream
          LEFT JOIN outcome o ON o.num = e.upstream) x
  LEFT JOIN outcome r ON r.num = CASE WHEN x.size <= :each AND x.sum <= :total THEN x.num END
 ORDER BY x.rest DESC, x.num;
