-- The schema of today: what all of sql/migrations make, as the store itself says it. Written by
-- tools/schema, for readers; nothing runs this file. What a column means stands in its migration.

CREATE TABLE attempt (
    id            BLOB NOT NULL,
    epoch         INTEGER NOT NULL,
    replay        INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    ended         INTEGER NOT NULL,
    held          INTEGER NOT NULL,
    answer        INTEGER NOT NULL,
    worker        INTEGER,
    claimed       INTEGER,
    ended_at      INTEGER NOT NULL,
    run_at        INTEGER,
    by            TEXT,
    reason        TEXT,
    error_class   TEXT,
    error_message TEXT,
    content_type  TEXT,
    result        BLOB, marked INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (id, epoch, replay)
) WITHOUT ROWID;

CREATE TRIGGER attempt_has AFTER INSERT ON attempt WHEN NOT NEW.marked
BEGIN
    UPDATE live SET has = has | 2
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 2 = 0;
    UPDATE outcome SET has = has | 2
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 2 = 0;
END;

CREATE TABLE batch (
    num       INTEGER PRIMARY KEY,
    id        BLOB    NOT NULL UNIQUE,
    namespace INTEGER NOT NULL,
    file      BLOB    NOT NULL,
    endpoint  TEXT    NOT NULL,
    span      TEXT    NOT NULL,
    metadata  TEXT,
    phase     INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    line      INTEGER NOT NULL,
    last      BLOB,
    requests  INTEGER NOT NULL,
    flaws     TEXT    NOT NULL,
    created   INTEGER NOT NULL,
    expires   INTEGER NOT NULL,
    opened    INTEGER,
    finished  INTEGER,
    frozen    INTEGER,
    wanted    INTEGER,
    succeeded INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    expired   INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    retried   INTEGER,
    retry     INTEGER,
    retry_to  BLOB,
    looked    INTEGER NOT NULL DEFAULT 0,
    look_at   INTEGER NOT NULL DEFAULT 0,
    deleted   INTEGER
);

CREATE INDEX batch_active ON batch (id) WHERE phase < 2;

CREATE INDEX batch_deleted ON batch (id) WHERE deleted IS NOT NULL;

CREATE INDEX batch_failed ON batch (finished) WHERE phase = 3 AND deleted IS NULL;

CREATE INDEX batch_shown ON batch (namespace, id) WHERE deleted IS NULL;

CREATE TABLE batch_model (
    batch     BLOB    NOT NULL,
    number    INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    escalated TEXT,
    PRIMARY KEY (batch, number)
) WITHOUT ROWID;

CREATE TABLE budget (
    id         INTEGER PRIMARY KEY,
    namespace  INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    matches    INTEGER NOT NULL,
    lane       TEXT,
    kind       TEXT,
    tenant     TEXT,
    on_hard    INTEGER NOT NULL,
    every_us   INTEGER NOT NULL,
    months     INTEGER NOT NULL,
    anchor     INTEGER NOT NULL,
    next_reset INTEGER,
    began      INTEGER NOT NULL,
    period     INTEGER NOT NULL DEFAULT 1,
    breaches   INTEGER NOT NULL DEFAULT 0,
    soft_at    INTEGER,
    hard_at    INTEGER,
    cancelling INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, name)
);

CREATE INDEX budget_cancelling ON budget (id) WHERE cancelling;

CREATE INDEX budget_matches ON budget (namespace) WHERE matches;

CREATE INDEX budget_reset ON budget (next_reset) WHERE next_reset IS NOT NULL;

