-- The twin of 0024-waiting.pg.sql.
CREATE TABLE suspension (
    id         BLOB PRIMARY KEY,
    epoch      INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    condition  TEXT NOT NULL,
    on_timeout INTEGER NOT NULL,
    delay      INTEGER NOT NULL,
    escalated  INTEGER,
    namespace  INTEGER,
    reason     TEXT
) WITHOUT ROWID;
CREATE INDEX suspension_escalated ON suspension (namespace, id) WHERE escalated IS NOT NULL;
CREATE TABLE resumption (
    id     BLOB PRIMARY KEY,
    epoch  INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    by     INTEGER NOT NULL,
    reason TEXT
) WITHOUT ROWID;
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
) WITHOUT ROWID;
CREATE INDEX waitpoint_bound ON waitpoint (id, bound);
CREATE INDEX waitpoint_expires ON waitpoint (expires) WHERE bound = 0 AND closed IS NULL AND expires IS NOT NULL;
-- With row numbers: payloads are large.
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
CREATE UNIQUE INDEX signal_number ON signal (id, waitpoint, n);
CREATE UNIQUE INDEX signal_key ON signal (waitpoint, key) WHERE key IS NOT NULL;
CREATE TABLE signing_key (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    secret  BLOB NOT NULL,
    created INTEGER NOT NULL,
    retires INTEGER
);
CREATE TRIGGER suspension_has AFTER INSERT ON suspension
BEGIN
    UPDATE live SET has = has | 4
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 4 = 0;
    UPDATE outcome SET has = has | 4
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 4 = 0;
END;
CREATE TRIGGER resumption_has AFTER INSERT ON resumption
BEGIN
    UPDATE live SET has = has | 8
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 8 = 0;
    UPDATE outcome SET has = has | 8
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 8 = 0;
END;
CREATE TRIGGER waitpoint_has AFTER INSERT ON waitpoint
BEGIN
    UPDATE live SET has = has | 16
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 16 = 0;
    UPDATE outcome SET has = has | 16
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 16 = 0;
END;
CREATE TRIGGER signal_has AFTER INSERT ON signal
BEGIN
    UPDATE live SET has = has | 32
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 32 = 0;
    UPDATE outcome SET has = has | 32
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 32 = 0;
END;
CREATE INDEX live_suspended ON live (due) WHERE state = 5 AND due IS NOT NULL;
CREATE INDEX live_suspended_lane ON live (lane, due) WHERE state = 5;
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
       l.due, o.finished, o.ended, o.by, coalesce(o.reason, s.reason) AS reason, o.error_class, o.error_message,
       p.percent, p.note, f.id AS flow, n.name AS node,
       coalesce(l.policy, o.policy) AS policy,
       coalesce(l.forgiven, o.forgiven) AS forgiven,
       length(o.result) AS result_size,
       s.since AS suspended, s.escalated
  FROM execution e
  LEFT JOIN live l ON l.num = e.num
  LEFT JOIN outcome o ON o.num = e.num
  LEFT JOIN progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch)
  LEFT JOIN node n ON n.num = e.num
  LEFT JOIN flow f ON f.num = n.flow
  LEFT JOIN suspension s ON s.id = e.id AND l.state = 5;
