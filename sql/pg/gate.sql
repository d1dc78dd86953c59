-- Gates: see 0027-gates and src/engine/limit/admit.c. The row of a gate is locked by its admissions alone, in the
-- order of names, and by nothing that holds other locks. What it protects is read by later statements.
--
-- `state BETWEEN 4 AND 4` says the same as `state = 4`, but no planner takes it for the condition of a partial index
-- of all running rows: only live_gate fits.

-- name: gate_add (name text[])
INSERT INTO weft.gate (name) SELECT DISTINCT i.name FROM unnest(:name) AS i(name) ORDER BY 1 ON CONFLICT DO NOTHING;

-- name: gate_lock (name text[])
-- returns: name text
-- One by one in the order of the list, which is sorted. A gate that is not returned has no row.
SELECT g.name FROM unnest(:name) AS i(name)
 CROSS JOIN LATERAL (SELECT * FROM weft.gate x WHERE x.name = i.name FOR UPDATE) g;

-- fragment: gate_limits (i)
-- The settings of a gate, or of its class.
LEFT JOIN LATERAL (SELECT * FROM weft.gate_setting x
                    WHERE x.namespace = @i.namespace AND x.name IN (@i.own, @i.class)
                    ORDER BY length(x.name) DESC LIMIT 1) s ON true

-- fragment: window_span (s)
-- A little more than the span, for the clocks of replicas: see src/core/limit.h.
(@s.window_us + @s.window_us / @WEFT_WINDOW_SLACK)

-- fragment: gate_most (s)
-- No limit looks at more of its executions than this.
greatest(@s.max_running, @s.window_limit, @s.rate_limit, @s.rate_burst) + 1

-- name: gate_look (now bigint, name text[], namespace int[], own text[], class text[])
-- returns: name text, max_running bigint, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint, full_ns bigint?, next bigint?, ready bigint, running bigint, started bigint, oldest bigint?, held bool
-- What the limits of a gate have to know. Executions are counted by the index live_gate, as far as a limit can tell
-- them apart; a lease that drains counts as running, see draining.sql. Starts within the span of a window are the starts of
-- executions that run, and of leases that have ended, which leave a row (gate_ended, live_end): one snapshot
-- sees an execution as the one or the other.
SELECT i.name, coalesce(s.max_running, 0), coalesce(s.window_limit, 0), coalesce(s.window_us, 0),
       coalesce(s.rate_limit, 0), coalesce(s.rate_us, 0), coalesce(s.rate_burst, 0), g.full_ns, g.next,
       (SELECT count(*) FROM (SELECT 1 FROM weft.live l WHERE l.gate = i.name AND l.state BETWEEN @ready AND @ready
                               LIMIT @{gate_most s}) x),
       (SELECT count(*) FROM (SELECT 1 FROM weft.live l WHERE l.gate = i.name AND l.state BETWEEN @running AND @running
                               LIMIT @{gate_most s}) x)
       + (SELECT count(*) FROM weft.draining d WHERE d.gate = i.name AND d.until + 0 > :now),
       coalesce(w.started, 0) + coalesce(r.started, 0), least(w.oldest, r.oldest),
       EXISTS (SELECT 1 FROM weft.live l WHERE l.gate = i.name AND l.state = @held OFFSET 0)
  FROM unnest(:name, :namespace, :own, :class) AS i(name, namespace, own, class)
 @{gate_limits i}
  LEFT JOIN LATERAL (SELECT x.full_ns, x.next FROM weft.gate x WHERE x.name = i.name OFFSET 0) g ON true
  LEFT JOIN LATERAL (SELECT sum(x.count)::bigint AS started, min(x.at) AS oldest FROM weft.gate_start x
                      WHERE s.window_limit > 0 AND x.name = i.name AND x.at > :now - @{window_span s}) w ON true
  LEFT JOIN LATERAL (SELECT count(*) AS started, min(x.claimed) AS oldest FROM weft.live x
                      WHERE s.window_limit > 0 AND x.gate = i.name AND x.state BETWEEN @running AND @running
                        AND x.claimed > :now - @{window_span s}) r ON true;

-- name: gate_admit (name text[], most int[], counted bool[])
-- returns: name text, queue int, priority smallint, ord bigint
-- moves: held ADMIT ready
-- The first of the held executions of locked gates. A row that another transaction has locked (a cancel) is skipped.
-- counted: the end of their leases records their start.
WITH picked AS MATERIALIZED (
    SELECT l.id, w.counted
      FROM unnest(:name, :most, :counted) AS w(name, most, counted)
     CROSS JOIN LATERAL (SELECT h.id FROM weft.live h
                          WHERE h.gate = w.name AND h.state = @held
                          ORDER BY h.priority DESC, h.ord, h.id LIMIT w.most
                            FOR UPDATE SKIP LOCKED) l
)
UPDATE weft.live l
   SET state = @ready, has = (l.has & ~@WEFT_HAS_START) | CASE WHEN p.counted THEN @WEFT_HAS_START ELSE 0 END
  FROM picked p WHERE l.id BETWEEN p.id AND p.id