CREATE TABLE budget_dimension (
    id       INTEGER PRIMARY KEY,
    budget   INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    hard     INTEGER NOT NULL,
    soft     INTEGER NOT NULL,
    estimate INTEGER NOT NULL,
    used     INTEGER NOT NULL DEFAULT 0,
    reserved INTEGER NOT NULL DEFAULT 0,
    dropped  INTEGER NOT NULL DEFAULT 0,
    stale    INTEGER NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX budget_dimension_name ON budget_dimension (budget, name) WHERE NOT dropped;

CREATE INDEX budget_dimension_sweep ON budget_dimension (id) WHERE dropped OR stale;

CREATE TABLE budget_version (
    one     INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version INTEGER NOT NULL
);

CREATE TABLE cancel_group (
    num     INTEGER PRIMARY KEY,
    flow    INTEGER NOT NULL,
    reason  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    wakes   INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX cancel_group_due ON cancel_group (waiting, at);

CREATE INDEX cancel_group_flow ON cancel_group (flow);

CREATE TABLE completion (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    flow   INTEGER NOT NULL,
    num    INTEGER NOT NULL, -- 0: the flow itself
    at     INTEGER NOT NULL,
    cursor INTEGER,
    anew   INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX completion_anew ON completion (flow) WHERE anew;

CREATE INDEX completion_flow ON completion (flow);

CREATE TABLE cost (
    id        BLOB    NOT NULL,
    dimension TEXT    NOT NULL,
    amount    INTEGER NOT NULL,
    PRIMARY KEY (id, dimension)
) WITHOUT ROWID;

CREATE TABLE detail (
    id     BLOB    NOT NULL,
    epoch  INTEGER NOT NULL,
    detail TEXT    NOT NULL,
    PRIMARY KEY (id, epoch)
);

CREATE TABLE draining (
    id       BLOB NOT NULL,
    epoch    INTEGER NOT NULL,
    queue    INTEGER NOT NULL,
    lane     INTEGER NOT NULL,
    worker   INTEGER NOT NULL,
    until    INTEGER NOT NULL,
    ended    INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    told     INTEGER NOT NULL DEFAULT 0, gate TEXT,
    PRIMARY KEY (id, epoch)
) WITHOUT ROWID;

CREATE INDEX draining_gate ON draining (gate) WHERE gate IS NOT NULL;

CREATE INDEX draining_lane ON draining (lane, until);

CREATE INDEX draining_until ON draining (until);

CREATE INDEX draining_untold ON draining (worker) WHERE NOT told;

CREATE TABLE edge (
    upstream   INTEGER NOT NULL,
    downstream INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    PRIMARY KEY (upstream, downstream)
) WITHOUT ROWID;

CREATE INDEX edge_downstream ON edge (downstream, upstream);

CREATE TABLE endpoint (
    namespace          INTEGER NOT NULL,
    name               TEXT    NOT NULL,
    version            INTEGER NOT NULL,
    url                TEXT    NOT NULL,
    secret             TEXT,
    auth               TEXT,
    headers            TEXT    NOT NULL,
    retry              TEXT    NOT NULL,
    idempotency_header TEXT,
    flags              INTEGER NOT NULL,
    retry_after_max_ms INTEGER NOT NULL,
    max_in_flight      INTEGER NOT NULL,
    connect_ms         INTEGER NOT NULL,
    first_byte_ms      INTEGER NOT NULL,
    idle_ms            INTEGER NOT NULL,
    total_ms           INTEGER NOT NULL,
    response_max       INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

CREATE TABLE endpoint_version (
    one     INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version INTEGER NOT NULL
);

CREATE TABLE erasure (
    id        BLOB    NOT NULL PRIMARY KEY,
    namespace INTEGER NOT NULL,
    sort      INTEGER NOT NULL,
    subject   TEXT,
    secret    BLOB    NOT NULL,
    hash      TEXT    NOT NULL,
    reason    TEXT    NOT NULL,
    by        TEXT,
    asked     INTEGER NOT NULL,
    phase     INTEGER NOT NULL,
    walked    BLOB    NOT NULL,
    rounds    INTEGER NOT NULL,
    found     INTEGER NOT NULL,
    later     INTEGER NOT NULL,
    counts    TEXT    NOT NULL,
    retired   INTEGER,
    finished  INTEGER,
    left_over TEXT,
    digest    TEXT,
    verified  INTEGER,
    remains   INTEGER
) WITHOUT ROWID;

CREATE INDEX erasure_list ON erasure (namespace, id);

CREATE INDEX erasure_open ON erasure (id) WHERE finished IS NULL;

CREATE TABLE execution (
    num          INTEGER PRIMARY KEY,
    id           BLOB NOT NULL UNIQUE,
    created      INTEGER NOT NULL,
    queue        INTEGER NOT NULL,
    content_type TEXT,
    tags         TEXT,
    key          TEXT,
    payload      BLOB
, gate TEXT);

CREATE TABLE file (
    num        INTEGER PRIMARY KEY,
    id         BLOB    NOT NULL UNIQUE,
    namespace  INTEGER NOT NULL,
    filename   TEXT    NOT NULL,
    purpose    TEXT    NOT NULL,
    sealed     INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    requests   INTEGER NOT NULL,
    flaws      TEXT    NOT NULL,
    flaw_count INTEGER NOT NULL,
    created    INTEGER NOT NULL,
    touched    INTEGER NOT NULL,
    expires    INTEGER,
    deleted    INTEGER
);

CREATE INDEX file_deleted ON file (deleted, id) WHERE deleted IS NOT NULL;

CREATE INDEX file_expires ON file (expires) WHERE expires IS NOT NULL AND deleted IS NULL;

CREATE INDEX file_open ON file (touched) WHERE NOT sealed AND deleted IS NULL;

CREATE INDEX file_shown ON file (namespace, id) WHERE sealed AND deleted IS NULL;

CREATE TABLE file_chunk (
    num  INTEGER PRIMARY KEY,
    file BLOB    NOT NULL,
    at   INTEGER NOT NULL,
    line INTEGER NOT NULL,
    data BLOB    NOT NULL,
    UNIQUE (file, at)
);

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
, cancels INTEGER NOT NULL DEFAULT 0);

CREATE INDEX flow_backlog ON flow (num) WHERE backlog;

CREATE INDEX flow_deleted ON flow (num) WHERE deleted IS NOT NULL;

CREATE INDEX flow_finished ON flow (state, finished) WHERE finished IS NOT NULL;

CREATE UNIQUE INDEX flow_key ON flow (namespace, key) WHERE key IS NOT NULL;

CREATE INDEX flow_list ON flow (namespace, id);

CREATE INDEX flow_open ON flow (namespace) WHERE finished IS NULL;

CREATE INDEX flow_unseen ON flow (state, num) WHERE state < 0;

CREATE TABLE gate (
    name    TEXT    NOT NULL PRIMARY KEY,
    full_ns INTEGER,
    next    INTEGER
) WITHOUT ROWID;

CREATE INDEX gate_next ON gate (next) WHERE next IS NOT NULL;

CREATE TABLE gate_setting (
    namespace    INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    max_running  INTEGER NOT NULL,
    window_limit INTEGER NOT NULL,
    window_us    INTEGER NOT NULL,
    rate_limit   INTEGER NOT NULL,
    rate_us      INTEGER NOT NULL,
    rate_burst   INTEGER NOT NULL,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

CREATE TABLE gate_start (
    name  TEXT    NOT NULL,
    at    INTEGER NOT NULL,
    count INTEGER NOT NULL
);

CREATE INDEX gate_start_name ON gate_start (name, at);

CREATE TABLE key (
    namespace   INTEGER NOT NULL,
    key         TEXT NOT NULL,
    id          BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

CREATE TABLE lane (
    id          INTEGER PRIMARY KEY,
    namespace   INTEGER NOT NULL,
    paused      INTEGER NOT NULL,
    max_running INTEGER NOT NULL,
    weights     TEXT
, retention_us INTEGER NOT NULL DEFAULT 0, window_limit INTEGER NOT NULL DEFAULT 0, window_us INTEGER NOT NULL DEFAULT 0, rate_limit INTEGER NOT NULL DEFAULT 0, rate_us INTEGER NOT NULL DEFAULT 0, rate_burst INTEGER NOT NULL DEFAULT 0, full_ns INTEGER);

CREATE TABLE lane_start (
    lane  INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (lane, at)
) WITHOUT ROWID;

CREATE TABLE ledger (
    id        BLOB    NOT NULL,
    epoch     INTEGER NOT NULL,
    dimension INTEGER NOT NULL,
    period    INTEGER NOT NULL,
    reserved  INTEGER NOT NULL,
    total     INTEGER NOT NULL,
    earlier   INTEGER NOT NULL,
    settled   INTEGER,
    changed   INTEGER NOT NULL,
    PRIMARY KEY (id, epoch, dimension)
) WITHOUT ROWID;

CREATE INDEX ledger_open ON ledger (dimension, id, epoch) WHERE settled IS NULL;

CREATE INDEX ledger_period ON ledger (dimension, period, id) WHERE epoch > 0;

CREATE INDEX ledger_settled ON ledger (settled) WHERE settled > 0;

CREATE TABLE live (
    num              INTEGER PRIMARY KEY,
    ord              INTEGER NOT NULL,
    due              INTEGER,
    attempt_deadline INTEGER,
    deadline         INTEGER,
    started          INTEGER,
    claimed          INTEGER,
    queue            INTEGER NOT NULL,
    lane             INTEGER NOT NULL,
    policy           INTEGER NOT NULL,
    worker           INTEGER,
    epoch            INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    forgiven         INTEGER NOT NULL,
    size             INTEGER NOT NULL,
    lost             INTEGER NOT NULL,
    replays          INTEGER NOT NULL,
    priority         INTEGER NOT NULL,
    state            INTEGER NOT NULL
, flow INTEGER, has INTEGER NOT NULL DEFAULT -1, gate TEXT);

CREATE INDEX live_attempt_deadline ON live (attempt_deadline) WHERE attempt_deadline IS NOT NULL;

CREATE INDEX live_attempt_lane ON live (lane, attempt_deadline) WHERE attempt_deadline IS NOT NULL;

CREATE INDEX live_deadline ON live (deadline) WHERE deadline IS NOT NULL;

CREATE INDEX live_deadline_lane ON live (lane, deadline) WHERE deadline IS NOT NULL;

CREATE INDEX live_delayed ON live (lane, due) WHERE state = 2;

CREATE INDEX live_flow ON live (flow) WHERE flow IS NOT NULL;

CREATE INDEX live_gate ON live (gate, state, priority DESC, ord, num) WHERE gate IS NOT NULL;

CREATE INDEX live_lease ON live (lane, due) WHERE state = 4;

CREATE INDEX live_ready ON live (queue, priority DESC, ord) WHERE state = 1;

CREATE INDEX live_timer ON live (due) WHERE state = 2;

CREATE TABLE migration (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    applied_us INTEGER NOT NULL
);

CREATE TABLE model (
    namespace INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    endpoint  TEXT    NOT NULL,
    lane      TEXT    NOT NULL,
    escalate_to TEXT,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

CREATE TABLE name (
    id        INTEGER PRIMARY KEY,
    sort      INTEGER NOT NULL,
    namespace INTEGER NOT NULL,
    text      TEXT NOT NULL,
    UNIQUE (sort, namespace, text)
);

CREATE TRIGGER second_namespace AFTER INSERT ON name
  WHEN NEW.sort = 1 AND (SELECT count(*) FROM (SELECT 1 FROM name WHERE sort = 1 LIMIT 3)) = 2
BEGIN
    INSERT OR REPLACE INTO span (namespace, last, first, count)
    SELECT q.namespace, max(e.id), min(e.id), count(*)
      FROM execution e JOIN queue q ON q.id = e.queue
     GROUP BY q.namespace, substr(e.id, 1, 6);
END;

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
, again INTEGER NOT NULL DEFAULT -1, model INTEGER);

CREATE INDEX node_bad ON node (flow) WHERE bad;

CREATE INDEX node_flow ON node (flow);

CREATE UNIQUE INDEX node_name ON node (flow, name);

CREATE TABLE outcome (
    num           INTEGER PRIMARY KEY,
    finished      INTEGER NOT NULL,
    ord           INTEGER NOT NULL,
    deadline      INTEGER,
    started       INTEGER,
    claimed       INTEGER,
    queue         INTEGER NOT NULL,
    policy        INTEGER NOT NULL,
    worker        INTEGER,
    epoch         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    forgiven      INTEGER NOT NULL,
    lost          INTEGER NOT NULL,
    replays       INTEGER NOT NULL,
    priority      INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    ended         INTEGER NOT NULL,
    held          INTEGER NOT NULL,
    by            TEXT,
    reason        TEXT,
    error_class   TEXT,
    error_message TEXT,
    content_type  TEXT,
    result        BLOB
, flow INTEGER, has INTEGER NOT NULL DEFAULT -1);

CREATE INDEX outcome_retention ON outcome (queue, policy, state, finished, flow) WHERE flow IS NULL;

CREATE TABLE policy (
    id         INTEGER PRIMARY KEY,
    text       TEXT NOT NULL UNIQUE,
    lease_us   INTEGER NOT NULL,
    timeout_us INTEGER NOT NULL
);

CREATE TABLE progress (
    id      BLOB PRIMARY KEY,
    epoch   INTEGER NOT NULL,
    percent INTEGER NOT NULL,
    note    TEXT,
    at      INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER progress_has AFTER INSERT ON progress
BEGIN
    UPDATE live SET has = has | 1
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 1 = 0;
    UPDATE outcome SET has = has | 1
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 1 = 0;
END;

CREATE TABLE queue (
    id        INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    lane      INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    route     INTEGER NOT NULL,
    tenant    INTEGER NOT NULL,
    UNIQUE (namespace, lane, kind, route, tenant)
);

CREATE INDEX queue_lane ON queue (lane, id);

CREATE TABLE replica (
    id       BLOB PRIMARY KEY,
    host     TEXT NOT NULL,
    pid      INTEGER NOT NULL,
    version  TEXT NOT NULL,
    url      TEXT NOT NULL,
    started  INTEGER NOT NULL,
    up_since INTEGER NOT NULL,
    seen     INTEGER NOT NULL,
    settings TEXT NOT NULL,
    scanners TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE resumption (
    id     BLOB PRIMARY KEY,
    epoch  INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    by     INTEGER NOT NULL,
    reason TEXT
) WITHOUT ROWID;

CREATE TABLE retired (
    what INTEGER NOT NULL,
    id   INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    PRIMARY KEY (what, id)
) WITHOUT ROWID;

CREATE TABLE schema (
    one           INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version       INTEGER NOT NULL,
    oldest_binary INTEGER NOT NULL
);

CREATE TABLE signal (
    id           BLOB NOT NULL,
    waitpoint    BLOB NOT NULL,
    n            INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    effect       INTEGER NOT NULL,
    name         TEXT,
    source       TEXT,
    key          TEXT,
    content_type TEXT,
    payload      BLOB
);

CREATE UNIQUE INDEX signal_key ON signal (waitpoint, key) WHERE key IS NOT NULL;

CREATE UNIQUE INDEX signal_number ON signal (id, waitpoint, n);

CREATE TABLE signing_key (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    secret  BLOB NOT NULL,
    created INTEGER NOT NULL,
    retires INTEGER
);

CREATE TABLE span (
    namespace INTEGER NOT NULL,
    last      BLOB NOT NULL,
    first     BLOB NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (namespace, last)
) WITHOUT ROWID;

CREATE TABLE suspension (
    id         BLOB PRIMARY KEY,
    epoch      INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    condition  TEXT NOT NULL,
    on_timeout INTEGER NOT NULL,
    delay      INTEGER NOT NULL,
    escalated  INTEGER,
    reason     TEXT
, due INTEGER, lane INTEGER NOT NULL DEFAULT 0, namespace INTEGER) WITHOUT ROWID;

CREATE INDEX suspension_due ON suspension (due) WHERE due IS NOT NULL;

CREATE INDEX suspension_escalated ON suspension (namespace, id) WHERE escalated IS NOT NULL;

CREATE INDEX suspension_lane ON suspension (lane, coalesce(due, 9223372036854775807));

CREATE TABLE tally (
    lane      INTEGER NOT NULL,
    minute    INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    PRIMARY KEY (lane, minute)
) WITHOUT ROWID;

CREATE TABLE token (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL,
    namespace TEXT,
    scopes    INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    created   INTEGER NOT NULL,
    expires   INTEGER
, secret_of INTEGER, last_used INTEGER);

CREATE TABLE unspanned (since INTEGER NOT NULL, until INTEGER NOT NULL);

CREATE TABLE unused (
    what  INTEGER NOT NULL,
    id    INTEGER NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (what, id)
) WITHOUT ROWID;

CREATE TABLE unused_walk (
    one    INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    walker INTEGER NOT NULL,
    seen   INTEGER NOT NULL,
    next   INTEGER NOT NULL
);

CREATE TABLE waitpoint (
    waitpoint BLOB PRIMARY KEY,
    id        BLOB NOT NULL,
    created   INTEGER NOT NULL,
    expires   INTEGER,
    closed    INTEGER,
    epoch     INTEGER NOT NULL,
    bound     INTEGER NOT NULL,
    signals   INTEGER NOT NULL,
    key       INTEGER NOT NULL,
    replay    INTEGER NOT NULL,
    name      TEXT NOT NULL
, marked INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;

CREATE INDEX waitpoint_bound ON waitpoint (id, bound);

CREATE INDEX waitpoint_expires ON waitpoint (expires) WHERE bound = 0 AND closed IS NULL AND expires IS NOT NULL;

CREATE TRIGGER waitpoint_has AFTER INSERT ON waitpoint WHEN NOT NEW.marked
BEGIN
    UPDATE live SET has = has | 60
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 60 <> 60;
    UPDATE outcome SET has = has | 60
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 60 <> 60;
END;

CREATE TABLE worker (
    name         INTEGER PRIMARY KEY,
    namespace    INTEGER NOT NULL,
    lanes        TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    seen         INTEGER NOT NULL
);

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
       l.due, o.finished, o.ended, o.by, coalesce(o.reason, s.reason) AS reason, o.error_class, o.error_message,
       p.percent, p.note, f.id AS flow, n.name AS node,
       coalesce(l.policy, o.policy) AS policy,
       coalesce(l.forgiven, o.forgiven) AS forgiven,
       length(o.result) AS result_size,
       s.since AS suspended, s.escalated, e.gate
  FROM execution e
  LEFT JOIN live l ON l.num = e.num
  LEFT JOIN outcome o ON o.num = e.num
  LEFT JOIN progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch)
  LEFT JOIN node n ON n.num = e.num
  LEFT JOIN flow f ON f.num = n.flow
  LEFT JOIN suspension s ON s.id = e.id AND l.state = 5;
