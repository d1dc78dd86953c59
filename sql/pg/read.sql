-- Reads. A list looks at a bounded number of rows, newest first, and says how far it came: a page
-- may be short, even empty, while there is more. It looks at rows of its own namespace alone.
-- Members of a flow that is not whole yet, or is being removed, are not shown: no reader is
-- given their ids, so reads by id alone (attempts, results, payloads) need not check.

-- name: describe (id uuid[])
-- returns: id uuid?, created bigint, queue int, content_type text?, tags text?, key text?, state smallint, priority smallint, attempt int, epoch int, lost smallint, replays smallint, worker int?, started bigint?, claimed bigint?, deadline bigint?, due bigint?, finished bigint?, ended smallint?, by text?, reason text?, error_class text?, error_message text?, percent smallint?, note text?, flow uuid?, node text?, policy int, forgiven int, result_size bigint?, suspended bigint?, escalated bigint?, gate text?
SELECT @{execution_columns s}
  FROM unnest(:id) AS w(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.snapshot WHERE id = w.id OFFSET 0) s
 WHERE NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id = s.flow AND f.state < 0 OFFSET 0);

-- name: list (source smallint, namespace int, lane int?, kind text?, tenant int?, state smallint?, tag text?, flow uuid?, worker int?, error_class text?, created_since bigint?, created_until bigint?, finished_since bigint?, finished_until bigint?, suffix text?, ended bool?, escalated bool, after uuid, above uuid, floor uuid, scan int, limit int)
-- returns: id uuid?, created bigint, queue int, content_type text?, tags text?, key text?, state smallint, priority smallint, attempt int, epoch int, lost smallint, replays smallint, worker int?, started bigint?, claimed bigint?, deadline bigint?, due bigint?, finished bigint?, ended smallint?, by text?, reason text?, error_class text?, error_message text?, percent smallint?, note text?, flow uuid?, node text?, policy int, forgiven int, result_size bigint?, suspended bigint?, escalated bigint?, gate text?, last uuid?, scanned bigint, bound uuid?
-- source: 0 the spans of the namespace; 1 its living rows, through the partial indexes of `live`, for a
-- namespace that has few of them (see list_living); 2 all ids (see `unspanned` in 0010-lists); of a flow of the
-- namespace: 3 its members, 4 the living ones; 5 its escalated rows. There is one row without an id when nothing fits.
-- See flow.sql for why rows are compared. The walk goes from :after (exclusive) down to
-- :floor (inclusive); :above is the first id of the millisecond after that of :after. The moments
-- `since` are inclusive, `until` exclusive. `flow >= :flow` lets the planner prove the partial index. :suffix is the end of the id, in hexadecimal digits.
--
-- Of the spans as many are read as hold :scan rows below :after, and one more. `bound` is where the first
-- one ends that is not read: all rows above it are in spans that were. Spans of one millisecond may overlap, so a
-- row is found by several.
WITH near AS MATERIALIZED (
    SELECT x.last, x.first,
           row_number() OVER (ORDER BY x.last DESC) > :scan
           OR coalesce(sum(CASE WHEN x.last < :after THEN x.count ELSE 0 END)
                       OVER (ORDER BY x.last DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
                       0) >= :scan AS beyond
      FROM (SELECT s.last, s.first, s.count FROM weft.span s
             WHERE :source = 0 AND s.namespace = :namespace AND s.last < :above AND s.last >= :floor
               AND s.first < :after
             ORDER BY s.last DESC LIMIT :scan + 1) x
), bound AS MATERIALIZED (
    SELECT last FROM near WHERE beyond ORDER BY last DESC LIMIT 1
), own_flow AS MATERIALIZED (
    SELECT id FROM weft.flow WHERE id = :flow AND namespace = :namespace
), page AS MATERIALIZED (
    (SELECT DISTINCT e.id
       FROM near n
      CROSS JOIN LATERAL (SELECT x.id FROM weft.execution x
                           WHERE x.id <= n.last AND x.id >= n.first AND x.id < :after
                             AND x.id >= :floor
                             AND EXISTS (SELECT 1 FROM weft.queue q
                                          WHERE q.id = x.queue AND q.namespace = :namespace OFFSET 0)
                           ORDER BY x.id DESC LIMIT :scan) e
      WHERE NOT n.beyond AND e.id > coalesce((SELECT last FROM bound), @{no_id})
      ORDER BY e.id DESC LIMIT :scan)
    UNION ALL
    (SELECT w.id
       FROM (SELECT l.id
               FROM (SELECT id FROM weft.queue
                      WHERE :source = 1 AND namespace = :namespace
                        AND (:state IS NULL OR :state = @ready)) q
              CROSS JOIN LATERAL (SELECT id FROM weft.live WHERE state = @ready AND queue = q.id OFFSET 0) l
              UNION ALL
             SELECT l.id
               FROM (SELECT id FROM weft.name
                      WHERE :source = 1 AND sort = @WEFT_NAME_LANE AND namespace = :namespace) n
              CROSS JOIN LATERAL ((SELECT id FROM weft.live
                                    WHERE state = @running AND lane = n.id
                                      AND (:state IS NULL OR :state = @running) OFFSET 0)
                                   UNION ALL
                                  (SELECT id FROM weft.live
                                    WHERE state BETWEEN @delayed AND @delayed AND lane = n.id
                                      AND (:state IS NULL OR :state = @delayed) OFFSET 0)
                                   UNION ALL
                                  (SELECT id FROM weft.suspension
                                    WHERE lane = n.id AND (:state IS NULL OR :state = @suspended) OFFSET 0)) l
              UNION ALL
             SELECT l.id
               FROM (SELECT id FROM weft.flow
                      WHERE :source = 1 AND namespace = :namespace AND finished IS NULL
                        AND (:state IS NULL OR :state = @blocked)) f
              CROSS JOIN LATERAL (SELECT id FROM weft.live WHERE flow = f.id AND state = @blocked OFFSET 0) l) w
      WHERE w.id < :after AND w.id >= :floor
      ORDER BY w.id DESC LIMIT :scan)
    UNION ALL
    (SELECT id FROM weft.execution WHERE :source = 2 AND id < :after AND id >= :floor
      ORDER BY id DESC LIMIT :scan)
    UNION ALL
    (SELECT id FROM weft.node
      WHERE :source = 3 AND (flow, id) < (:flow, :after) AND (flow, id) >= (:flow, :floor)
        AND flow >= :flow AND k >= 0 AND EXISTS (SELECT 1 FROM own_flow)
      ORDER BY flow DESC, id DESC LIMIT :scan)
    UNION ALL
    (SELECT id FROM weft.live
      WHERE :source = 4 AND (flow, id) < (:flow, :after) AND (flow, id) >= (:flow, :floor)
        AND flow >= :flow AND EXISTS (SELECT 1 FROM own_flow)
      ORDER BY flow DESC, id DESC LIMIT :scan)
    UNION ALL
    (SELECT id FROM weft.suspension
      WHERE :source = 5 AND escalated IS NOT NULL AND namespace = :namespace AND id < :after AND id >= :floor
      ORDER BY id DESC LIMIT :scan)
), fit AS (
    SELECT s.*
      FROM page
     CROSS JOIN LATERAL (SELECT * FROM weft.snapshot WHERE id = page.id OFFSET 0) s
     CROSS JOIN LATERAL (SELECT * FROM weft.queue WHERE id = s.queue OFFSET 0) q
     WHERE q.namespace = :namespace
       AND (:lane IS NULL OR q.lane = :lane)
       AND (:kind IS NULL OR q.kind = :kind)
       AND (:tenant IS NULL OR q.tenant = :tenant)
       AND (:state IS NULL OR s.state = :state)
       AND (:tag IS NULL OR strpos(s.tags, :tag) > 0)
       AND (:flow IS NULL OR s.flow = :flow)
       AND (:worker IS NULL OR s.worker = :worker)
       AND (:error_class IS NULL OR s.error_class = :error_class)
       AND (:created_since IS NULL OR s.created >= :created_since)
       AND (:created_until IS NULL OR s.created < :created_until)
       AND (:finished_since IS NULL OR s.finished >= :finished_since)
       AND (:finished_until IS NULL OR s.finished < :finished_until)
       AND (:suffix IS NULL OR right(s.id::text, length(:suffix)) = :suffix)
       AND (:ended IS NULL OR :ended = (s.finished IS NOT NULL))
       AND (NOT :escalated OR s.escalated IS NOT NULL)
       AND NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id = s.flow AND f.state < 0 OFFSET 0)
     ORDER BY s.id DESC LIMIT :limit
)
SELECT @{execution_columns s},
       (SELECT id FROM page ORDER BY id LIMIT 1), (SELECT count(*) FROM page), (SELECT last FROM bound)
  FROM (SELECT 1) one LEFT JOIN fit s ON true
 ORDER BY s.id DESC;

