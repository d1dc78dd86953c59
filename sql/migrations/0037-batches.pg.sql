-- Batches (src/engine/batch): a batch is a flow whose members are the lines of a file.
--
-- The members are written in parts while the flow is staged, each part in one transaction with the position behind it,
-- so a crash costs nothing: whoever goes on begins there. With the last part the flow is opened.
--   id        also the id of the flow
--   phase     0: members are being written; 1: the flow is open, or has ended; 2: it has ended, and the counts are
--             final; 3: the file cannot be used, see flaws
--   at, line  bytes and lines of the file that have been read; last: the last member; NULL: none
--   wanted    a cancel was asked for then
--   retried   when a retry was last asked for
--   retry     lines that ended badly until then are being brought back; NULL: no retry is under way
--   retry_to  the last line that it has looked at; NULL: none
--   looked    when it was last seen whether its lines have to hurry; look_at: when that is due again
CREATE TABLE weft.batch (
    id        uuid   NOT NULL PRIMARY KEY,
    namespace int    NOT NULL,
    file      uuid   NOT NULL,
    endpoint  text   NOT NULL,
    span      text   NOT NULL,
    metadata  text,
    phase     smallint NOT NULL,
    at        bigint NOT NULL,
    line      bigint NOT NULL,
    last      uuid,
    requests  bigint NOT NULL,
    flaws     text   NOT NULL,
    created   bigint NOT NULL,
    expires   bigint NOT NULL,
    opened    bigint,
    finished  bigint,
    frozen    bigint,
    wanted    bigint,
    succeeded bigint NOT NULL,
    failed    bigint NOT NULL,
    expired   bigint NOT NULL,
    cancelled bigint NOT NULL,
    retried   bigint,
    retry     bigint,
    retry_to  uuid,
    looked    bigint NOT NULL DEFAULT 0,
    look_at   bigint NOT NULL DEFAULT 0,
    deleted   bigint
);
CREATE INDEX batch_shown ON weft.batch (namespace, id) WHERE deleted IS NULL;
CREATE INDEX batch_active ON weft.batch (id) WHERE phase < 2;
CREATE INDEX batch_failed ON weft.batch (finished) WHERE phase = 3 AND deleted IS NULL;
CREATE INDEX batch_deleted ON weft.batch (id) WHERE deleted IS NOT NULL;

-- The models that the lines of a batch name, so that lines are counted by their model. Lines whose model would be one
-- too many, and members of other flows, have none.
--   escalated   lines that had not begun were moved to that model
ALTER TABLE weft.node ADD COLUMN model smallint;
CREATE TABLE weft.batch_model (
    batch     uuid     NOT NULL,
    number    smallint NOT NULL,
    name      text     NOT NULL,
    escalated text,
    PRIMARY KEY (batch, number)
);

-- Which endpoint and lane the lines of a model use; '*': of any other model.
CREATE TABLE weft.model (
    namespace int  NOT NULL,
    name      text COLLATE "C" NOT NULL,
    endpoint  text NOT NULL,
    lane      text NOT NULL,
    escalate_to text,
    PRIMARY KEY (namespace, name)
);

-- what 5, c: now also whether there are files or batches to remove.
CREATE OR REPLACE FUNCTION weft.poll_flows(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint,
                                           OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
    SELECT 4,
           (SELECT at FROM weft.completion ORDER BY seq LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = false AND at >= 0 ORDER BY at LIMIT 1),
           (SELECT at FROM weft.cancel_group WHERE waiting = true AND at >= 0 ORDER BY at LIMIT 1),
           NULL::bigint, NULL::text
    UNION ALL
    SELECT 5, EXISTS (SELECT 1 FROM weft.flow WHERE backlog)::int,
           (SELECT created FROM weft.flow WHERE state < 0 AND state = -1 ORDER BY state, id LIMIT 1),
           (EXISTS (SELECT 1 FROM weft.flow WHERE state < 0 AND state = -2)
            OR EXISTS (SELECT 1 FROM weft.flow WHERE deleted IS NOT NULL AND state > 0)
            OR EXISTS (SELECT 1 FROM weft.file WHERE deleted IS NOT NULL)
            OR EXISTS (SELECT 1 FROM weft.batch b WHERE b.deleted IS NOT NULL
                          AND NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id = b.id OFFSET 0)))::int, NULL, NULL
$function$;
