-- The twin of 0004-flows.pg.sql. Flows and nodes have numbers, as executions do: the number of a node
-- is that of its execution.

CREATE TABLE flow (
    num         INTEGER PRIMARY KEY,
    id          BLOB NOT NULL UNIQUE,
    namespace   INTEGER NOT NULL,
    name        TEXT,
    key         TEXT,
    fingerprint BLOB,
    state       INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    nodes       INTEGER NOT NULL,
    created     INTEGER NOT NULL,
    finished    INTEGER,
    cancel      INTEGER NOT NULL,
    reason      TEXT,
    backlog     INTEGER NOT NULL,
    deleted     INTEGER,
    cancelled   INTEGER NOT NULL DEFAULT 0,
    drained     INTEGER
);
CREATE UNIQUE INDEX flow_key ON flow (namespace, key) WHERE key IS NOT NULL;
CREATE INDEX flow_list ON flow (namespace, id);
CREATE INDEX flow_backlog ON flow (num) WHERE backlog;
CREATE INDEX flow_hidden ON flow (num) WHERE state < 0;
CREATE INDEX flow_deleted ON flow (num) WHERE deleted IS NOT NULL;
CREATE INDEX flow_finished ON flow (state, finished) WHERE finished IS NOT NULL;

CREATE TABLE node (
    num       INTEGER PRIMARY KEY,
    flow      INTEGER NOT NULL,
    name      TEXT NOT NULL,
    policy    INTEGER NOT NULL,
    k         INTEGER NOT NULL,
    let_run   INTEGER NOT NULL,
    total     INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    fired     INTEGER NOT NULL,
    delay     INTEGER NOT NULL,
    run_at    INTEGER NOT NULL,
    bad       INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX node_name ON node (flow, name);
CREATE INDEX node_flow ON node (flow);
CREATE INDEX node_bad ON node (flow) WHERE bad;

CREATE TABLE edge (
    upstream   INTEGER NOT NULL,
    downstream INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    PRIMARY KEY (upstream, downstream)
) WITHOUT ROWID;
CREATE INDEX edge_downstream ON edge (downstream, upstream);

CREATE TABLE completion (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    flow   INTEGER NOT NULL,
    num    INTEGER NOT NULL, -- 0: the flow itself
    at     INTEGER NOT NULL,
    cursor INTEGER,
    anew   INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX completion_flow ON completion (flow);
CREATE INDEX completion_anew ON completion (flow) WHERE anew;

CREATE TABLE cancel_group (
    num     INTEGER PRIMARY KEY,
    flow    INTEGER NOT NULL,
    reason  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    wakes   INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX cancel_group_flow ON cancel_group (flow);
CREATE INDEX cancel_group_due ON cancel_group (waiting, at);

ALTER TABLE live ADD COLUMN flow INTEGER;
CREATE INDEX live_flow ON live (flow) WHERE flow IS NOT NULL;

ALTER TABLE outcome ADD COLUMN flow INTEGER;
DROP INDEX outcome_retention;
-- flow is in it so that the index alone answers.
CREATE INDEX outcome_retention ON outcome (queue, policy, state, finished, flow) WHERE flow IS NULL;

DROP VIEW snapshot;
CREATE VIEW snapshot AS
SELECT e.num, e.id, e.created, e.queue, e.content_type, e.tags, e.key,
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
       p.percent, p.note, f.id AS flow, n.name AS node
  FROM execution e
  LEFT JOIN live l ON l.num = e.num
  LEFT JOIN outcome o ON o.num = e.num
  LEFT JOIN progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch)
  LEFT JOIN node n ON n.num = e.num
  LEFT JOIN flow f ON f.num = n.flow;
