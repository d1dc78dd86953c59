-- The twins of sql/pg/read.sql.

-- name: describe (id uuid[])
-- returns: id uuid?, created bigint, queue int, content_type text?, tags text?, key text?, state smallint, priority smallint, attempt int, epoch int, lost smallint, replays smallint, worker int?, started bigint?, claimed bigint?, deadline bigint?, due bigint?, finished bigint?, ended smallint?, by text?, reason text?, error_class text?, error_message text?, percent smallint?, note text?, flow uuid?, node text?, policy int, forgiven int, result_size bigint?, suspended bigint?, escalated bigint?, gate text?
SELECT @{execution_columns s}
  FROM snapshot s
 WHERE s.id = :id AND NOT EXISTS (SELECT 1 FROM flow f WHERE f.id = s.flow AND f.state < 0);

-- name: list (source smallint, namespace int, lane int?, kind text?, tenant int?, state smallint?, tag text?, flow uuid?, worker int?, error_class text?, created_since bigint?, created_until bigint?, finished_since bigint?, finished_until bigint?, suffix text?, ended bool?, escalated bool, after uuid, above uuid, floor uuid, scan int, limit int)
-- returns: id uuid?, created bigint, queue int, content_type text?, tags text?, key text?, state smallint, priority smallint, attempt int, epoch int, lost smallint, replays smallint, worker int?, started bigint?, claimed bigint?, deadline bigint?, due bigint?, finished bigint?, ended smallint?, by text?, reason text?, error_class text?, error_message text?, percent smallint?, note text?, flow uuid?, node text?, policy int, forgiven int, result_size bigint?, suspended bigint?, escalated bigint?, gate text?, last uuid?, scanned bigint, bound uuid?
-- source: see the twin. There is one row without an id when nothing fits. Members of a flow are walked by
-- number, which within a flow is the order of ids; an id of :after or :floor that is not there stands for
-- the next one after it, and a floor of zeros is none.
WITH start(num) AS MATERIALIZED (
    SELECT coalesce((SELECT num FROM execution WHERE :source > 2 AND id >= :after ORDER BY id LIMIT 1),
                    9223372036854775807)
), stop(num) AS MATERIALIZED (
    SELECT CASE WHEN :source <= 2 OR :floor = zeroblob(16) THEN -1
                ELSE coalesce((SELECT num FROM execution WHERE id >= :floor ORDER BY id LIMIT 1),
                              9223372036854775807) END
), near AS MATERIALIZED (
    SELECT x.last, x.first,
           row_number() OVER (ORDER BY x.last DESC) > :scan
           OR coalesce(sum(CASE WHEN x.last < :after THEN x.count ELSE 0 END)
                       OVER (ORDER BY x.last DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
                       0) >= :scan AS beyond
      FROM (SELECT s.last, s.first, s.count FROM span s
             WHERE :source = 0 AND s.namespace = :namespace AND s.last < :above AND s.last >= :floor
               AND s.first < :after
             ORDER BY s.last DESC LIMIT :scan + 1) x
), bound AS MATERIALIZED (
    SELECT last FROM near WHERE beyond ORDER BY last DESC LIMIT 1
), own_flow AS MATERIALIZED (
    SELECT num FROM flow WHERE id = :flow AND namespace = :namespace
), page AS MATERIALIZED (
    SELECT * FROM (SELECT DISTINCT e.num, e.id
                     FROM near n
                    CROSS JOIN execution e ON e.id BETWEEN n.first AND n.last
                    WHERE NOT n.beyond AND e.id < :after AND e.id >= :floor
                      AND e.id > coalesce((SELECT last FROM bound), x'')
                      AND EXISTS (SELECT 1 FROM queue q WHERE q.id = e.queue AND q.namespace = :namespace)
                    ORDER BY e.id DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (SELECT e.num, e.id
                     FROM (SELECT l.num
                             FROM queue q INDEXED BY sqlite_autoindex_queue_1 CROSS JOIN live l ON l.queue = q.id
                            WHERE :source = 1 AND q.namespace = :namespace AND l.state = @ready
                              AND (:state IS NULL OR :state = @ready)
                            UNION ALL
                           SELECT l.num
                             FROM name n CROSS JOIN live l ON l.lane = n.id
                            WHERE :source = 1 AND n.sort = @WEFT_NAME_LANE AND n.namespace = :namespace
                              AND l.state = @running AND (:state IS NULL OR :state = @running)
                            UNION ALL
                           SELECT l.num
                             FROM name n CROSS JOIN live l ON l.lane = n.id
                            WHERE :source = 1 AND n.sort = @WEFT_NAME_LANE AND n.namespace = :namespace
                              AND l.state = @delayed AND (:state IS NULL OR :state = @delayed)
                            UNION ALL
                           SELECT e.num
                             FROM name n CROSS JOIN suspension s ON s.lane = n.id CROSS JOIN execution e ON e.id = s.id
                            WHERE :source = 1 AND n.sort = @WEFT_NAME_LANE AND n.namespace = :namespace
                              AND (:state IS NULL OR :state = @suspended)
                            UNION ALL
                           SELECT l.num
                             FROM flow f CROSS JOIN live l ON l.flow = f.num
                            WHERE :source = 1 AND f.namespace = :namespace AND f.finished IS NULL
                              AND l.state = @blocked AND (:state IS NULL OR :state = @blocked)) w
                    CROSS JOIN execution e ON e.num = w.num
                    WHERE e.id < :after AND e.id >= :floor
                    ORDER BY e.id DESC LIMIT :scan)
    UNION ALL
    SELECT * FROM (SELECT num, id FROM execution
                    WHERE :source = 2 AND id < :after AND id >= :floor
                    ORDER BY id DESC LIMIT :scan)
    UNION ALL
    SELECT m.num, e.id
      FROM (SELECT num FROM node
             WHERE :source = 3 AND flow = (SELECT num FROM own_flow)
               AND num < (SELECT num FROM start) AND num >= (SELECT num FROM stop)
             ORDER BY num DESC LIMIT :scan) m
     CROSS JOIN execution e ON e.num = m.num
    UNION ALL
    SELECT m.num, e.id
      FROM (SELECT num FROM live
             WHERE :source = 4 AND flow = (SELECT num FROM own_flow)
               AND num < (SELECT num FROM start) AND num >= (SELECT num FROM stop)
             ORDER BY num DESC LIMIT :scan) m
     CROSS JOIN execution e ON e.num = m.num
    UNION ALL
    SELECT e.num, e.id
      FROM (SELECT id FROM suspension
             WHERE :source = 5 AND escalated IS NOT NULL AND namespace = :namespace AND id < :after AND id >= :floor
             ORDER BY id DESC LIMIT :scan) w
     CROSS JOIN execution e ON e.id = w.id
), fit AS (
    SELECT s.*
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
       AND (:ended IS NULL OR :ended = (s.finished IS NOT NULL))
       AND (NOT :escalated OR s.escalated IS NOT NULL)
       AND NOT EXISTS (SELECT 1 FROM flow f WHERE f.id = s.flow AND f.state < 0)
     ORDER BY s.id DESC LIMIT :limit
)
SELECT @{execution_columns s},
       (SELECT id FROM page ORDER BY id LIMIT 1), (SELECT count(*) FROM page),
       (SELECT last FROM bound)
  FROM (SELECT 1) one LEFT JOIN fit s ON true
 ORDER BY s.id DESC;

-- name: list_living (namespace int, state smallint?, most int)
-- returns: few bool
SELECT (SELECT count(*) FROM (SELECT 1 FROM queue WHERE namespace = :namespace LIMIT :most + 1)) <= :most
   AND (SELECT count(*) FROM (SELECT 1 FROM name WHERE sort = @WEFT_NAME_LANE AND namespace = :namespace
                               LIMIT :most + 1)) <= :most
   AND (SELECT count(*) FROM (SELECT 1 FROM flow WHERE namespace = :namespace AND finished IS NULL
                               LIMIT :most + 1)) <= :most
   AND (SELECT count(*) FROM (SELECT 1 FROM queue q INDEXED BY sqlite_autoindex_queue_1 CROSS JOIN live l ON l.queue = q.id
                               WHERE q.namespace = :namespace AND l.state = @ready
                                 AND (:state IS NULL OR :state = @ready)
                               LIMIT :most + 1)) <= :most
   AND (SELECT count(*) FROM (SELECT 1 FROM name n CROSS JOIN live l ON l.lane = n.id
                               WHERE n.sort = @WEFT_NAME_LANE AND n.namespace = :namespace AND l.state = @running
                                 AND (:state IS NULL OR :state = @running)
                               LIMIT :most + 1)) <= :most
   AND (SELECT count(*) FROM (SELECT 1 FROM name n CROSS JOIN live l ON l.lane = n.id
                               WHERE n.sort = @WEFT_NAME_LANE AND n.namespace = :namespace AND l.state = @delayed
                                 AND (:state IS NULL OR :state = @delayed)
                               LIMIT :most + 1)) <= :most
   AND (SELECT count(*) FROM (SELECT 1 FROM name n CROSS JOIN suspension s ON s.lane = n.id
                               WHERE n.sort = @WEFT_NAME_LANE AND n.namespace = :namespace
                                 AND (:state IS NULL OR :state = @suspended)
                               LIMIT :most + 1)) <= :most
   AND (SELECT count(*) FROM (SELECT 1 FROM flow f CROSS JOIN live l ON l.flow = f.num
                               WHERE f.namespace = :namespace AND f.finished IS NULL
                                 AND l.state = @blocked AND (:state IS NULL OR :state = @blocked)
                               LIMIT :most + 1)) <= :most;

-- name: unspanned ()
-- returns: since bigint?, until bigint?
-- A row of NULLs while there is one namespace: no row need have a span then (0019-one-namespace).
SELECT NULL, NULL WHERE NOT @{several_namespaces}
UNION ALL
SELECT since, until FROM unspanned
 WHERE @{several_namespaces};

-- name: attempts (id uuid, epoch int, replay smallint, limit int)
-- returns: epoch int, replay smallint, attempt int, ended smallint, held bool, worker int?, claimed bigint?, ended_at bigint, run_at bigint?, error_class text?, error_message text?
SELECT epoch, replay, attempt, ended, held, worker, claimed, ended_at, run_at, error_class,
       error_message
  FROM attempt WHERE id = :id AND (epoch, replay) > (:epoch, :replay)
UNION ALL
SELECT epoch, replays + 1, attempt, ended, held, worker, claimed, finished, NULL, error_class,
       error_message
  FROM outcome
 WHERE num = (SELECT num FROM execution WHERE id = :id) AND held
   AND (epoch, replays + 1) > (:epoch, :replay)
 ORDER BY 1, 2 LIMIT :limit;

-- name: result (id uuid)
-- returns: namespace int, state smallint, content_type text?, result bytea?
SELECT q.namespace, o.state, o.content_type, o.result
  FROM outcome o JOIN queue q ON q.id = o.queue
 WHERE o.num = (SELECT num FROM execution WHERE id = :id);

-- name: payload (id uuid)
-- returns: namespace int, content_type text?, payload bytea?
SELECT q.namespace, e.content_type, e.payload
  FROM execution e JOIN queue q ON q.id = e.queue WHERE e.id = :id;

-- name: ended (id uuid[])
-- returns: id uuid
SELECT :id
 WHERE NOT EXISTS (SELECT 1 FROM live WHERE num = (SELECT num FROM execution WHERE id = :id))
   AND NOT EXISTS (SELECT 1 FROM flow WHERE id = :id AND finished IS NULL);

-- name: counts (now bigint, namespace int?)
-- returns: namespace int, lane int, state smallint, number bigint
SELECT q.namespace, q.lane, c.state, sum(c.number)
  FROM (SELECT queue, state, count(*) AS number FROM live GROUP BY queue, state) c
  JOIN queue q ON q.id = c.queue
 WHERE :namespace IS NULL OR q.namespace = :namespace
 GROUP BY q.namespace, q.lane, c.state
UNION ALL
SELECT q.namespace, d.lane, 0, count(*)
  FROM draining d JOIN queue q ON q.id = d.queue
 WHERE (:namespace IS NULL OR q.namespace = :namespace) AND d.until > :now
 GROUP BY q.namespace, d.lane
UNION ALL
SELECT s.namespace, l.lane, -1, count(*)
  FROM suspension s CROSS JOIN execution e ON e.id = s.id CROSS JOIN live l ON l.num = e.num
 WHERE s.escalated IS NOT NULL AND (:namespace IS NULL OR s.namespace = :namespace) AND +l.state = @suspended
 GROUP BY s.namespace, l.lane;
