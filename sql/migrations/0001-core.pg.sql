-- Executions, their living rows, their outcomes, and what they have in common. Times are
-- microseconds since 1970 as the store's clock has them; states are numbers, see states.def.

-- What repeats is interned to an integer. sort: 1 namespace, 2 lane, 3 tenant, 4 route, 5 worker.
CREATE TABLE weft.name (
    id        int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sort      smallint NOT NULL,
    namespace int NOT NULL,
    text      text NOT NULL,
    UNIQUE (sort, namespace, text)
);

CREATE TABLE weft.policy (
    id         int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    text       text NOT NULL UNIQUE,
    lease_us   bigint NOT NULL,
    timeout_us bigint NOT NULL
);

-- One distinct (namespace, lane, kind, route, tenant). What a claim can serve is a set of queues.
CREATE TABLE weft.queue (
    id        int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace int NOT NULL,
    lane      int NOT NULL,
    kind      text NOT NULL,
    route     int NOT NULL,
    tenant    int NOT NULL,
    UNIQUE (namespace, lane, kind, route, tenant)
);

-- Only lanes with settings have a row. It is locked to claim under a limit.
CREATE TABLE weft.lane (
    id          int PRIMARY KEY,
    namespace   int NOT NULL,
    paused      bool NOT NULL,
    max_running int NOT NULL,
    weights     text
);

CREATE TABLE weft.execution (
    id           uuid PRIMARY KEY,
    created      bigint NOT NULL,
    queue        int NOT NULL,
    content_type text,
    tags         text,
    key          text,
    payload      bytea
);

-- The hot table: one narrow row per living execution. Every state change moves the row between
-- partial indexes, so no update is ever HOT and a fillfactor below 100 buys nothing (measured).
CREATE TABLE weft.live (
    id               uuid PRIMARY KEY,
    ord              bigint NOT NULL,
    due              bigint,
    attempt_deadline bigint,
    deadline         bigint,
    started          bigint,
    claimed          bigint,
    queue            int NOT NULL,
    lane             int NOT NULL,
    policy           int NOT NULL,
    worker           int,
    epoch            int NOT NULL,
    attempt          int NOT NULL,
    forgiven         int NOT NULL,
    size             int NOT NULL,
    lost             smallint NOT NULL,
    replays          smallint NOT NULL,
    priority         smallint NOT NULL,
    state            smallint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.2,
        autovacuum_vacuum_cost_delay = 0);

