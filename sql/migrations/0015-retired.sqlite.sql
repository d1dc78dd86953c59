-- The twin of 0015-retired.pg.sql.
CREATE TABLE retired (
    what INTEGER NOT NULL,
    id   INTEGER NOT NULL,
    at   INTEGER NOT NULL,
    PRIMARY KEY (what, id)
) WITHOUT ROWID;
