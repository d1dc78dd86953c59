-- What is erased on request, and what was: one row is the order, and afterwards its receipt. While it runs the row
-- has the subject; when it is done only a hash of it stays, keyed with a secret of this row, by which a later look
-- knows the subject again. walked: where the walk over executions has got to.
CREATE TABLE weft.erasure (
    id        uuid     PRIMARY KEY,
    namespace integer  NOT NULL,
    sort      smallint NOT NULL, -- enum weft_erasure_sort
    subject   text,
    secret    bytea    NOT NULL,
    hash      text     NOT NULL,
    reason    text     NOT NULL,
    by        text,              -- the name of the token
    asked     bigint   NOT NULL, -- the horizon: what was created later is not touched
    phase     smallint NOT NULL, -- enum weft_erasure_phase
    walked    uuid     NOT NULL,
    rounds    integer  NOT NULL, -- walks that have ended
    found     bigint   NOT NULL, -- of the subject, by this walk
    later     bigint   NOT NULL, -- created after the horizon, by this walk
    counts    text     NOT NULL, -- rows by what became of them, as JSON
    retired   bigint,            -- when its name was retired
    finished  bigint,
    left_over text,              -- what it could not reach, in words
    digest    text,
    verified  bigint,
    remains   bigint,            -- rows that the last verification found
    barrier   bigint   NOT NULL  -- the number of the transaction that stored the order
);
CREATE INDEX erasure_open ON weft.erasure (id) WHERE finished IS NULL;
CREATE INDEX erasure_list ON weft.erasure (namespace, id);

-- what 12: whether there is something to erase (a).
CREATE FUNCTION weft.poll_erasure(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
    SELECT 13, EXISTS (SELECT 1 FROM weft.erasure WHERE finished IS NULL)::int::bigint, NULL::bigint, NULL::bigint,
           NULL::bigint, NULL::text
$function$;

-- Which batches read a file.
CREATE INDEX batch_file ON weft.batch (file);
