-- The twin of 0037-batches.pg.sql.
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
CREATE INDEX batch_shown ON batch (namespace, id) WHERE deleted IS NULL;
CREATE INDEX batch_active ON batch (id) WHERE phase < 2;
CREATE INDEX batch_failed ON batch (finished) WHERE phase = 3 AND deleted IS NULL;
CREATE INDEX batch_deleted ON batch (id) WHERE deleted IS NOT NULL;
ALTER TABLE node ADD COLUMN model INTEGER;
CREATE TABLE batch_model (
    batch     BLOB    NOT NULL,
    number    INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    escalated TEXT,
    PRIMARY KEY (batch, number)
) WITHOUT ROWID;
CREATE TABLE model (
    namespace INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    endpoint  TEXT    NOT NULL,
    lane      TEXT    NOT NULL,
    escalate_to TEXT,
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;
