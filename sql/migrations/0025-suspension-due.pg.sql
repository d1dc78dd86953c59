-- Suspensions are found by their timeout in their own table: two partial indexes less on `live`, which every
-- execution pays for, suspended or not (3 % of a lifecycle in SQLite).
--
--   due        live.due, when it times out; NULL: never, or it was escalated
--   lane       live.lane
--   namespace  of an escalated one, for lists of these; NULL before
-- None of them changes while the execution is suspended, but for the escalation.
--
-- A binary that does not know these columns leaves them empty, and such a suspension would never time out. So where
-- waiting is in use already (see 0024), the oldest binary is the one that knows them.
ALTER TABLE weft.suspension ADD COLUMN due bigint;
ALTER TABLE weft.suspension ADD COLUMN lane int NOT NULL DEFAULT 0;
ALTER TABLE weft.suspension ADD COLUMN namespace int;
DROP INDEX weft.live_suspended;
DROP INDEX weft.live_suspended_lane;
UPDATE weft.suspension s SET due = l.due, lane = l.lane FROM weft.live l WHERE l.id = s.id;
UPDATE weft.suspension s SET namespace = n.namespace FROM weft.name n WHERE n.id = s.lane AND s.escalated IS NOT NULL;
UPDATE weft.schema SET oldest_binary = 25 WHERE oldest_binary = 24;

-- For passes; and by lane, also those without a timeout, for passes in turns and for lists. The second is by an
-- expression, so that the planner never takes the one for the other: see 0016.
CREATE INDEX suspension_due ON weft.suspension (due) WHERE due IS NOT NULL;
CREATE INDEX suspension_lane ON weft.suspension (lane, (coalesce(due, 9223372036854775807)));

-- Lists of the escalated executions of a namespace.
DROP INDEX weft.suspension_escalated;
CREATE INDEX suspension_escalated ON weft.suspension (namespace, id) WHERE escalated IS NOT NULL;

-- The bits of the four tables of waiting come together: with a waitpoint, by its trigger, and with a suspension, by
-- live_put. No resumption or signal comes without one of these before it, so the other triggers found nothing to do,
-- three times for each execution that waits.
DROP TRIGGER suspension_has ON weft.suspension;
DROP TRIGGER resumption_has ON weft.resumption;
DROP TRIGGER signal_has ON weft.signal;
DROP TRIGGER waitpoint_has ON weft.waitpoint;
UPDATE weft.live SET has = has | 60 WHERE has & 60 <> 0;
UPDATE weft.outcome o SET has = has | 60
 WHERE o.id IN (SELECT id FROM weft.waitpoint UNION SELECT id FROM weft.resumption);
CREATE TRIGGER waitpoint_has AFTER INSERT ON weft.waitpoint
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION weft.set_has(60);

CREATE OR REPLACE FUNCTION weft.poll_waiting(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint,
                                             OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off
AS $function$
    SELECT 9,
           (SELECT due FROM weft.suspension WHERE due IS NOT NULL ORDER BY due LIMIT 1),
           (SELECT expires FROM weft.waitpoint
             WHERE bound = 0 AND closed IS NULL AND expires IS NOT NULL ORDER BY expires LIMIT 1),
           (SELECT max(id)::bigint FROM weft.signing_key),
           (SELECT sum(coalesce(retires, 0) % 1000000007)::bigint FROM weft.signing_key),
           NULL::text
$function$;
