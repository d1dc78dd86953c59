-- Flows. A transaction that changes the graph of a flow holds its row (flow_lock, flow_hold) and reads
-- edges, nodes and outcomes in later statements than the one that locked. The end of a member never takes
-- it: live_end only adds a completion.
--
-- Where rows of a flow are taken in order, or edges of a node, whole rows are compared: only the index that
-- was made for it gives that order. `flow = :flow AND id > :after ORDER BY id` is also a walk along all ids,
-- which looks cheap to a plan that is made while the table is empty, and that plan is kept. `k >= 0` and
-- `created >= 0` always hold: they name an index by its predicate, see 0004-flows.pg.sql.

-- name: flow_add (now bigint, id uuid[], namespace int[], name text?[], key text?[], fingerprint bytea?[], state smallint[], nodes int[])
-- returns: id uuid
-- Returns the flows whose key was free, in the order of (namespace, key) as key_take. Waits for another
-- submission of the same key, which is short: only weft writes this table.
INSERT INTO weft.flow (id, namespace, name, key, fingerprint, state, revision, nodes, created, cancel, backlog)
SELECT i.id, i.namespace, i.name, i.key, i.fingerprint, i.state, 1, i.nodes, :now, 0, false
  FROM unnest(:id, :namespace, :name, :key, :fingerprint, :state, :nodes)
    AS i(id, namespace, name, key, fingerprint, state, nodes)
 ORDER BY i.namespace, i.key
    ON CONFLICT (namespace, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id;

-- name: flow_of_key (namespace int[], key text[])
-- returns: id uuid, namespace int, key text, fingerprint bytea?, state smallint, revision int
SELECT f.id, f.namespace, f.key, f.fingerprint, f.state, f.revision
  FROM unnest(:namespace, :key) AS w(namespace, key)
 CROSS JOIN LATERAL (SELECT * FROM weft.flow
                      WHERE namespace = w.namespace AND key = w.key OFFSET 0) f;

-- name: flow_members (flow uuid, after uuid, batch int)
-- returns: id uuid, name text
SELECT n.id, n.name FROM weft.node n
 WHERE (n.flow, n.id) > (:flow, :after) AND n.flow <= :flow AND n.k >= 0
 ORDER BY n.flow, n.id LIMIT :batch;

-- name: flow_nodes (now bigint, flow uuid[], id uuid[], ord bigint[], queue int[], lane int[], policy int[], priority smallint[], state smallint[], due bigint?[], deadline bigint?[], content_type text?[], tags text?[], payload bytea?[], size int[], gate text?[], name text[], join_policy smallint[], k int[], let_run bool[], total int[], fired smallint[], delay bigint[], run_at bigint[], model smallint?[], span_namespace int?[], span_first uuid?[], span_count int?[])
-- New rows only: no other transaction can wait for them.
WITH item AS (
    SELECT * FROM unnest(:flow, :id, :ord, :queue, :lane, :policy, :priority, :state, :due, :deadline,
                         :content_type, :tags, :payload, :size, :gate, :name, :join_policy, :k, :let_run,
                         :total, :fired, :delay, :run_at, :model, :span_namespace, :span_first, :span_count)
        AS i(flow, id, ord, queue, lane, policy, priority, state, due, deadline, content_type, tags,
             payload, size, gate, name, join_policy, k, let_run, total, fired, delay, run_at, model,
             span_namespace, span_first, span_count)
), fact AS (
    INSERT INTO weft.execution (id, created, queue, content_type, tags, payload, gate)
    SELECT id, :now, queue, content_type, tags, payload, gate FROM item
), spans AS (@{spans_added}), member AS (
    INSERT INTO weft.node (id, flow, name, policy, k, let_run, total, succeeded, failed, fired,
                           delay, run_at, model)
    SELECT id, flow, name, join_policy, k, let_run, total, 0, 0, fired, delay, run_at, model FROM item
)
INSERT INTO weft.live (id, ord, due, deadline, queue, lane, policy, epoch, attempt, forgiven, size,
                       lost, replays, priority, state, flow, has, gate)
SELECT id, ord, due, deadline, queue, lane, policy, 0, 1, 0, size, 0, 0, priority, state, flow, 0, gate
  FROM item;

-- name: flow_edges (upstream uuid[], downstream uuid[])
INSERT INTO weft.edge (upstream, downstream, state)
SELECT i.upstream, i.downstream, 0 FROM unnest(:upstream, :downstream) AS i(upstream, downstream);

-- name: flow_open (flow uuid)
-- returns: id uuid
-- A flow that was written in parts is whole.
UPDATE weft.flow SET state = @WEFT_FLOW_OPEN WHERE id = :flow AND state = @WEFT_FLOW_STAGED RETURNING id;

-- name: flow_lock (flow uuid[])
-- returns: id uuid, state smallint, cancel smallint, reason text?, cancels int
-- SKIP LOCKED: the holder looks again after its commit. A flow that is not whole yet is left alone: a
-- member may end already, but the edges that leave it are not there.
SELECT f.id, f.state, f.cancel, f.reason, f.cancels
  FROM weft.flow f WHERE f.id = ANY(:flow) AND f.state <> @WEFT_FLOW_STAGED ORDER BY f.id FOR UPDATE SKIP LOCKED;

-- name: cascade_look (flow uuid[], chunk int, share int)
-- returns: seq bigint, flow uuid, id uuid, upstream_state smallint, bad bool, own_fired smallint?, downstream uuid?, edge_state smallint, policy smallint, k int, let_run bool, total int, succeeded int, failed int, fired smallint, delay bigint, run_at bigint, again int
-- The completions of locked flows, as things are now: each with the state of
-- its execution, its mark as a bad sink, its own join and the edges that leave it, behind its cursor. A completion
-- without edges comes once, with nulls. Of each flow come `share` completions at most, so that a large one
-- leaves room for others. Nested loops keep the order: flow, seq, downstream.
SELECT c.seq, c.flow, c.id, coalesce(l.state, o.state), s.bad, s.fired, e.downstream, e.state, n.policy,
       n.k, n.let_run, n.total, n.succeeded, n.failed, n.fired, n.delay, n.run_at, n.again
  FROM (SELECT x.* FROM unnest(:flow) AS f(id)
         CROSS JOIN LATERAL (SELECT * FROM weft.completion p
                              WHERE (p.flow, p.seq) > (f.id, 0) AND p.flow <= f.id
                              ORDER BY p.flow, p.seq LIMIT :share) x
         LIMIT :chunk) c
  @{live_or_outcome state | c.id}
  LEFT JOIN LATERAL (SELECT bad, fired FROM weft.node WHERE id = c.id OFFSET 0) s ON true
  LEFT JOIN LATERAL (SELECT x.downstream, x.state FROM weft.edge x
                      WHERE (x.upstream, x.downstream)
                            > (c.id, coalesce(c.cursor, @{no_id}))
                        AND x.upstream <= c.id
                      ORDER BY x.upstream, x.downstream LIMIT :chunk + 1) e ON true
  LEFT JOIN LATERAL (SELECT * FROM weft.node WHERE id = e.downstream OFFSET 0) n ON true
 LIMIT :chunk + 1;

-- name: flow_roots (seq bigint, flow uuid, chunk int)
-- returns: id uuid, root bool, delay bigint, run_at bigint
-- Nodes behind the cursor of the completion of the flow itself, whatever they are: it is their number
-- that is bounded. root: it comes after nothing and has not begun.
SELECT n.id, n.total = 0 AND n.fired = @WEFT_FIRED_NOT, n.delay, n.run_at FROM weft.node n
 WHERE (n.flow, n.id) > (:flow, coalesce((SELECT cursor FROM weft.completion WHERE seq = :seq),
                                         @{no_id}))
   AND n.flow <= :flow AND n.k >= 0
 ORDER BY n.flow, n.id LIMIT :chunk;

-- name: edge_put (upstream uuid[], downstream uuid[], state smallint[])
-- By ctid, which cannot change: no other transaction writes edges of a locked flow. A join of edges themselves may be
-- planned as a walk along all of them.
UPDATE weft.edge e SET state = p.state
  FROM (SELECT x.place, i.state
          FROM unnest(:upstream, :downstream, :state) AS i(upstream, downstream, state)
         CROSS JOIN LATERAL (SELECT ctid AS place FROM weft.edge
                              WHERE upstream = i.upstream AND downstream = i.downstream OFFSET 0) x) p
 WHERE e.ctid = p.place;

-- name: node_put (id uuid[], succeeded int[], failed int[], fired smallint[])
UPDATE weft.node n SET succeeded = i.succeeded, failed = i.failed, fired = i.fired
  FROM unnest(:id, :succeeded, :failed, :fired) AS i(id, succeeded, failed, fired)
 WHERE n.id BETWEEN i.id AND i.id;

-- name: node_mark (id uuid[], bad bool[])
-- Sets and clears the mark of sinks that did not succeed.
UPDATE weft.node n SET bad = i.bad
  FROM unnest(:id, :bad) AS i(id, bad)
 WHERE n.id BETWEEN i.id AND i.id;

-- name: nodes_replay (id uuid[], succeeded int[], failed int[], fired smallint[], again int[])
-- Members that live again: their joins as they stand without the upstreams that were replayed with them.
UPDATE weft.node n SET succeeded = i.succeeded, failed = i.failed, fired = i.fired, again = i.again
  FROM unnest(:id, :succeeded, :failed, :fired, :again) AS i(id, succeeded, failed, fired, again)
 WHERE n.id BETWEEN i.id AND i.id;

-- name: joins_read (id uuid[])
-- returns: id uuid, policy smallint, k int, total int, succeeded int, failed int
-- Under the locks of their flows.
SELECT n.id, n.policy, n.k, n.total, n.succeeded, n.failed FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.node WHERE id = i.id OFFSET 0) n;

