-- The twins of sql/pg/gate.sql. The write lock of the file stands for the lock of a gate.

-- name: gate_add (name text[])
INSERT INTO gate (name) VALUES (:name) ON CONFLICT DO NOTHING;

-- name: gate_lock (name text[])
-- returns: name text
SELECT name FROM gate WHERE name = :name;

-- fragment: window_span ()
(s.window_us + s.window_us / @WEFT_WINDOW_SLACK)

-- fragment: gate_most ()
(SELECT coalesce(max(max(x.max_running, x.window_limit, x.rate_limit, x.rate_burst)), 0) + 1
   FROM gate_setting x WHERE x.namespace = :namespace AND x.name IN (:own, :class))

-- name: gate_look (now bigint, name text[], namespace int[], own text[], class text[])
-- returns: name text, max_running bigint, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint, full_ns bigint?, next bigint?, ready bigint, running bigint, started bigint, oldest bigint?, held bool
SELECT :name, coalesce(s.max_running, 0), coalesce(s.window_limit, 0), coalesce(s.window_us, 0),
       coalesce(s.rate_limit, 0), coalesce(s.rate_us, 0), coalesce(s.rate_burst, 0), g.full_ns, g.next,
       (SELECT count(*) FROM (SELECT 1 FROM live l WHERE l.gate = :name AND l.state = @ready
                               LIMIT @{gate_most})),
       (SELECT count(*) FROM (SELECT 1 FROM live l WHERE l.gate = :name AND l.state = @running
                               LIMIT @{gate_most}))
       + (SELECT count(*) FROM draining d WHERE d.gate = :name AND d.until > :now),
       CASE WHEN s.window_limit > 0
            THEN (SELECT coalesce(sum(x.count), 0) FROM gate_start x WHERE x.name = :name AND x.at > :now - @{window_span})
               + (SELECT count(*) FROM live x WHERE x.gate = :name AND x.state = @running
                                                AND x.claimed > :now - @{window_span})
            ELSE 0 END,
       CASE WHEN s.window_limit > 0
            THEN (SELECT min(at) FROM (SELECT min(x.at) AS at FROM gate_start x
                                        WHERE x.name = :name AND x.at > :now - @{window_span}
                                       UNION ALL
                                       SELECT min(x.claimed) FROM live x
                                        WHERE x.gate = :name AND x.state = @running
                                          AND x.claimed > :now - @{window_span})) END,
       EXISTS (SELECT 1 FROM live l WHERE l.gate = :name AND l.state = @held)
  FROM (SELECT 1) one
  LEFT JOIN gate_setting s ON s.namespace = :namespace
        AND s.name = (SELECT x.name FROM gate_setting x
                       WHERE x.namespace = :namespace AND x.name IN (:own, :class)
                       ORDER BY length(x.name) DESC LIMIT 1)
  LEFT JOIN gate g ON g.name = :name;

-- name: gate_admit (name text[], most int[], counted bool[])
-- returns: name text, queue int, priority smallint, ord bigint
-- moves: held ADMIT ready
UPDATE live
   SET state = @ready, has = (has & ~@WEFT_HAS_START) | CASE WHEN :counted THEN @WEFT_HAS_START ELSE 0 END
 WHERE num IN (SELECT h.num FROM live h
                WHERE h.gate = :name AND h.state = @held
                ORDER BY h.priority DESC, h.ord, h.num LIMIT :most)
RETURNING gate, queue, priority, ord;

-- name: gate_keep (name text[], full_ns bigint?[], next bigint?[], until bigint[])
DELETE FROM gate_start WHERE name = :name AND at <= :until;
UPDATE gate SET full_ns = :full_ns, next = :next WHERE name = :name;

-- name: gates_due (now bigint, after text, most int)
-- returns: name text, due bool, open bool
WITH RECURSIVE hop(gate) AS (
    SELECT (SELECT min(l.gate) FROM live l WHERE l.gate > :after AND l.gate IS NOT NULL)
    UNION ALL
    SELECT (SELECT min(l.gate) FROM live l WHERE l.gate > hop.gate AND l.gate IS NOT NULL)
      FROM hop WHERE hop.gate IS NOT NULL LIMIT :most + 1
), named(gate, namespace, own) AS (
    SELECT gate, CAST(substr(gate, 1, instr(gate, '/') - 1) AS INTEGER), substr(gate, instr(gate, '/') + 1)
      FROM hop WHERE gate IS NOT NULL LIMIT :most
), line(gate, most) AS (
    SELECT i.gate, (SELECT s.max_running FROM gate_setting s
                     WHERE s.namespace = i.namespace
                       AND s.name IN (i.own, substr(i.own, 1, instr(i.own || ':', ':') - 1))
                     ORDER BY length(s.name) DESC LIMIT 1)
      FROM named i
)
SELECT name, 1, 1 FROM (SELECT g.name FROM gate g WHERE g.next IS NOT NULL AND g.next <= :now ORDER BY g.next LIMIT :most)
UNION ALL
SELECT i.gate, 0,
       EXISTS (SELECT 1 FROM live l WHERE l.gate = i.gate AND l.state = @held)
       AND (SELECT g.next FROM gate g WHERE g.name = i.gate) IS NULL
       AND (coalesce(i.most, 0) = 0
            OR (SELECT count(*) FROM live l WHERE l.gate = i.gate AND l.state = @ready)
             + (SELECT count(*) FROM live l WHERE l.gate = i.gate AND l.state = @running) < i.most)
  FROM line i;

