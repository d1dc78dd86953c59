-- The twin of 0031-endpoints.pg.sql. The poll is a statement of its own here.
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
INSERT INTO endpoint_version (version) VALUES (1);
