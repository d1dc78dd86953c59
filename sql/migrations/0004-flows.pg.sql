-- Flows: graphs of executions. See ARCHITECTURE.md, "Flows": the row of the flow is the mutex of its
-- graph, an edge has a state of its own, and a completion is a hint to look.
--
-- Indexes of two columns are partial, though their predicates hold for every row. An index can be searched
-- by its second column alone, from end to end, and on tables that were empty when a plan was made that looks
-- as cheap as the right index; so does one by its first column where another index has both. A predicate
-- rules that out, whatever the statistics say: it follows from a condition on the first column, or is said
-- by the statements that the index is meant for (k >= 0). It is about columns that never change.

CREATE TABLE weft.flow (
    id          uuid PRIMARY KEY,
    namespace   int NOT NULL,
    name        text,
    key         text,
    fingerprint bytea,
    state       smallint NOT NULL, -- as enum weft_flow_state; -1: not whole yet, -2: being removed; nobody sees these
    revision    int NOT NULL,
    nodes       int NOT NULL,
    created     bigint NOT NULL,
    finished    bigint,
    cancel      smallint NOT NULL, -- 0: not cancelled, else how: as enum weft_flow_cancel
    reason      text,
    backlog     bool NOT NULL,     -- members are still to be cancelled
    deleted     bigint,
    cancelled   int NOT NULL DEFAULT 0, -- members that were cancelled because the flow was
    drained     uuid               -- up to here its members have been looked at since
);
CREATE UNIQUE INDEX flow_key ON weft.flow (namespace, key) WHERE key IS NOT NULL;
CREATE INDEX flow_list ON weft.flow (namespace, id) WHERE created >= 0;
CREATE INDEX flow_backlog ON weft.flow (id) WHERE backlog;
CREATE INDEX flow_hidden ON weft.flow (id) WHERE state < 0;
CREATE INDEX flow_deleted ON weft.flow (id) WHERE deleted IS NOT NULL;
CREATE INDEX flow_finished ON weft.flow (state, finished) WHERE finished IS NOT NULL;