-- name: edges_among (id uuid[])
-- returns: upstream uuid, downstream uuid, edge_state smallint
-- Resolved edges between nodes of the list, under the locks of their flows. Reads all edges that lead to
-- these nodes.
SELECT e.upstream, e.downstream, e.state FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.edge WHERE downstream = i.id AND state <> @WEFT_EDGE_PENDING OFFSET 0) e
 WHERE e.upstream IN (SELECT unnest(:id) OFFSET 0);

-- name: upstream_failed (id uuid[])
-- returns: id uuid, name text, state smallint?
-- The first upstream of each node that has not succeeded, as its edge says.
SELECT i.id, n.name, o.state FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT upstream FROM weft.edge WHERE downstream = i.id AND state = @WEFT_EDGE_FAILED
                      ORDER BY upstream LIMIT 1) e
 CROSS JOIN LATERAL (SELECT name FROM weft.node WHERE id = e.upstream OFFSET 0) n
  LEFT JOIN LATERAL (SELECT state FROM weft.outcome WHERE id = e.upstream OFFSET 0) o ON true;

-- name: completion_add (flow uuid[], id uuid[], at bigint)
-- For replays and new edges; the end of a member leaves its completion in live_end.
INSERT INTO weft.completion (flow, id, at, anew)
SELECT i.flow, i.id, :at, true FROM unnest(:flow, :id) AS i(flow, id);

