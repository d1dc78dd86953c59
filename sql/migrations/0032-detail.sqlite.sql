-- The twin of 0032-detail.pg.sql.
CREATE TABLE detail (
    id     BLOB    NOT NULL,
    epoch  INTEGER NOT NULL,
    detail TEXT    NOT NULL,
    PRIMARY KEY (id, epoch)
);
