-- The twin of 0027-gates.pg.sql.
ALTER TABLE execution ADD COLUMN gate TEXT;
ALTER TABLE live ADD COLUMN gate TEXT;
ALTER TABLE draining ADD COLUMN gate TEXT;
CREATE INDEX live_gate ON live (gate, state, priority DESC, ord, num) WHERE gate IS NOT NULL;
CREATE INDEX draining_gate ON draining (gate) WHERE gate IS NOT NULL;
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
-- What live_end does in PostgreSQL: the end of a lease whose start counts.
CREATE TRIGGER outcome_started AFTER INSERT ON outcome WHEN NEW.has & 64 AND NEW.held
BEGIN
    INSERT INTO gate_start (name, at, count)
    SELECT e.gate, NEW.claimed, 1 FROM execution e WHERE e.num = NEW.num AND e.gate IS NOT NULL;
END;
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
       s.since AS suspended, s.escalated, e.gate
  FROM execution e
  LEFT JOIN live l ON l.num = e.num
  LEFT JOIN outcome o ON o.num = e.num
  LEFT JOIN progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch)
  LEFT JOIN node n ON n.num = e.num
  LEFT JOIN flow f ON f.num = n.flow
  LEFT JOIN suspension s ON s.id = e.id AND l.state = 5;
