-- Gates: how many executions of a key may run at a time, and how often they may start (src/engine/limit).
--
-- An execution that names a gate becomes ready by an admission alone; before that it is held. A gate is named by the
-- number of its namespace, '/', and its name: so no names are interned, and rows of gates that nothing uses can go
-- at any time. Binaries that do not know gates would make such executions ready without one: the first setting raises
-- schema.oldest_binary (gate_put), so a rolling upgrade is free as long as there is none.
ALTER TABLE weft.execution ADD COLUMN gate text COLLATE "C";
ALTER TABLE weft.live ADD COLUMN gate text COLLATE "C";
ALTER TABLE weft.draining ADD COLUMN gate text COLLATE "C";

-- The living executions of a gate by state, held ones in the order of their admission.
CREATE INDEX live_gate ON weft.live (gate, state, priority DESC, ord, id) WHERE gate IS NOT NULL;
CREATE INDEX draining_gate ON weft.draining (gate) WHERE gate IS NOT NULL;

-- The lock of a gate, made when it is first looked at, and what its limits remember.
--   full_ns  the token bucket of its rate is full again then (nanoseconds; src/core/limit.h)
--   next     when time alone admits the next; NULL: it does not
CREATE TABLE weft.gate (
    name    text COLLATE "C" NOT NULL PRIMARY KEY,
    full_ns bigint,
    next    bigint
);
CREATE INDEX gate_next ON weft.gate (next) WHERE next IS NOT NULL;

-- Settings of a class, or of one gate (a name with ':'). Spans in microseconds; 0: not limited.
CREATE TABLE weft.gate_setting (
    namespace    int    NOT NULL,
    name         text COLLATE "C" NOT NULL,
    max_running  bigint NOT NULL,
    window_limit bigint NOT NULL,
    window_us    bigint NOT NULL,
    rate_limit   bigint NOT NULL,
    rate_us      bigint NOT NULL,
    rate_burst   bigint NOT NULL,
    PRIMARY KEY (namespace, name)
);

-- Starts under a window, as many as are within its span: written by claims, removed by admissions.
CREATE TABLE weft.gate_start (
    name  text COLLATE "C" NOT NULL,
    at    bigint NOT NULL,
    count int    NOT NULL
);
CREATE INDEX gate_start_name ON weft.gate_start (name, at);

-- The part of the poll: when the next gate opens by time, and whether any gate is in use.
CREATE FUNCTION weft.poll_gates(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off
AS $function$
    SELECT 10, (SELECT next FROM weft.gate WHERE next IS NOT NULL ORDER BY next LIMIT 1),
           EXISTS (SELECT 1 FROM weft.gate)::int::bigint, NULL::bigint, NULL::bigint, NULL::text
$function$;

-- Readers see the gate.
CREATE OR REPLACE VIEW weft.snapshot AS
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
       l.due, o.finished, o.ended, o.by, coalesce(o.reason, s.reason) AS reason, o.error_class, o.error_message,
       p.percent, p.note, n.flow, n.name AS node,
       coalesce(l.policy, o.policy) AS policy,
       coalesce(l.forgiven, o.forgiven) AS forgiven,
       octet_length(o.result)::bigint AS result_size,
       s.since AS suspended, s.escalated, e.gate
  FROM weft.execution e
  LEFT JOIN weft.live l ON l.id = e.id
  LEFT JOIN weft.outcome o ON o.id = e.id
  LEFT JOIN weft.progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch)
  LEFT JOIN weft.node n ON n.id = e.id
  LEFT JOIN weft.suspension s ON s.id = e.id AND l.state = 5;