-- name: completion_done (seq bigint[])
DELETE FROM weft.completion c USING unnest(:seq) AS i(seq) WHERE c.seq BETWEEN i.seq AND i.seq;

-- name: completion_cursor (seq bigint[], cursor uuid[])
UPDATE weft.completion c SET cursor = i.cursor
  FROM unnest(:seq, :cursor) AS i(seq, cursor) WHERE c.seq BETWEEN i.seq AND i.seq;

-- name: completion_any (flow uuid[])
-- returns: flow uuid, groups bool
-- The flows that have completions, or groups to dispatch.
SELECT x.id, x.groups
  FROM (SELECT f.id, EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = f.id OFFSET 0) AS completions,
               EXISTS (SELECT 1 FROM weft.cancel_group g
                        WHERE g.flow = f.id AND NOT g.waiting OFFSET 0) AS groups
          FROM unnest(:flow) AS f(id)) x
 WHERE x.completions OR x.groups;

-- name: flow_due (flow uuid[])
-- returns: flow uuid, pending bool, anew bool, living bool
-- Of locked flows: whether a hop has something to look at (pending: completions, or groups to dispatch; anew: a
-- replay is among them), and whether a member lives. Each question ends at the first row.
SELECT f.id,
       EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = f.id OFFSET 0)
       OR EXISTS (SELECT 1 FROM weft.cancel_group g WHERE g.flow = f.id AND NOT g.waiting OFFSET 0),
       EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = f.id AND c.anew OFFSET 0),
       EXISTS (SELECT 1 FROM weft.live l WHERE l.flow = f.id OFFSET 0)
  FROM unnest(:flow) AS f(id);

