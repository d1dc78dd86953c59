-- Interned rows that no row referred to when the scanner unused_names last looked. See
-- src/engine/names/unused.h. A row is here or in weft.retired, never in both.
--
--   what   as in weft.retired
--   since  when the first walk began that met no reference
CREATE TABLE weft.unused (
    what  smallint NOT NULL,
    id    int NOT NULL,
    since bigint NOT NULL,
    PRIMARY KEY (what, id)
);

-- The one row: which process walks, when it last said so, and when the next walk may begin. Only cost
-- depends on it: two walks at once do no harm.
CREATE TABLE weft.unused_walk (
    one    int PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    walker bigint NOT NULL,
    seen   bigint NOT NULL,
    next   bigint NOT NULL
);
INSERT INTO weft.unused_walk (walker, seen, next) VALUES (0, 0, 0);
