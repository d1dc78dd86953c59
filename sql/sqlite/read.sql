-- The twins of sql/pg/read.sql.

-- name: describe (id uuid[])
-- returns: id created queue content_type tags key state priority attempt epoch lost replays worker started claimed deadline due finished ended by reason error_class error_message percent note flow node policy forgiven
SELECT s.id, s.created, s.queue, s.content_type, s.tags, s.key, s.state, s.priority, s.attempt, s.epoch,
       s.lost, s.replays, s.worker, s.started, s.claimed, s.deadline, s.due, s.finished, s.ended,
       s.by, s.reason, s.error_class, s.error_message, s.percent, s.note, s.flow, s.node, s.policy,
       s.forgiven
  FROM snapshot s
 WHERE s.id = :id AND NOT EXISTS (SELECT 1 FROM flow f WHERE f.id = s.flow AND f.state < 0);

-- name: list (source smallint, namespace int, lane int, kind text, tenant int, state smallint, tag text, flow uuid, worker int, error_class text, created_since bigint, created_until bigint, finished_since bigint, finished_until bigint, suffix text, after uuid, floor uuid, scan int, limit int)
-- returns: id created queue content_type tags key state priority attempt epoch lost replays worker started claimed deadline due finished ended by reason error_class error_message percent note flow node policy forgiven last scanned
-- source: see the twin. There is one row without an id when nothing fits. `place` is what the walk goes
-- by: ids for the first, numbers for the others, which know no ids; an id of :after or :floor that is
-- not there stands for the next one after it. Numbers follow ids but for one millisecond, so a floor of
-- zeros, which is none, is no number either.
WITH start(num) AS MATERIALIZED (
    SELECT coalesce((SELECT num FROM execution WHERE id >= :after ORDER BY id LIMIT 1),
                    9223372036854775807)
), stop(num) AS MATERIALIZED (
    SELECT CASE WHEN :floor = zeroblob(16) THEN -1
                ELSE coalesce((SELECT num FROM execution WHERE id >= :floor ORDER BY id LIMIT 1),
                              9223372036854775807) END
), page AS MATERIALIZED (
    SELECT * FROM (SELECT num, id AS place FROM execution
                    WHERE :source = 0 AND id < coalesce(:after, x'ffffffffffffffffffffffffffffffff')
                      AND id >= :floor
                    ORDER BY id DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (SELECT num, num FROM live
                    WHERE :source = 1 AND num < (SELECT num FROM start)
                      AND num >= (SELECT num FROM stop)
                    ORDER BY num DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (SELECT num, num FROM outcome
                    WHERE :source = 2 AND num < (SELECT num FROM start)
                      AND num >= (SELECT num FROM stop)
                    ORDER BY num DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (SELECT num, num FROM node
                    WHERE :source IN (3, 5) AND flow = (SELECT num FROM flow WHERE id = :flow)
                      AND num < (SELECT num FROM start) AND num >= (SELECT num FROM stop)
                    ORDER BY num DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (SELECT num, num FROM live
                    WHERE :source = 4 AND flow = (SELECT num FROM flow WHERE id = :flow)
                      AND num < (SELECT num FROM start) AND num >= (SELECT num FROM stop)
                    ORDER BY num DESC LIMIT :scan)
), fit AS (
    SELECT s.*, page.place
      FROM page
      JOIN snapshot s ON s.num = page.num
      JOIN queue q ON q.id = s.queue
     WHERE q.namespace = :namespace
       AND (:lane IS NULL OR q.lane = :lane)
       AND (:kind IS NULL OR q.kind = :kind)
       AND (:tenant IS NULL OR q.tenant = :tenant)
       AND (:state IS NULL OR s.state = :state)
       AND (:tag IS NULL OR instr(s.tags, :tag) > 0)
       AND (:flow IS NULL OR s.flow = :flow)
       AND (:worker IS NULL OR s.worker = :worker)
       AND (:error_class IS NULL OR s.error_class = :error_class)
       AND (:created_since IS NULL OR s.created >= :created_since)
       AND (:created_until IS NULL OR s.created < :created_until)
       AND (:finished_since IS NULL OR s.finished >= :finished_since)
       AND (:finished_until IS NULL OR s.finished < :finished_until)
       AND (:suffix IS NULL OR substr(lower(hex(s.id)), -length(:suffix)) = :suffix)
       AND (:source <> 5 OR s.finished IS NOT NULL)
       AND NOT EXISTS (SELECT 1 FROM flow f WHERE f.id = s.flow AND f.state < 0)
     ORDER BY page.place DESC LIMIT :limit
)
SELECT s.id, s.created, s.queue, s.content_type, s.tags, s.key, s.state, s.priority, s.attempt,
       s.epoch, s.lost, s.replays, s.worker, s.started, s.claimed, s.deadline, s.due, s.finished,
       s.ended, s.by, s.reason, s.error_class, s.error_message, s.percent, s.note,
       s.flow, s.node, s.policy, s.forgiven,
       (SELECT e.id FROM page JOIN execution e ON e.num = page.num ORDER BY page.place LIMIT 1),
       (SELECT count(*) FROM page)
  FROM (SELECT 1) one LEFT JOIN fit s ON true
 ORDER BY s.place DESC;

-- name: attempts (id uuid)
-- returns: epoch replay attempt ended held worker claimed ended_at run_at error_class error_message
SELECT epoch, replay, attempt, ended, held, worker, claimed, ended_at, run_at, error_class,
       error_message
  FROM attempt WHERE id = :id
UNION ALL
SELECT epoch, replays + 1, attempt, ended, held, worker, claimed, finished, NULL, error_class,
       error_message
  FROM outcome WHERE num = (SELECT num FROM execution WHERE id = :id) AND held
 ORDER BY 1, 2;

-- name: result (id uuid)
-- returns: namespace state content_type result
SELECT q.namespace, o.state, o.content_type, o.result
  FROM outcome o JOIN queue q ON q.id = o.queue
 WHERE o.num = (SELECT num FROM execution WHERE id = :id);

-- name: payload (id uuid)
-- returns: namespace content_type payload
SELECT q.namespace, e.content_type, e.payload
  FROM execution e JOIN queue q ON q.id = e.queue WHERE e.id = :id;

-- name: counts (now bigint, namespace int)
-- returns: lane state number
SELECT l.lane, l.state, count(*)
  FROM live l JOIN queue q ON q.id = l.queue
 WHERE q.namespace = :namespace
 GROUP BY l.lane, l.state
UNION ALL
SELECT d.lane, 0, count(*)
  FROM draining d JOIN queue q ON q.id = d.queue
 WHERE q.namespace = :namespace AND d.until > :now
 GROUP BY d.lane;
