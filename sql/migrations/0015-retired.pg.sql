-- Interned rows that are retired: no id of them is written that was not looked up by its text again,
-- and later they are removed. See src/engine/names/unused.h. Each poll reads all of it: it stays small.
--
--   what  0: weft.name, 1: weft.queue
--   at    since then
CREATE TABLE weft.retired (
    what smallint NOT NULL,
    id   int NOT NULL,
    at   bigint NOT NULL,
    PRIMARY KEY (what, id)
);
