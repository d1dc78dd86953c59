-- The twin of 0002-server.pg.sql; see there for what each table means. The poll is a plain
-- statement here.

CREATE TABLE token (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL,
    namespace TEXT,
    scopes    INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    created   INTEGER NOT NULL,
    expires   INTEGER
);

CREATE TABLE worker (
    name         INTEGER PRIMARY KEY,
    namespace    INTEGER NOT NULL,
    lanes        TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    seen         INTEGER NOT NULL
);

CREATE TABLE tally (
    lane      INTEGER NOT NULL,
    minute    INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    PRIMARY KEY (lane, minute)
) WITHOUT ROWID;
