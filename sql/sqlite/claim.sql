-- The twins of sql/pg/claim.sql. The write lock of the file stands for every lock there.

-- name: queues_ready (after int, most int)
-- returns: queue int
WITH RECURSIVE @{ready_queues}
SELECT queue FROM hop WHERE queue IS NOT NULL;

-- name: lane_walk (place int[], namespace int[], lane text[], after int[], most int)
-- returns: place int, queue int, ready bool
SELECT :place, q.id, EXISTS (SELECT 1 FROM live l WHERE l.queue = q.id AND l.state = @ready)
  FROM queue q
 WHERE q.lane = (SELECT id FROM name WHERE sort = @WEFT_NAME_LANE AND namespace = :namespace AND text = :lane)
   AND q.id > :after
 ORDER BY q.id LIMIT :most;

-- name: queue_heads (queue int[], depth int[])
-- returns: queue int, priority smallint, ord bigint
SELECT queue, priority, ord FROM live
 WHERE queue = :queue AND state = @ready ORDER BY priority DESC, ord, num LIMIT :depth;

-- name: lane_lock (lane int[])
-- returns: lane int, paused bool, max_running int, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint, full_ns bigint?
SELECT id, paused, max_running, window_limit, window_us, rate_limit, rate_us, rate_burst, full_ns
  FROM lane WHERE id = :lane;

-- name: lane_running (now bigint, lane int[], span bigint[])
-- returns: lane int, running bigint, started bigint, oldest bigint?
SELECT :lane, (SELECT count(*) FROM live WHERE lane = :lane AND state = @running)
              + (SELECT count(*) FROM draining WHERE lane = :lane AND until > :now),
       (SELECT coalesce(sum(count), 0) FROM lane_start WHERE :span > 0 AND lane = :lane AND at > :now - :span),
       (SELECT min(at) FROM lane_start WHERE :span > 0 AND lane = :lane AND at > :now - :span);

-- name: lane_charge (lane int[], at bigint[], count bigint[], full_ns bigint?[], until bigint[])
DELETE FROM lane_start WHERE lane = :lane AND at <= :until;
INSERT INTO lane_start (lane, at, count) SELECT :lane, :at, :count WHERE :count > 0
    ON CONFLICT (lane, at) DO UPDATE SET count = lane_start.count + excluded.count;
UPDATE lane SET full_ns = :full_ns WHERE id = :lane AND :full_ns IS NOT NULL;

-- fragment: claim_allowed ()
NOT EXISTS (SELECT 1 FROM lane s
                    WHERE s.id = :lane AND (s.paused OR (s.max_running + s.window_limit + s.rate_limit > 0 AND NOT :counted)))

-- fragment: claim_count ()
-- How many rows of its queue a want takes. The running sum of sizes is a window, which is slow here: it is
-- asked for only when the plain sum is too large. The first want gets a row whatever its size.
CASE WHEN (SELECT total(size) FROM (SELECT size FROM live
                                                WHERE queue = :queue AND state = @ready
                                                ORDER BY priority DESC, ord, num
                                                LIMIT :upto - :skip)) <= :bytes
     THEN :upto - :skip
     ELSE (SELECT max(:want = 0, count(*))
                             FROM (SELECT sum(size) OVER (ORDER BY priority DESC, ord, num) AS sum
                                     FROM (SELECT num, priority, ord, size FROM live
                                            WHERE queue = :queue AND state = @ready
                                            ORDER BY priority DESC, ord, num LIMIT :upto - :skip))
                            WHERE sum <= :bytes)
     END

-- name: claim (now bigint, want int[], queue int[], lane int[], counted bool[], worker int[], lease bigint?[], skip int[], upto int[], bytes bigint[])
-- returns: want int, id uuid, queue int, priority smallint, ord bigint, epoch int, attempt int, due bigint, deadline bigint?, created bigint, content_type text?, tags text?, payload bytea?, size int, has smallint, flow uuid?, attempt_deadline bigint?
-- moves: ready CLAIM running
-- First reads the rows as they will be, then moves the same rows: between the two parts nothing can
-- change. Earlier wants of the call have moved theirs already, so `skip` is only subtracted. The
-- running sum of sizes is a window, which is slow here: it is asked for only when the plain sum is
-- too large. The first want gets a row whatever its size.
SELECT :want, e.id, l.queue, l.priority, l.ord, l.epoch + 1, l.attempt,
       :now + coalesce(:lease, p.lease_us), l.deadline,
       e.created, e.content_type, e.tags, e.payload, l.size, l.has,
       (SELECT id FROM flow WHERE num = l.flow),
       CASE WHEN p.timeout_us > 0 THEN :now + p.timeout_us END
  FROM live l
 CROSS JOIN execution e ON e.num = l.num
 CROSS JOIN policy p ON p.id = l.policy
 WHERE l.queue = :queue AND l.state = @ready
   AND @{claim_allowed}
 ORDER BY l.priority DESC, l.ord, l.num
 LIMIT @{claim_count};
UPDATE live
   SET state = @running, epoch = epoch + 1, worker = :worker, claimed = :now,
       started = coalesce(started, :now),
       due = :now + coalesce(:lease, (SELECT lease_us FROM policy p WHERE p.id = policy)),
       attempt_deadline = (SELECT :now + timeout_us FROM policy p
                            WHERE p.id = policy AND p.timeout_us > 0)
 WHERE num IN (SELECT num FROM live
               WHERE queue = :queue AND state = @ready
               ORDER BY priority DESC, ord, num
               LIMIT @{claim_count})
   AND @{claim_allowed};