-- name: group_add (id uuid[], flow uuid[], reason smallint[], at bigint)
-- One without a reason wants nothing cancelled: it is added where others do, who may have waited for it.
INSERT INTO weft.cancel_group (id, flow, reason, at, waiting)
SELECT i.id, i.flow, i.reason, :at, false FROM unnest(:id, :flow, :reason) AS i(id, flow, reason)
 WHERE i.reason > 0
    OR EXISTS (SELECT 1 FROM weft.cancel_group g WHERE g.flow = i.flow AND g.reason > 0 OFFSET 0)
    ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, waiting = false, wakes = cancel_group.wakes + 1;

-- name: flow_over (flow uuid[])
-- returns: id uuid, bad bool
-- Of locked flows: the ones without a living member and without a completion, with whether one of their
-- sinks did not succeed. Each question ends at the first row. The marks are right: a member that ended or lives
-- again left a completion, each was looked at after that, and nothing has happened since. OFFSET 0, here
-- and below: each row is looked up, no table is joined whole.
SELECT f.id, EXISTS (SELECT 1 FROM weft.node n WHERE n.flow = f.id AND n.bad OFFSET 0)
  FROM unnest(:flow) AS f(id)
 WHERE NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.flow = f.id OFFSET 0)
   AND NOT EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = f.id OFFSET 0);

-- name: flow_end (flow uuid[], state smallint[], now bigint)
UPDATE weft.flow f SET state = i.state, finished = :now, backlog = false
  FROM unnest(:flow, :state) AS i(flow, state)
 WHERE f.id BETWEEN i.flow AND i.flow;

-- name: groups_take (flow uuid[], chunk int)
-- returns: id uuid, flow uuid, reason smallint, at bigint, wakes int
-- The groups of locked flows to dispatch; none while a replay is still propagating, because
-- joins then have their state from before it.
SELECT g.id, g.flow, g.reason, g.at, g.wakes FROM unnest(:flow) AS f(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.cancel_group x
                      WHERE (x.flow, x.id) > (f.id, @{no_id})
                        AND x.flow <= f.id AND NOT x.waiting
                      ORDER BY x.flow, x.id LIMIT :chunk) g
 WHERE NOT EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = f.id AND c.anew OFFSET 0)
 LIMIT :chunk;

-- name: group_members (id uuid[], reason smallint[], after uuid[], chunk int)
-- returns: node uuid, id uuid, fate int?
-- The upstreams of groups, each group behind its `after`, in the order of the list and of their ids.
-- fate NULL: it has ended; 0: it is spared, a join that has not fired waits for it, and the member behind that
-- join lives; else the reason for which it is to be cancelled: that of the group, or of another that spared it;
-- 3: no group asks for it. Joins that were added last are looked at first: as a rule they fire last.
SELECT g.id, e.upstream,
       CASE WHEN NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.id = e.upstream OFFSET 0) THEN NULL
            WHEN (SELECT n.fired FROM weft.edge o
                   CROSS JOIN LATERAL (SELECT fired FROM weft.node WHERE id = o.downstream OFFSET 0) n
                   WHERE o.upstream = e.upstream AND n.fired = @WEFT_FIRED_NOT
                     AND EXISTS (SELECT 1 FROM weft.live m WHERE m.id = o.downstream OFFSET 0)
                   ORDER BY o.upstream DESC, o.downstream DESC LIMIT 1) = @WEFT_FIRED_NOT THEN @WEFT_FATE_SPARED
            WHEN g.reason > 0 THEN g.reason
            ELSE coalesce((SELECT c.reason FROM weft.edge o
                            CROSS JOIN LATERAL (SELECT reason FROM weft.cancel_group
                                                 WHERE id = o.downstream AND reason > 0 OFFSET 0) c
                            WHERE o.upstream = e.upstream LIMIT 1), @WEFT_FATE_UNASKED) END
  FROM unnest(:id, :reason, :after) AS g(id, reason, after)
 CROSS JOIN LATERAL (SELECT x.upstream FROM weft.edge x
                      WHERE x.downstream = g.id AND x.upstream > g.after
                      ORDER BY x.upstream LIMIT :chunk) e
 LIMIT :chunk;

