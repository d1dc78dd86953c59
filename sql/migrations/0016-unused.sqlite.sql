-- The twin of 0016-unused.pg.sql.
CREATE TABLE unused (
    what  INTEGER NOT NULL,
    id    INTEGER NOT NULL,
    since INTEGER NOT NULL,
    PRIMARY KEY (what, id)
) WITHOUT ROWID;

CREATE TABLE unused_walk (
    one    INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    walker INTEGER NOT NULL,
    seen   INTEGER NOT NULL,
    next   INTEGER NOT NULL
);
INSERT INTO unused_walk (walker, seen, next) VALUES (0, 0, 0);
