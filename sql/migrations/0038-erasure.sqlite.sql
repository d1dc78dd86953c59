-- The twin of 0038-erasure.pg.sql.
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
    remains   INTEGER,
    barrier   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX erasure_open ON erasure (id) WHERE finished IS NULL;
CREATE INDEX erasure_list ON erasure (namespace, id);

-- Which batches read a file.
CREATE INDEX batch_file ON batch (file);
