-- The twin of 0036-files.pg.sql.
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
CREATE INDEX file_shown ON file (namespace, id) WHERE sealed AND deleted IS NULL;
CREATE INDEX file_expires ON file (expires) WHERE expires IS NOT NULL AND deleted IS NULL;
CREATE INDEX file_open ON file (touched) WHERE NOT sealed AND deleted IS NULL;
CREATE INDEX file_deleted ON file (deleted, id) WHERE deleted IS NOT NULL;
CREATE TABLE file_chunk (
    num  INTEGER PRIMARY KEY,
    file BLOB    NOT NULL,
    at   INTEGER NOT NULL,
    line INTEGER NOT NULL,
    data BLOB    NOT NULL,
    UNIQUE (file, at)
);