RETURNING l.gate, l.queue, l.priority, l.ord;

-- name: gate_keep (name text[], full_ns bigint?[], next bigint?[], until bigint[])
-- What a locked gate remembers. Starts up to `until` are outside of its window.
WITH kept AS MATERIALIZED (
    SELECT * FROM unnest(:name, :full_ns, :next, :until) AS i(name, full_ns, next, until)
), old AS (
    DELETE FROM weft.gate_start s USING kept k WHERE s.name = k.name AND s.at <= k.until
)
UPDATE weft.gate g SET full_ns = k.full_ns, next = k.next FROM kept k WHERE g.name = k.name;

-- name: gates_due (now bigint, after text, most int)
-- returns: name text, due bool, open bool
-- due: gates whose time has come. Behind them the gates after :after that have living executions, found by hopping
-- from one to the next in the index; open: it has held executions, does not wait for a time, and is not full. Locks
-- nothing.
WITH RECURSIVE hop AS (
    (SELECT l.gate FROM weft.live l WHERE l.gate > :after AND l.gate IS NOT NULL ORDER BY l.gate LIMIT 1)
    UNION ALL
    SELECT (SELECT l.gate FROM weft.live l
             WHERE l.gate > hop.gate AND l.gate IS NOT NULL ORDER BY l.gate LIMIT 1)
      FROM hop WHERE hop.gate IS NOT NULL
)
(SELECT g.name, true, true FROM weft.gate g WHERE g.next IS NOT NULL AND g.next <= :now ORDER BY g.next LIMIT :most)
UNION ALL
(SELECT i.gate, false,
        EXISTS (SELECT 1 FROM weft.live l WHERE l.gate = i.gate AND l.state = @held OFFSET 0)
        AND (SELECT g.next FROM weft.gate g WHERE g.name = i.gate) IS NULL
        AND (coalesce(s.max_running, 0) = 0
             OR (SELECT count(*) FROM (SELECT 1 FROM weft.live l
                                        WHERE l.gate = i.gate AND l.state BETWEEN @ready AND @ready
                                        LIMIT s.max_running) x)
                + (SELECT count(*) FROM (SELECT 1 FROM weft.live l
                                          WHERE l.gate = i.gate AND l.state BETWEEN @running AND @running
                                          LIMIT s.max_running) x) < s.max_running)
   FROM (SELECT h.gate, split_part(h.gate, '/', 1)::int AS namespace, h.own, split_part(h.own, ':', 1) AS class
           FROM (SELECT hop.gate, substr(hop.gate, strpos(hop.gate, '/') + 1) AS own
                   FROM hop WHERE hop.gate IS NOT NULL LIMIT :most) h OFFSET 0) i
  @{gate_limits i});

-- name: gate_next ()
-- returns: next bigint?
SELECT min(next) FROM weft.gate WHERE next IS NOT NULL;

-- name: gates_forget (now bigint, after text, most int)
-- returns: name text, gone bool
-- Removes rows of gates behind `after` that have nothing to remember and no living execution, and starts that are
-- outside of any window, which is left behind when a window is taken away.
WITH seen AS MATERIALIZED (
    SELECT g.name,
           g.next IS NULL AND coalesce(g.full_ns, 0) <= :now * 1000
           AND NOT EXISTS (SELECT 1 FROM weft.live l WHERE l.gate = g.name OFFSET 0)
           AND NOT EXISTS (SELECT 1 FROM weft.gate_start s WHERE s.name = g.name OFFSET 0) AS unused
      FROM weft.gate g WHERE g.name > :after ORDER BY g.name LIMIT :most FOR UPDATE SKIP LOCKED
), old AS (
    DELETE FROM weft.gate_start s USING seen g WHERE s.name = g.name AND s.at < :now - @WEFT_WINDOW_LONGEST_S * 1000000::bigint
), gone AS (
    DELETE FROM weft.gate g USING seen s WHERE g.name = s.name AND s.unused
)
SELECT name, unused FROM seen;

