-- Lanes may limit how often executions start, as gates do: a window and a rate (src/core/limit.h). A lane has no
-- admission: the claim that holds the lock of its row, which it takes for max_running too, counts its own starts.
--
--   full_ns     the token bucket of the rate is full again then (nanoseconds)
--   lane_start  starts under a window. The end of a thousandth of the span counts for all starts in it, so that a lane
--               never has more than about 1,000 rows; they are removed by the next claims that start something.
--
-- A binary that does not know these limits would ignore them: the first such setting raises schema.oldest_binary
-- (lane_put). Until a running one notices, weft.poll() shows it the lane as paused; SQLite has no such function.
ALTER TABLE weft.lane ADD COLUMN window_limit bigint NOT NULL DEFAULT 0;
ALTER TABLE weft.lane ADD COLUMN window_us bigint NOT NULL DEFAULT 0;
ALTER TABLE weft.lane ADD COLUMN rate_limit bigint NOT NULL DEFAULT 0;
ALTER TABLE weft.lane ADD COLUMN rate_us bigint NOT NULL DEFAULT 0;
ALTER TABLE weft.lane ADD COLUMN rate_burst bigint NOT NULL DEFAULT 0;
ALTER TABLE weft.lane ADD COLUMN full_ns bigint;
CREATE TABLE weft.lane_start (
    lane  int    NOT NULL,
    at    bigint NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (lane, at)
);

-- what 3: c has the bit 2 for a lane with a window or a rate.
CREATE OR REPLACE FUNCTION weft.poll_settings(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint,
                                              OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET jit = off
AS $function$
    SELECT 2, EXISTS (SELECT 1 FROM weft.inbox)::int::bigint, max(id)::bigint, sum(id)::bigint, count(*),
           NULL::text
      FROM weft.token
    UNION ALL
    SELECT 3, id, namespace, paused::int + CASE WHEN window_limit + rate_limit > 0 THEN 2 ELSE 0 END, max_running,
           weights
      FROM weft.lane
$function$;
