-- What the scanners need: which partition an id is in, how long a lane keeps what ended, what has
-- been kept long enough, and which replicas there are.

-- The partition of an id: see base/id.c. Inlined where it is used.
CREATE FUNCTION weft.partition(id uuid) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
$function$
    SELECT ((get_byte(uuid_send($1), 6) & 15) << 4) | (get_byte(uuid_send($1), 7) >> 4)
$function$;

-- 0: not set.
ALTER TABLE weft.lane ADD COLUMN retention_us bigint NOT NULL DEFAULT 0;

-- How long an outcome is kept follows from its queue's lane, its policy and its state, so within a
-- group of these the oldest go first. A setting that changes holds at once for what ended before.
CREATE INDEX outcome_retention ON weft.outcome (queue, policy, state, finished);

-- A row per server, rewritten with each heartbeat.
CREATE TABLE weft.replica (
    id       uuid PRIMARY KEY,
    host     text NOT NULL,
    pid      bigint NOT NULL,
    version  text NOT NULL,
    url      text NOT NULL,
    started  bigint NOT NULL,
    up_since bigint NOT NULL,
    seen     bigint NOT NULL,
    settings text NOT NULL,
    scanners text NOT NULL
) WITH (fillfactor = 50);