-- name: list_living (namespace int, state smallint?, most int)
-- returns: few bool
-- Whether the living rows of a namespace, of one state or of all, are few enough to be read, sorted and cut to
-- a page: at most :most of them, in at most as many queues, lanes and flows.
SELECT (SELECT count(*) FROM (SELECT 1 FROM weft.queue WHERE namespace = :namespace LIMIT :most + 1) x) <= :most
   AND (SELECT count(*) FROM (SELECT 1 FROM weft.name WHERE sort = @WEFT_NAME_LANE AND namespace = :namespace
                               LIMIT :most + 1) x) <= :most
   AND (SELECT count(*) FROM (SELECT 1 FROM weft.flow WHERE namespace = :namespace AND finished IS NULL
                               LIMIT :most + 1) x) <= :most
   AND (SELECT count(*)
          FROM (SELECT 1
                  FROM (SELECT id FROM weft.queue WHERE namespace = :namespace LIMIT :most) q
                 CROSS JOIN LATERAL (SELECT 1 FROM weft.live WHERE state = @ready AND queue = q.id OFFSET 0) l
                 WHERE :state IS NULL OR :state = @ready
                 LIMIT :most + 1) x) <= :most
   AND (SELECT count(*)
          FROM (SELECT 1
                  FROM (SELECT id FROM weft.name WHERE sort = @WEFT_NAME_LANE AND namespace = :namespace LIMIT :most) n
                 CROSS JOIN LATERAL ((SELECT 1 FROM weft.live
                                       WHERE state = @running AND lane = n.id
                                         AND (:state IS NULL OR :state = @running) OFFSET 0)
                                      UNION ALL
                                     (SELECT 1 FROM weft.live
                                       WHERE state BETWEEN @delayed AND @delayed AND lane = n.id
                                         AND (:state IS NULL OR :state = @delayed) OFFSET 0)
                                      UNION ALL
                                     (SELECT 1 FROM weft.suspension
                                       WHERE lane = n.id AND (:state IS NULL OR :state = @suspended) OFFSET 0)) l
                 LIMIT :most + 1) x) <= :most
   AND (SELECT count(*)
          FROM (SELECT 1
                  FROM (SELECT id FROM weft.flow WHERE namespace = :namespace AND finished IS NULL
                         LIMIT :most) f
                 CROSS JOIN LATERAL (SELECT 1 FROM weft.live WHERE flow = f.id AND state = @blocked OFFSET 0) l
                 WHERE :state IS NULL OR :state = @blocked
                 LIMIT :most + 1) x) <= :most;

