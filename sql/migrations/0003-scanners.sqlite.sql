-- The twin of 0003-scanners.pg.sql. weft_partition() is given by the driver.

ALTER TABLE lane ADD COLUMN retention_us INTEGER NOT NULL DEFAULT 0;

CREATE INDEX outcome_retention ON outcome (queue, policy, state, finished);

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
