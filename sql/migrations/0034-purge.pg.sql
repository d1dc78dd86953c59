-- Flows are removed by a scanner of their own, `purge`; the poll says when it has work. what 4: as before; 5: whether
-- a flow has members to cancel (a), when the oldest flow that is not whole yet was begun (b), whether there are flows to
-- remove (c), now without those that are being removed in (b). flow_unseen has replaced flow_hidden.
DROP INDEX weft.flow_hidden;
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
            OR EXISTS (SELECT 1 FROM weft.flow WHERE deleted IS NOT NULL AND state > 0))::int, NULL, NULL
$function$;