-- name: gate_next ()
-- returns: next bigint?
SELECT min(next) FROM gate WHERE next IS NOT NULL;

-- name: gates_forget (now bigint, after text, most int)
-- returns: name text, gone bool
SELECT g.name,
       g.next IS NULL AND coalesce(g.full_ns, 0) <= :now * 1000
       AND NOT EXISTS (SELECT 1 FROM live l WHERE l.gate = g.name)
       AND NOT EXISTS (SELECT 1 FROM gate_start s WHERE s.name = g.name)
  FROM gate g WHERE g.name > :after ORDER BY g.name LIMIT :most;
DELETE FROM gate
 WHERE name IN (SELECT g.name FROM gate g WHERE g.name > :after ORDER BY g.name LIMIT :most)
   AND next IS NULL AND coalesce(full_ns, 0) <= :now * 1000
   AND NOT EXISTS (SELECT 1 FROM live l WHERE l.gate = gate.name)
   AND NOT EXISTS (SELECT 1 FROM gate_start s WHERE s.name = gate.name);
DELETE FROM gate_start
 WHERE at < :now - @WEFT_WINDOW_LONGEST_S * 1000000
   AND name IN (SELECT g.name FROM gate g WHERE g.name > :after ORDER BY g.name LIMIT :most);

-- name: gate_put (namespace int, name text, max_running bigint, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint, oldest int)
UPDATE schema SET oldest_binary = :oldest WHERE oldest_binary < :oldest;
INSERT INTO gate_setting (namespace, name, max_running, window_limit, window_us, rate_limit, rate_us, rate_burst)
VALUES (:namespace, :name, :max_running, :window_limit, :window_us, :rate_limit, :rate_us, :rate_burst)
    ON CONFLICT (namespace, name) DO UPDATE
   SET max_running = excluded.max_running, window_limit = excluded.window_limit, window_us = excluded.window_us,
       rate_limit = excluded.rate_limit, rate_us = excluded.rate_us, rate_burst = excluded.rate_burst;

-- name: gate_count_starts (name text[])
UPDATE live SET has = has | @WEFT_HAS_START
 WHERE gate = :name AND state IN (@ready, @running) AND has & @WEFT_HAS_START = 0;

-- name: gate_ended (name text[], at bigint[])
INSERT INTO gate_start (name, at, count) VALUES (:name, :at, 1);

-- name: gate_remove (namespace int, name text)
-- returns: max_running bigint, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint
DELETE FROM gate_setting WHERE namespace = :namespace AND name = :name
RETURNING max_running, window_limit, window_us, rate_limit, rate_us, rate_burst;

-- name: gate_settings (namespace int, prefix text, last text, after text, most int)
-- returns: name text, max_running bigint, window_limit bigint, window_us bigint, rate_limit bigint, rate_us bigint, rate_burst bigint
SELECT name, max_running, window_limit, window_us, rate_limit, rate_us, rate_burst
  FROM gate_setting
 WHERE namespace = :namespace AND name >= :prefix AND name < :last AND name > :after
 ORDER BY name LIMIT :most;

-- name: gate_counts (first text[], last text[], most int)
-- returns: first text, running bigint, ready bigint, held bigint, gates bigint, next bigint?
WITH RECURSIVE hop(gate) AS (
    SELECT (SELECT min(l.gate) FROM live l WHERE l.gate >= :first AND l.gate <= :last AND l.gate IS NOT NULL)
    UNION ALL
    SELECT (SELECT min(l.gate) FROM live l WHERE l.gate > hop.gate AND l.gate <= :last AND l.gate IS NOT NULL)
      FROM hop WHERE hop.gate IS NOT NULL LIMIT :most + 1
)
SELECT :first, coalesce(sum((SELECT count(*) FROM live l WHERE l.gate = h.gate AND l.state = @running)), 0),
       coalesce(sum((SELECT count(*) FROM live l WHERE l.gate = h.gate AND l.state = @ready)), 0),
       coalesce(sum((SELECT count(*) FROM live l WHERE l.gate = h.gate AND l.state = @held)), 0),
       count(h.gate), min((SELECT g.next FROM gate g WHERE g.name = h.gate))
  FROM (SELECT gate FROM hop WHERE gate IS NOT NULL LIMIT :most) h;

-- name: gates_of_class (first text, last text, after text, most int)
-- returns: name text
WITH RECURSIVE hop(gate) AS (
    SELECT (SELECT min(l.gate) FROM live l
             WHERE l.gate > :after AND l.gate >= :first AND l.gate <= :last AND l.gate IS NOT NULL)
    UNION ALL
    SELECT (SELECT min(l.gate) FROM live l WHERE l.gate > hop.gate AND l.gate <= :last AND l.gate IS NOT NULL)
      FROM hop WHERE hop.gate IS NOT NULL LIMIT :most + 1
)
SELECT gate FROM hop WHERE gate IS NOT NULL LIMIT :most;