-- name: gate_put (namespace int, name text, max_running bigint, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint, oldest int)
-- The first setting is the first use of gates: see 0027.
WITH raised AS (
    UPDATE weft.schema SET oldest_binary = :oldest WHERE oldest_binary < :oldest
)
INSERT INTO weft.gate_setting (namespace, name, max_running, window_limit, window_us, rate_limit, rate_us, rate_burst)
VALUES (:namespace, :name, :max_running, :window_limit, :window_us, :rate_limit, :rate_us, :rate_burst)
    ON CONFLICT (namespace, name) DO UPDATE
   SET max_running = excluded.max_running, window_limit = excluded.window_limit, window_us = excluded.window_us,
       rate_limit = excluded.rate_limit, rate_us = excluded.rate_us, rate_burst = excluded.rate_burst;

-- name: gate_count_starts (name text[])
-- A gate has got a window: the starts of what is ready or runs count from now on.
UPDATE weft.live l SET has = l.has | @WEFT_HAS_START
  FROM (SELECT x.id FROM unnest(:name) AS i(name)
         CROSS JOIN LATERAL (SELECT o.id FROM weft.live o
                              WHERE o.gate = i.name AND o.state BETWEEN @ready AND @running
                                AND o.state IN (@ready, @running) AND o.has & @WEFT_HAS_START = 0 OFFSET 0) x) m
 WHERE l.id BETWEEN m.id AND m.id;

-- name: gate_ended (name text[], at bigint[])
-- Leases have ended whose starts count. live_end does the same for the ends of executions.
INSERT INTO weft.gate_start (name, at, count)
SELECT name, at, count(*) FROM unnest(:name, :at) AS i(name, at) GROUP BY name, at;

-- name: gate_remove (namespace int, name text)
-- returns: max_running bigint, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint
DELETE FROM weft.gate_setting WHERE namespace = :namespace AND name = :name
RETURNING max_running, window_limit, window_us, rate_limit, rate_us, rate_burst;

-- name: gate_settings (namespace int, prefix text, last text, after text, most int)
-- returns: name text, max_running bigint, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint
-- Settings whose names lie from the prefix to `last`, behind `after`.
SELECT name, max_running, window_limit, window_us, rate_limit, rate_us, rate_burst
  FROM weft.gate_setting
 WHERE namespace = :namespace AND name >= :prefix AND name < :last AND name > :after
 ORDER BY name LIMIT :most;

-- name: gate_counts (first text[], last text[], most int)
-- returns: first text, running bigint, ready bigint, held bigint, gates bigint, next bigint?
-- The living executions of the gates from first to last: one gate, or the gates of a class, up to `most` gates.
SELECT i.first, coalesce(sum(c.running), 0)::bigint, coalesce(sum(c.ready), 0)::bigint,
       coalesce(sum(c.held), 0)::bigint, count(c.running), min(c.next)
  FROM unnest(:first, :last) AS i(first, last)
  LEFT JOIN LATERAL (
       WITH RECURSIVE hop AS (
           (SELECT l.gate FROM weft.live l WHERE l.gate >= i.first AND l.gate <= i.last AND l.gate IS NOT NULL
             ORDER BY l.gate LIMIT 1)
           UNION ALL
           SELECT (SELECT l.gate FROM weft.live l
                    WHERE l.gate > hop.gate AND l.gate <= i.last AND l.gate IS NOT NULL ORDER BY l.gate LIMIT 1)
             FROM hop WHERE hop.gate IS NOT NULL
       )
       SELECT (SELECT count(*) FROM weft.live l WHERE l.gate = h.gate AND l.state BETWEEN @running AND @running) AS running,
              (SELECT count(*) FROM weft.live l WHERE l.gate = h.gate AND l.state BETWEEN @ready AND @ready) AS ready,
              (SELECT count(*) FROM weft.live l WHERE l.gate = h.gate AND l.state = @held) AS held,
              (SELECT g.next FROM weft.gate g WHERE g.name = h.gate) AS next
         FROM (SELECT gate FROM hop WHERE gate IS NOT NULL LIMIT :most) h) c ON true
 GROUP BY i.first;

-- name: gates_of_class (first text, last text, after text, most int)
-- returns: name text
-- The gates from first to last that have living executions, behind `after`.
WITH RECURSIVE hop AS (
    (SELECT l.gate FROM weft.live l
      WHERE l.gate > :after AND l.gate >= :first AND l.gate <= :last AND l.gate IS NOT NULL ORDER BY l.gate LIMIT 1)
    UNION ALL
    SELECT (SELECT l.gate FROM weft.live l
             WHERE l.gate > hop.gate AND l.gate <= :last AND l.gate IS NOT NULL ORDER BY l.gate LIMIT 1)
      FROM hop WHERE hop.gate IS NOT NULL
)
SELECT gate FROM hop WHERE gate IS NOT NULL LIMIT :most;
