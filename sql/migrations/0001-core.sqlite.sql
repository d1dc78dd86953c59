-- The twin of 0001-core.pg.sql; see there for what each table means. There is no inbox here: an
-- application that shares the file submits through the library.

CREATE TABLE name (
    id        INTEGER PRIMARY KEY,
    sort      INTEGER NOT NULL,
    namespace INTEGER NOT NULL,
    text      TEXT NOT NULL,
    UNIQUE (sort, namespace, text)
);

CREATE TABLE policy (
    id         INTEGER PRIMARY KEY,
    text       TEXT NOT NULL UNIQUE,
    lease_us   INTEGER NOT NULL,
    timeout_us INTEGER NOT NULL
);

CREATE TABLE queue (
    id        INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    lane      INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    route     INTEGER NOT NULL,
    tenant    INTEGER NOT NULL,
    UNIQUE (namespace, lane, kind, route, tenant)
);

CREATE TABLE lane (
    id          INTEGER PRIMARY KEY,
    namespace   INTEGER NOT NULL,
    paused      INTEGER NOT NULL,
    max_running INTEGER NOT NULL,
    weights     TEXT
);

-- Keyed by id alone: ids grow with time, so rows are appended and no second tree is needed.
CREATE TABLE execution (
    id           BLOB PRIMARY KEY,
    created      INTEGER NOT NULL,
    queue        INTEGER NOT NULL,
    content_type TEXT,
    tags         TEXT,
    key          TEXT,
    payload      BLOB
) WITHOUT ROWID;

CREATE TABLE live (
    id               BLOB PRIMARY KEY,
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
) WITHOUT ROWID;

CREATE INDEX live_ready ON live (queue, priority DESC, ord, id) WHERE state = @ready;
CREATE INDEX live_lease ON live (lane, due) WHERE state = @running;
CREATE INDEX live_timer ON live (due) WHERE state = @delayed;
CREATE INDEX live_deadline ON live (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX live_attempt_deadline ON live (attempt_deadline) WHERE attempt_deadline IS NOT NULL;

CREATE TABLE outcome (
    id            BLOB PRIMARY KEY,
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
) WITHOUT ROWID;

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
    result        BLOB,
    PRIMARY KEY (id, epoch, replay)
) WITHOUT ROWID;

CREATE TABLE key (
    namespace   INTEGER NOT NULL,
    key         TEXT NOT NULL,
    id          BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;

CREATE TABLE progress (
    id      BLOB PRIMARY KEY,
    epoch   INTEGER NOT NULL,
    percent INTEGER NOT NULL,
    note    TEXT,
    at      INTEGER NOT NULL
) WITHOUT ROWID;

CREATE VIEW snapshot AS
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
  FROM execution e
  LEFT JOIN live l ON l.id = e.id
  LEFT JOIN outcome o ON o.id = e.id
  LEFT JOIN progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch);