-- name: groups_done (id uuid[])
-- Groups all of whose upstreams have ended.
DELETE FROM weft.cancel_group g USING unnest(:id) AS i(id) WHERE g.id BETWEEN i.id AND i.id;

-- name: groups_wait (id uuid[])
-- Groups all of whose living upstreams feed joins that have not fired: a join that fires looks at them.
UPDATE weft.cancel_group g SET waiting = true
  FROM unnest(:id) AS i(id) WHERE g.id BETWEEN i.id AND i.id;

-- name: flow_hold (flow uuid[])
-- returns: id uuid, namespace int, state smallint, revision int, nodes int, cancel smallint, reason text?, backlog bool, deleted bigint?, cancelled int, cancels int
-- As flow_lock, but waits: for calls of people and programs.
SELECT f.id, f.namespace, f.state, f.revision, f.nodes, f.cancel, f.reason, f.backlog, f.deleted,
       f.cancelled, f.cancels
  FROM weft.flow f WHERE f.id = ANY(:flow) ORDER BY f.id FOR UPDATE;

-- name: flow_patience (lock_timeout text)
-- returns: lock_timeout text
-- How long the statements behind it wait for a lock, to the end of the transaction.
SELECT set_config('lock_timeout', :lock_timeout, true);

-- name: flows_of (id uuid[])
-- returns: id uuid, flow uuid
-- An execution never changes its flow: locks nothing.
SELECT n.id, n.flow FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT id, flow FROM weft.node WHERE id = i.id OFFSET 0) n;

-- name: flow_reopen (flow uuid[])
-- A member lives again.
UPDATE weft.flow f SET state = @WEFT_FLOW_OPEN, finished = NULL
  FROM unnest(:flow) AS i(flow)
 WHERE f.id BETWEEN i.flow AND i.flow AND f.state > 0;

-- name: flow_cancel (flow uuid, cancel smallint, reason text?, backlog bool)
UPDATE weft.flow SET cancel = :cancel, reason = :reason, backlog = :backlog, drained = NULL,
                     cancels = cancels + 1
 WHERE id = :flow;

-- name: flow_living (flow uuid, batch int)
-- returns: id uuid, running bool
-- The next living members, whatever they do: it is their number that is bounded.
SELECT l.id, l.state + 0 = @running FROM weft.live l
 WHERE (l.flow, l.id) > (:flow, coalesce((SELECT drained FROM weft.flow WHERE id = :flow),
                                         @{no_id}))
   AND l.flow <= :flow
 ORDER BY l.flow, l.id LIMIT :batch;

-- name: flow_drained (flow uuid, cancelled int, more bool, to uuid?)
UPDATE weft.flow SET backlog = backlog AND :more, cancelled = cancelled + :cancelled, drained = :to
 WHERE id = :flow;

-- name: flow_count (flow uuid[], cancelled int[])
-- Members that the cascade cancelled.
UPDATE weft.flow f SET cancelled = f.cancelled + i.cancelled
  FROM unnest(:flow, :cancelled) AS i(flow, cancelled)
 WHERE f.id BETWEEN i.flow AND i.flow;

-- name: flow_remove (flow uuid, now bigint)
-- Readers do not see it any more; retention removes the rows.
UPDATE weft.flow SET deleted = :now WHERE id = :flow AND deleted IS NULL;

-- name: flow_grow (flow uuid, nodes int)
UPDATE weft.flow SET revision = revision + 1, nodes = nodes + :nodes WHERE id = :flow;