CREATE INDEX live_ready ON weft.live (queue, priority DESC, ord, id) WHERE state = @ready;
CREATE INDEX live_lease ON weft.live (lane, due) WHERE state = @running;
CREATE INDEX live_timer ON weft.live (due) WHERE state = @delayed;
CREATE INDEX live_deadline ON weft.live (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX live_attempt_deadline ON weft.live (attempt_deadline) WHERE attempt_deadline IS NOT NULL;

CREATE TABLE weft.outcome (
    id            uuid PRIMARY KEY,
    finished      bigint NOT NULL,
    ord           bigint NOT NULL,
    deadline      bigint,
    started       bigint,
    claimed       bigint,
    queue         int NOT NULL,
    policy        int NOT NULL,
    worker        int,
    epoch         int NOT NULL,
    attempt       int NOT NULL,
    forgiven      int NOT NULL,
    lost          smallint NOT NULL,
    replays       smallint NOT NULL,
    priority      smallint NOT NULL,
    state         smallint NOT NULL,
    ended         smallint NOT NULL,
    held          bool NOT NULL,
    by            text,
    reason        text,
    error_class   text,
    error_message text,
    content_type  text,
    result        bytea
);

-- Leases that ended without ending the execution (replay 0), and outcomes that the nth replay
-- removed (replay n): an epoch alone is no key, because an execution may be cancelled and replayed
-- any number of times without being claimed in between.
CREATE TABLE weft.attempt (
    id            uuid NOT NULL,
    epoch         int NOT NULL,
    replay        smallint NOT NULL,
    attempt       int NOT NULL,
    ended         smallint NOT NULL,
    held          bool NOT NULL,
    answer        smallint NOT NULL,
    worker        int,
    claimed       bigint,
    ended_at      bigint NOT NULL,
    run_at        bigint,
    by            text,
    reason        text,
    error_class   text,
    error_message text,
    content_type  text,
    result        bytea,
    PRIMARY KEY (id, epoch, replay)
);

CREATE TABLE weft.key (
    namespace   int NOT NULL,
    key         text NOT NULL,
    id          uuid NOT NULL,
    fingerprint bytea NOT NULL,
    PRIMARY KEY (namespace, key)
);

CREATE TABLE weft.progress (
    id      uuid PRIMARY KEY,
    epoch   int NOT NULL,
    percent smallint NOT NULL,
    note    text,
    at      bigint NOT NULL
) WITH (fillfactor = 70);

-- What applications submit from SQL; the intake pass turns rows into executions.
CREATE TABLE weft.inbox (
    id           uuid PRIMARY KEY,
    namespace    text NOT NULL,
    lane         text,
    kind         text,
    payload      bytea,
    content_type text,
    priority     int,
    delay_ms     bigint,
    run_at       bigint,
    deadline     bigint,
    capabilities text,
    tenant       text,
    tags         text,
    key          text,
    policy       text
);

-- All of an execution, living or not, in one place for every read.
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
       p.percent, p.note
  FROM weft.execution e
  LEFT JOIN weft.live l ON l.id = e.id
  LEFT JOIN weft.outcome o ON o.id = e.id
  LEFT JOIN weft.progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch);

-- Submits from inside an application's own transaction: the work exists if and only if that
-- transaction commits. Returns the id at once; whether the values are valid is judged by the same
-- code as every other submission, and an invalid row becomes a failed execution under that id.
-- Moments are cut to just beyond what is valid, because infinity has no microseconds.
CREATE FUNCTION weft.weft_submit(
    kind text, payload json DEFAULT NULL, lane text DEFAULT 'default',
    key text DEFAULT NULL, priority int DEFAULT 0, delay_ms bigint DEFAULT 0,
    run_at timestamptz DEFAULT NULL, deadline_at timestamptz DEFAULT NULL,
    capabilities text[] DEFAULT NULL, tenant text DEFAULT NULL, tags jsonb DEFAULT NULL,
    policy jsonb DEFAULT NULL, namespace text DEFAULT 'default',
    payload_bytes bytea DEFAULT NULL, content_type text DEFAULT NULL
) RETURNS uuid LANGUAGE sql VOLATILE AS $function$
    INSERT INTO weft.inbox
    SELECT encode(
               substr(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 3, 6)
               || set_byte(set_byte(set_byte(substr(r.bytes, 10, 7) || substr(r.bytes, 17, 3), 0, 112 | (p.partition >> 4)),
                                    1, ((p.partition & 15) << 4) | (get_byte(r.bytes, 9) & 15)),
                           2, 128 | (get_byte(r.bytes, 10) & 63)), 'hex')::uuid,
           coalesce($13, 'default'), $3, $1,
           coalesce($14, convert_to($2::text, 'UTF8')), $15, $5, $6,
           CASE WHEN $7 IS NOT NULL THEN
               least(greatest(extract(epoch FROM $7) * 1000000, -1), 253402300800000000)::bigint END,
           CASE WHEN $8 IS NOT NULL THEN
               least(greatest(extract(epoch FROM $8) * 1000000, -1), 253402300800000000)::bigint END,
           to_json($9)::text, $10, $11::text, $4, $12::text
      FROM (SELECT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) AS bytes) r,
   LATERAL (SELECT CASE WHEN $4 IS NULL THEN get_byte(r.bytes, 25)
                        ELSE get_byte(sha256(convert_to(coalesce($13, 'default'), 'UTF8')
                                             || '\x00'::bytea || convert_to($4, 'UTF8')), 0)
                   END AS partition) p
    RETURNING id;
$function$;
