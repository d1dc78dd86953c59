-- Reads. A list looks at a bounded number of rows, newest first, and says how far it came: a page
-- may be short, even empty, while there is more. Filters on living states walk `live`, filters on
-- ended states walk `outcome`, so that neither pays for the other.
-- Members of a flow that is not whole yet, or is being removed, are nowhere to be seen: their ids are
-- given to nobody, so what is asked for by id alone (attempts, results, payloads) need not look.

-- name: describe (id uuid[])
-- returns: id created queue content_type tags key state priority attempt epoch lost replays worker started claimed deadline due finished ended by reason error_class error_message percent note flow node policy forgiven
SELECT s.id, s.created, s.queue, s.content_type, s.tags, s.key, s.state, s.priority, s.attempt, s.epoch,
       s.lost, s.replays, s.worker, s.started, s.claimed, s.deadline, s.due, s.finished, s.ended,
       s.by, s.reason, s.error_class, s.error_message, s.percent, s.note, s.flow, s.node, s.policy,
       s.forgiven
  FROM unnest(:id) AS w(id)
 CROSS JOIN LATERAL (SELECT * FROM weft.snapshot WHERE id = w.id OFFSET 0) s
 WHERE NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id = s.flow AND f.state < 0 OFFSET 0);

-- name: list (source smallint, namespace int, lane int, kind text, tenant int, state smallint, tag text, flow uuid, worker int, error_class text, created_since bigint, created_until bigint, finished_since bigint, finished_until bigint, suffix text, after uuid, floor uuid, scan int, limit int)
-- returns: id created queue content_type tags key state priority attempt epoch lost replays worker started claimed deadline due finished ended by reason error_class error_message percent note flow node policy forgiven last scanned
-- source: 0 execution, 1 live, 2 outcome; of a flow: 3 its members, 4 the living ones, 5 its members,
-- of which those that ended fit. There is one row without an id when nothing fits. See flow.sql for
-- why rows are compared. The walk goes from :after (exclusive) down to :floor (inclusive). The moments
-- `since` are inclusive, `until` exclusive. `flow >= :flow` lets the planner prove the partial index. :suffix is the end of the id, in hexadecimal digits.
WITH page AS MATERIALIZED (
    (SELECT id FROM weft.execution WHERE :source = 0 AND id < :after AND id >= :floor
      ORDER BY id DESC LIMIT :scan)
    UNION ALL
    (SELECT id FROM weft.live WHERE :source = 1 AND id < :after AND id >= :floor
      ORDER BY id DESC LIMIT :scan)
    UNION ALL
    (SELECT id FROM weft.outcome WHERE :source = 2 AND id < :after AND id >= :floor
      ORDER BY id DESC LIMIT :scan)
    UNION ALL
    (SELECT id FROM weft.node
      WHERE :source IN (3, 5) AND (flow, id) < (:flow, :after) AND (flow, id) >= (:flow, :floor)
        AND flow >= :flow AND k >= 0
      ORDER BY flow DESC, id DESC LIMIT :scan)
    UNION ALL
    (SELECT id FROM weft.live
      WHERE :source = 4 AND (flow, id) < (:flow, :after) AND (flow, id) >= (:flow, :floor)
        AND flow >= :flow
      ORDER BY flow DESC, id DESC LIMIT :scan)
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
       AND (:source <> 5 OR s.finished IS NOT NULL)
       AND NOT EXISTS (SELECT 1 FROM weft.flow f WHERE f.id = s.flow AND f.state < 0 OFFSET 0)
     ORDER BY s.id DESC LIMIT :limit
)
SELECT s.id, s.created, s.queue, s.content_type, s.tags, s.key, s.state, s.priority, s.attempt,
       s.epoch, s.lost, s.replays, s.worker, s.started, s.claimed, s.deadline, s.due, s.finished,
       s.ended, s.by, s.reason, s.error_class, s.error_message, s.percent, s.note,
       s.flow, s.node, s.policy, s.forgiven,
       (SELECT id FROM page ORDER BY id LIMIT 1), (SELECT count(*) FROM page)
  FROM (SELECT 1) one LEFT JOIN fit s ON true
 ORDER BY s.id DESC;

-- name: attempts (id uuid)
-- returns: epoch replay attempt ended held worker claimed ended_at run_at error_class error_message
-- The leases that ended, and the outcome when it ended one.
SELECT a.epoch, a.replay, a.attempt, a.ended, a.held, a.worker, a.claimed, a.ended_at, a.run_at,
       a.error_class, a.error_message
  FROM weft.attempt a WHERE a.id = :id
UNION ALL
SELECT o.epoch, (o.replays + 1)::smallint, o.attempt, o.ended, o.held, o.worker, o.claimed,
       o.finished, NULL, o.error_class, o.error_message
  FROM weft.outcome o WHERE o.id = :id AND o.held
 ORDER BY 1, 2;

-- name: result (id uuid)
-- returns: namespace state content_type result
SELECT q.namespace, o.state, o.content_type, o.result
  FROM (SELECT * FROM weft.outcome WHERE id = :id OFFSET 0) o JOIN weft.queue q ON q.id = o.queue;

-- name: payload (id uuid)
-- returns: namespace content_type payload
SELECT q.namespace, e.content_type, e.payload
  FROM weft.execution e JOIN weft.queue q ON q.id = e.queue WHERE e.id = :id;

-- name: counts (now bigint, namespace int)
-- returns: lane state number
-- Reads all of `live`, which is as large as the work in hand. State 0: draining, as lane_running counts.
SELECT l.lane, l.state, count(*)
  FROM weft.live l JOIN weft.queue q ON q.id = l.queue
 WHERE q.namespace = :namespace
 GROUP BY l.lane, l.state
UNION ALL
SELECT d.lane, 0::smallint, count(*)
  FROM weft.draining d JOIN weft.queue q ON q.id = d.queue
 WHERE q.namespace = :namespace AND d.until > :now
 GROUP BY d.lane;
