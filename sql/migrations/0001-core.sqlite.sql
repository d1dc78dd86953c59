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

-- An execution has a number beside its id: its place in the file, in the order of submission. Tables
-- are keyed by it, because rows with growing integer keys are appended to full pages, and what is
-- claimed together is read by stepping to the next row. A tree keyed by the id would hold rows in
-- its inner pages too, and be twice as deep. The index of the ids is the one way from id to number.
CREATE TABLE execution (
    num          INTEGER PRIMARY KEY,
    id           BLOB NOT NULL UNIQUE,
    created      INTEGER NOT NULL,
    queue        INTEGER NOT NULL,
    content_type TEXT,
    tags         TEXT,
    key          TEXT,
    payload      BLOB
);

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
);

-- Every index ends with the number, which SQLite adds.
CREATE INDEX live_ready ON live (queue, priority DESC, ord) WHERE state = @ready;
CREATE INDEX live_lease ON live (lane, due) WHERE state = @running;
CREATE INDEX live_timer ON live (due) WHERE state = @delayed;
CREATE INDEX live_deadline ON live (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX live_attempt_deadline ON live (attempt_deadline) WHERE attempt_deadline IS NOT NULL;

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
);

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
       p.percent, p.note
  FROM execution e
  LEFT JOIN live l ON l.num = e.num
  LEFT JOIN outcome o ON o.num = e.num
  LEFT JOIN progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch);
