-- The twin of 0007-draining.pg.sql. The poll is a plain statement here. Keyed by the id, not by the number
-- of the execution, because a row may outlive its execution and numbers may be given again.
CREATE TABLE draining (
    id       BLOB NOT NULL,
    epoch    INTEGER NOT NULL,
    queue    INTEGER NOT NULL,
    lane     INTEGER NOT NULL,
    worker   INTEGER NOT NULL,
    until    INTEGER NOT NULL,
    ended    INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    told     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (id, epoch)
) WITHOUT ROWID;
CREATE INDEX draining_lane ON draining (lane, until);
CREATE INDEX draining_until ON draining (until);
CREATE INDEX draining_untold ON draining (worker) WHERE NOT told;