-- A member, under the id of its execution, and its join: how many upstreams there are, how many have
-- succeeded and failed (these follow from its edges), and whether it has fired. `bad`: it is a sink, a node
-- that nothing comes after, and did not succeed; the cascade keeps it, so that nobody has to look at all
-- nodes to tell how a flow ended.
CREATE TABLE weft.node (
    id        uuid PRIMARY KEY,
    flow      uuid NOT NULL,
    name      text NOT NULL,
    policy    smallint NOT NULL, -- as enum weft_join
    k         int NOT NULL,
    let_run   bool NOT NULL,
    total     int NOT NULL,
    succeeded int NOT NULL,
    failed    int NOT NULL,
    fired     smallint NOT NULL, -- 0: not yet, 1: satisfied, 2: impossible
    delay     bigint NOT NULL,   -- from the moment it fires
    run_at    bigint NOT NULL,   -- not before that; 0: at once
    bad       bool NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX node_name ON weft.node (flow, name) WHERE name IS NOT NULL;
CREATE INDEX node_flow ON weft.node (flow, id) WHERE k >= 0;
CREATE INDEX node_bad ON weft.node (flow) WHERE bad;

CREATE TABLE weft.edge (
    upstream   uuid NOT NULL,
    downstream uuid NOT NULL,
    state      smallint NOT NULL -- 0: pending, 1: succeeded, 2: failed
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX edge_upstream ON weft.edge (upstream, downstream) WHERE upstream IS NOT NULL;
CREATE INDEX edge_downstream ON weft.edge (downstream, upstream) WHERE downstream IS NOT NULL;

-- The outbox. Numbered, not keyed by what ended: an end must never wait for the cascade that takes
-- away the hint of an earlier one. `cursor`: up to here its edges, or the nodes of a flow, have been
-- looked at. `anew`: it is no end, so what it leads to may open joins again.
CREATE TABLE weft.completion (
    seq    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    flow   uuid NOT NULL,
    id     uuid NOT NULL, -- what ended or began anew; the flow itself: its roots may begin
    at     bigint NOT NULL,
    cursor uuid,
    anew   boolean NOT NULL DEFAULT false
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX completion_flow ON weft.completion (flow, seq) WHERE flow IS NOT NULL;
CREATE INDEX completion_anew ON weft.completion (flow) WHERE anew;

-- Joins that fired and whose other upstreams are to be looked at: nobody may need them any more.
CREATE TABLE weft.cancel_group (
    id      uuid PRIMARY KEY, -- of the node that fired
    flow    uuid NOT NULL,
    reason  smallint NOT NULL, -- as fired; 0: it wants none cancelled, but others may
    at      bigint NOT NULL,
    waiting bool NOT NULL, -- all it could cancel feeds joins that have not fired, and will look
    wakes   int NOT NULL DEFAULT 0 -- how often it was told to look again
);
CREATE INDEX cancel_group_flow ON weft.cancel_group (flow, id) WHERE flow IS NOT NULL;
CREATE INDEX cancel_group_due ON weft.cancel_group (waiting, at) WHERE at >= 0;

ALTER TABLE weft.live ADD COLUMN flow uuid;
CREATE INDEX live_flow ON weft.live (flow, id) WHERE flow IS NOT NULL;

-- Members of a flow are kept as long as their flow: retention of single executions passes them by.
ALTER TABLE weft.outcome ADD COLUMN flow uuid;
DROP INDEX weft.outcome_retention;
CREATE INDEX outcome_retention ON weft.outcome (queue, policy, state, finished) WHERE flow IS NULL;

DROP VIEW weft.snapshot;
CREATE VIEW weft.snapshot AS
SELECT e.id, e.created, e.queue, e.content_type, e.tags, e.key,
       coalesce(l.state, o.state) AS state,
       coalesce(l.priority, o.priority) AS priority,
       coalesce(l.attempt, o.attempt) AS attempt,
       coalesce(l.epoch, o.epoch) AS epoch,
       coalesce(l.lost, o.lost) AS lost,
       coalesce(l.replays, o.replays) AS replays,
       coalesce(l.worker, o.worker) AS worker,
       coalesce(l.started, o.started) AS started,
       coalesce(l.claimed, o.claimed) AS claimed,
       coalesce(l.deadline, o.deadline) AS deadline,
       l.due, o.finished, o.ended, o.by, o.reason, o.error_class, o.error_message,
       p.percent, p.note, n.flow, n.name AS node
  FROM weft.execution e
  LEFT JOIN weft.live l ON l.id = e.id
  LEFT JOIN weft.outcome o ON o.id = e.id
  LEFT JOIN weft.progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch)
  LEFT JOIN weft.node n ON n.id = e.id;

-- The look around of 0002, and what flows leave for their scanners:
--   what 4: since when there is a completion, a group to be dispatched, a group that waits;
--   5: members are to be cancelled (a); when the oldest flow that nobody sees was begun (b)
CREATE OR REPLACE FUNCTION weft.poll(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint,
                          OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
    WITH RECURSIVE hop AS (
        (SELECT queue FROM weft.live WHERE state = @ready ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT (SELECT l.queue FROM weft.live l
                 WHERE l.state = @ready AND l.queue > hop.queue ORDER BY l.queue LIMIT 1)
          FROM hop WHERE hop.queue IS NOT NULL
    ), lanes AS (
        (SELECT lane FROM weft.live WHERE state = @running ORDER BY lane LIMIT 1)
        UNION ALL
        SELECT (SELECT n.lane FROM weft.live n
                 WHERE n.state = @running AND n.lane > lanes.lane ORDER BY n.lane LIMIT 1)
          FROM lanes WHERE lanes.lane IS NOT NULL
    )
    SELECT 0, hop.queue::bigint, NULL::bigint, NULL::bigint, NULL::bigint, NULL::text
      FROM hop WHERE hop.queue IS NOT NULL
    UNION ALL
    SELECT 1,
           (SELECT min(first.due)
              FROM lanes CROSS JOIN LATERAL (SELECT l.due FROM weft.live l
                                              WHERE l.lane = lanes.lane AND l.state = @running
                                              ORDER BY l.due LIMIT 1) first),
           (SELECT attempt_deadline FROM weft.live WHERE attempt_deadline IS NOT NULL
             ORDER BY attempt_deadline LIMIT 1),
           (SELECT deadline FROM weft.live WHERE deadline IS NOT NULL ORDER BY deadline LIMIT 1),
           (SELECT due FROM weft.live WHERE state = @delayed ORDER BY due LIMIT 1),
           NULL
    UNION ALL
    SELECT 2, EXISTS (SELECT 1 FROM weft.inbox)::int, max(id), sum(id), count(*), NULL
      FROM weft.token
    UNION ALL
    SELECT 3, id, namespace, paused::int, max_running, weights FROM weft.lane
    UNION ALL
    SELECT 4,
           (SELECT at FROM weft.completion ORDER BY seq LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = false AND at >= 0 ORDER BY at LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = true AND at >= 0 ORDER BY at LIMIT 1),
           NULL, NULL
    UNION ALL
    SELECT 5, EXISTS (SELECT 1 FROM weft.flow WHERE backlog)::int,
           (SELECT created FROM weft.flow WHERE state < 0 ORDER BY id LIMIT 1), NULL, NULL, NULL
$function$;

-- Whether nobody has been at a version of a row since the snapshot of the statement was taken: its
-- xmax is none, or was over by then. See pass.sql. A number far ahead is that of several lockers
-- at once, which are counted apart: it tells nothing. Inlined where it is used.
CREATE FUNCTION weft.at_rest(xmax xid) RETURNS boolean LANGUAGE sql STABLE AS
$function$
    SELECT $1 = 0 OR age($1) < -1000000
        OR pg_visible_in_snapshot((pg_current_xact_id()::text::bigint - age($1))::text::xid8,
                                  pg_current_snapshot())
$function$;