-- name: nodes_named (flow uuid, name text[])
-- returns: id uuid, name text, state smallint?
-- Under the lock of the flow. state: how it ended, NULL while it lives.
SELECT n.id, n.name, o.state FROM unnest(:name) AS i(name)
 CROSS JOIN LATERAL (SELECT id, name FROM weft.node WHERE flow = :flow AND name = i.name OFFSET 0) n
  LEFT JOIN LATERAL (SELECT state FROM weft.outcome WHERE id = n.id OFFSET 0) o ON true;

-- name: nodes_widen (id uuid[], by int[])
-- Nodes that come after more than before.
UPDATE weft.node n SET total = n.total + i.by FROM unnest(:id, :by) AS i(id, by)
 WHERE n.id BETWEEN i.id AND i.id;

-- name: live_widen (id uuid[], by int[])
-- The same for the size that a claim of them counts; their rows are locked.
UPDATE weft.live l SET size = l.size + @WEFT_UPSTREAM_BYTES * i.by FROM unnest(:id, :by) AS i(id, by)
 WHERE l.id BETWEEN i.id AND i.id;

-- name: edges_there (upstream uuid[], downstream uuid[])
-- returns: upstream uuid, downstream uuid
SELECT e.upstream, e.downstream FROM unnest(:upstream, :downstream) AS i(upstream, downstream)
 CROSS JOIN LATERAL (SELECT upstream, downstream FROM weft.edge
                      WHERE upstream = i.upstream AND downstream = i.downstream OFFSET 0) e;

-- name: flow_edge_count (flow uuid)
-- returns: count bigint
-- Under the lock of the flow. The planner proves the partial index as in flow_last.
SELECT coalesce(sum(n.total), 0)::bigint FROM weft.node n
 WHERE (n.flow, n.id) >= (:flow, @{no_id})
   AND (n.flow, n.id) <= (:flow, @{last_id}) AND n.k >= 0;

-- name: edge_circle (from uuid, to uuid[])
-- returns: name text
-- Under the lock of the flow, with the new edges written: of the nodes `to`, which come after `from`, the
-- ones that `from` comes after as well. Walks up from there over each node once.
WITH RECURSIVE up(id) AS (
    SELECT :from
    UNION
    SELECT e.upstream FROM up
     CROSS JOIN LATERAL (SELECT upstream FROM weft.edge WHERE downstream = up.id OFFSET 0) e
)
SELECT n.name FROM unnest(:to) AS i(id)
 CROSS JOIN LATERAL (SELECT name FROM weft.node WHERE id = i.id OFFSET 0) n
 WHERE i.id IN (SELECT up.id FROM up);

-- name: flow_last (flow uuid)
-- returns: id uuid
-- Under the lock of the flow: nodes that are added come after this one, whatever the clocks say.
SELECT n.id FROM weft.node n
 WHERE (n.flow, n.id) < (:flow, @{last_id}) AND n.flow >= :flow AND n.k >= 0
 ORDER BY n.flow DESC, n.id DESC LIMIT 1;

-- name: flow_read (id uuid)
-- returns: id uuid, namespace int, name text?, state smallint, revision int, nodes int, created bigint, finished bigint?, cancel smallint, reason text?, over bool
-- over: it is open still, but no member lives, and a hop that is due will end it.
SELECT f.id, f.namespace, f.name, f.state, f.revision, f.nodes, f.created, f.finished, f.cancel, f.reason,
       f.state = @WEFT_FLOW_OPEN AND NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.flow = f.id OFFSET 0)
       AND EXISTS (SELECT 1 FROM weft.completion c WHERE c.flow = f.id OFFSET 0)
  FROM weft.flow f WHERE f.id = :id AND f.state >= 0 AND f.deleted IS NULL;

-- name: flow_list (namespace int, after uuid, batch int)
-- returns: id uuid, name text?, state smallint, revision int, nodes int, created bigint, finished bigint?, cancel smallint, reason text?, deleted bigint?
-- Newest first, behind `after`. Filters are the caller's: a page may be short.
SELECT f.id, f.name, f.state, f.revision, f.nodes, f.created, f.finished, f.cancel, f.reason,
       f.deleted
  FROM weft.flow f
 WHERE (f.namespace, f.id) < (:namespace, :after) AND f.namespace >= :namespace AND f.created >= 0
 ORDER BY f.namespace DESC, f.id DESC LIMIT :batch;

