-- Batches (src/engine/batch): a batch is a flow whose members are the lines of a file.
--
-- The members are written in parts while the flow is staged, each part in one transaction with the position behind it,
-- so a crash costs nothing: whoever goes on begins there. With the last part the flow is opened.
--   id        also the id of the flow
--   phase     0: members are being written; 1: the flow is open, or has ended; 2: it has ended, and the counts are
--             final; 3: the file cannot be used, see flaws
--   at, line  bytes and lines of the file that have been read; last: the last member; NULL: none
--   wanted    a cancel was asked for then
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
    deleted   bigint
);
CREATE INDEX batch_shown ON weft.batch (namespace, id) WHERE deleted IS NULL;
CREATE INDEX batch_active ON weft.batch (id) WHERE phase < 2;

-- Which endpoint and lane the lines of a model use; '*': of any other model.
CREATE TABLE weft.model (
    namespace int  NOT NULL,
    name      text COLLATE "C" NOT NULL,
    endpoint  text NOT NULL,
    lane      text NOT NULL,
    PRIMARY KEY (namespace, name)
);
