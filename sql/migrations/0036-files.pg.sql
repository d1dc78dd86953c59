-- Files of batches (src/engine/batch).
--
-- A file is written by one upload, chunk by chunk, each chunk in a short transaction; nobody sees it before it is
-- sealed. An upload that broke off stays open, and the scanner file_expiry deletes it when no chunk has come for an
-- hour. Deleting sets `deleted`, which hides the file; its chunks are removed later.
--   sealed   it is whole
--   touched  when the last chunk came
--   flaws    the first flaws of its lines, as the elements of a JSON array; flaw_count: all of them
CREATE TABLE weft.file (
    id         uuid   NOT NULL PRIMARY KEY,
    namespace  int    NOT NULL,
    filename   text   NOT NULL,
    purpose    text   NOT NULL,
    sealed     boolean NOT NULL,
    bytes      bigint NOT NULL,
    requests   bigint NOT NULL,
    flaws      text   NOT NULL,
    flaw_count bigint NOT NULL,
    created    bigint NOT NULL,
    touched    bigint NOT NULL,
    expires    bigint,
    deleted    bigint
);
CREATE INDEX file_shown ON weft.file (namespace, id) WHERE sealed AND deleted IS NULL;
CREATE INDEX file_expires ON weft.file (expires) WHERE expires IS NOT NULL AND deleted IS NULL;
CREATE INDEX file_open ON weft.file (touched) WHERE NOT sealed AND deleted IS NULL;
CREATE INDEX file_deleted ON weft.file (deleted, id) WHERE deleted IS NOT NULL;

-- The bytes of a file from `at` on. A chunk ends where a line does, unless the line is longer than a request may be.
-- `line`: how many lines end before it. Stored as they came: compressing them takes longer than writing them.
CREATE TABLE weft.file_chunk (
    file uuid   NOT NULL,
    at   bigint NOT NULL,
    line bigint NOT NULL,
    data bytea  NOT NULL,
    PRIMARY KEY (file, at)
);
ALTER TABLE weft.file_chunk ALTER COLUMN data SET STORAGE EXTERNAL;