-- name: flow_counts (flow uuid)
-- returns: state smallint, number bigint
SELECT x.state, count(*)
  FROM (SELECT coalesce((SELECT state FROM weft.live WHERE id = n.id),
                        (SELECT state FROM weft.outcome WHERE id = n.id)) AS state
          FROM weft.node n WHERE n.flow = :flow AND n.k >= 0) x
 GROUP BY x.state;

-- name: flow_page (flow uuid, after uuid, batch int)
-- returns: id uuid, name text, policy smallint, k int, let_run bool, total int, fired smallint, state smallint, attempt int, epoch int, worker int?, started bigint?, finished bigint?, reason text?, error_class text?, error_message text?, timeout bigint?, escalated bigint?, waitpoints text?
-- waitpoints: the names of some waitpoints of a suspended node, in any order, with commas, which no name has.
SELECT n.id, n.name, n.policy, n.k, n.let_run, n.total, n.fired, s.state, s.attempt, s.epoch, s.worker,
       s.started, s.finished, s.reason, s.error_class, s.error_message,
       CASE WHEN s.state = @suspended THEN s.due END, s.escalated,
       CASE WHEN s.state = @suspended THEN
           (SELECT string_agg(w.name, ',') FROM (SELECT x.name FROM weft.waitpoint x WHERE x.id = n.id AND x.bound = s.epoch
                   LIMIT @WEFT_FLOW_WAITPOINTS) w) END
  FROM (SELECT * FROM weft.node
         WHERE (flow, id) > (:flow, :after) AND flow <= :flow AND k >= 0
         ORDER BY flow, id LIMIT :batch) n
 CROSS JOIN LATERAL (SELECT * FROM weft.snapshot WHERE id = n.id OFFSET 0) s
 ORDER BY n.flow, n.id;

-- name: upstreams (id uuid[])
-- returns: id uuid, upstream uuid, name text, edge_state smallint
-- The upstreams of nodes.
SELECT e.downstream, e.upstream, n.name, e.state
  FROM unnest(:id) AS i(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.edge WHERE downstream = i.id ORDER BY upstream OFFSET 0) e
 CROSS JOIN LATERAL (SELECT name FROM weft.node WHERE id = e.upstream OFFSET 0) n;

-- name: upstream_results (id uuid[], each int, total bigint)
-- returns: id uuid, node text, upstream uuid?, name text?, state smallint, content_type text?, size int?, result bytea?
-- The names of claimed nodes, and the results of their upstreams, in the order of the list and of
-- submission: one row with nulls for a node that comes after nothing. Results come along up to `each`
-- bytes, and up to `total` together. A length is known without the bytes, which stay where they are
-- until they are sent.
SELECT x.id, x.node, x.upstream, x.name, x.state, x.content_type, x.size,
       CASE WHEN x.size <= :each AND x.sum <= :total THEN x.result END
  FROM (SELECT i.id, i.n, w.name AS node, e.upstream, m.name, coalesce(l.state, o.state) AS state,
               o.content_type, octet_length(o.result) AS size, o.result,
               sum(CASE WHEN octet_length(o.result) <= :each THEN octet_length(o.result) END)
                   OVER (ORDER BY i.n, e.upstream ROWS UNBOUNDED PRECEDING) AS sum
          FROM unnest(:id) WITH ORDINALITY AS i(id, n)
         CROSS JOIN LATERAL (SELECT name FROM weft.node WHERE id = i.id OFFSET 0) w
          LEFT JOIN LATERAL (SELECT upstream FROM weft.edge WHERE downstream = i.id OFFSET 0) e ON true
          LEFT JOIN LATERAL (SELECT name FROM weft.node WHERE id = e.upstream OFFSET 0) m ON true
          LEFT JOIN LATERAL (SELECT state FROM weft.live WHERE id = e.upstream OFFSET 0) l ON true
          LEFT JOIN LATERAL (SELECT state, content_type, result FROM weft.outcome
                              WHERE id = e.upstream OFFSET 0) o ON true) x
 ORDER BY x.n, x.upstream;