-- name: unspanned ()
-- returns: since bigint?, until bigint?
SELECT since, until FROM weft.unspanned;

-- name: attempts (id uuid, epoch int, replay smallint, limit int)
-- returns: epoch int, replay smallint, attempt int, ended smallint, held bool, worker int?, claimed bigint?, ended_at bigint, run_at bigint?, error_class text?, error_message text?
-- The leases that ended, and the outcome when it ended one: the first ones behind (:epoch, :replay).
(SELECT a.epoch, a.replay, a.attempt, a.ended, a.held, a.worker, a.claimed, a.ended_at, a.run_at,
        a.error_class, a.error_message
   FROM weft.attempt a WHERE a.id = :id AND (a.epoch, a.replay) > (:epoch, :replay)
  ORDER BY a.id, a.epoch, a.replay LIMIT :limit)
UNION ALL
SELECT o.epoch, (o.replays + 1)::smallint, o.attempt, o.ended, o.held, o.worker, o.claimed,
       o.finished, NULL, o.error_class, o.error_message
  FROM weft.outcome o
 WHERE o.id = :id AND o.held AND (o.epoch, o.replays + 1) > (:epoch, :replay::int)
 ORDER BY 1, 2 LIMIT :limit;

-- name: result (id uuid)
-- returns: namespace int, state smallint, content_type text?, result bytea?
SELECT q.namespace, o.state, o.content_type, o.result
  FROM (SELECT * FROM weft.outcome WHERE id = :id OFFSET 0) o JOIN weft.queue q ON q.id = o.queue;

-- name: payload (id uuid)
-- returns: namespace int, content_type text?, payload bytea?
SELECT q.namespace, e.content_type, e.payload
  FROM weft.execution e JOIN weft.queue q ON q.id = e.queue WHERE e.id = :id;

-- name: ended (id uuid[])
-- returns: id uuid
-- Of executions and flows, the ones that have ended or do not exist.
SELECT w.id FROM unnest(:id) AS w(id)
 WHERE NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.id = w.id OFFSET 0)
   AND NOT EXISTS (SELECT 1 FROM (SELECT finished FROM weft.flow WHERE id = w.id OFFSET 0) f
                    WHERE f.finished IS NULL);

-- name: counts (now bigint, namespace int?)
-- returns: namespace int, lane int, state smallint, number bigint
-- Of a namespace, NULL: of all. Reads all of `live`, which is as large as the work in hand. State 0: draining,
-- as lane_running counts; state -1: escalated. The queues are probed by their key: with very many of them and without
-- statistics the planner would compare each with each.
SELECT q.namespace, q.lane, c.state, sum(c.number)::bigint
  FROM (SELECT queue, state, count(*) AS number FROM weft.live GROUP BY queue, state) c
 CROSS JOIN LATERAL (SELECT namespace, lane FROM weft.queue WHERE id = c.queue OFFSET 0) q
 WHERE :namespace IS NULL OR q.namespace = :namespace
 GROUP BY q.namespace, q.lane, c.state
UNION ALL
SELECT q.namespace, d.lane, 0::smallint, count(*)
  FROM weft.draining d JOIN weft.queue q ON q.id = d.queue
 WHERE (:namespace IS NULL OR q.namespace = :namespace) AND d.until > :now
 GROUP BY q.namespace, d.lane
UNION ALL
SELECT s.namespace, l.lane, (-1)::smallint, count(*)
  FROM weft.suspension s
 CROSS JOIN LATERAL (SELECT lane FROM weft.live WHERE id = s.id AND state = @suspended OFFSET 0) l
 WHERE s.escalated IS NOT NULL AND (:namespace IS NULL OR s.namespace = :namespace)
 GROUP BY s.namespace, l.lane;
