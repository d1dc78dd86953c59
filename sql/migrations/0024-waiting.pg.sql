-- Waiting: an execution that is suspended until signals have come, a timeout has passed or an operator resumes it.
--
-- A binary that does not know these tables would hand out a resumed execution without its signals. None of that
-- happens before the first waitpoint is made: the transaction that makes the first signing key raises
-- schema.oldest_binary (src/engine/wait/keys.c), so a rolling upgrade is as free as before.

-- What a suspended execution waits for: one row while its living row is suspended under this epoch.
--   since       when it was suspended
--   condition   src/core/condition.h, in canonical text, over the names of its waitpoints
--   on_timeout  enum weft_on_timeout; the time itself is live.due
--   delay       microseconds from the resumption to ready
--   escalated   when its timeout passed and it was left to an operator
--   namespace   of an escalated one, for lists of these; null before
CREATE TABLE weft.suspension (
    id         uuid     NOT NULL PRIMARY KEY,
    epoch      int      NOT NULL,
    since      bigint   NOT NULL,
    condition  text     NOT NULL,
    on_timeout smallint NOT NULL,
    delay      bigint   NOT NULL,
    escalated  bigint,
    namespace  int,
    reason     text
);
CREATE INDEX suspension_escalated ON weft.suspension (namespace, id) WHERE escalated IS NOT NULL;

-- The last resumption of an execution, for the claims that follow.
--   epoch  of the suspension; its signals are those of the waitpoints that were taken under it
--   by     enum weft_resumed_by
CREATE TABLE weft.resumption (
    id     uuid     NOT NULL PRIMARY KEY,
    epoch  int      NOT NULL,
    at     bigint   NOT NULL,
    by     smallint NOT NULL,
    reason text
);

-- A place where signals arrive.
--   epoch    under which it was made; part of its tokens
--   replay   live.replays when it was made: another number means that it is closed
--   bound    the epoch of the suspension that it belongs to; 0: it is pending. It is open while the living row is
--            suspended under that epoch and closed from then on, without a write
--   signals  how many it has got, the number of the last one
--   expires  a pending one is closed then; closed: when that was noticed
--   key      that signed its first token
CREATE TABLE weft.waitpoint (
    waitpoint uuid     NOT NULL PRIMARY KEY,
    id        uuid     NOT NULL,
    created   bigint   NOT NULL,
    expires   bigint,
    closed    bigint,
    epoch     int      NOT NULL,
    bound     int      NOT NULL,
    signals   int      NOT NULL,
    key       int      NOT NULL,
    replay    smallint NOT NULL,
    name      text     NOT NULL
);
CREATE INDEX waitpoint_bound ON weft.waitpoint (id, bound);
CREATE INDEX waitpoint_expires ON weft.waitpoint (expires) WHERE bound = 0 AND closed IS NULL AND expires IS NOT NULL;

-- Written once. n: its number at the waitpoint, from 1. effect: enum weft_signal_effect.
CREATE TABLE weft.signal (
    id           uuid     NOT NULL,
    waitpoint    uuid     NOT NULL,
    n            int      NOT NULL,
    at           bigint   NOT NULL,
    effect       smallint NOT NULL,
    name         text,
    source       text,
    key          text,
    content_type text,
    payload      bytea,
    PRIMARY KEY (id, waitpoint, n)
);
CREATE UNIQUE INDEX signal_key ON weft.signal (waitpoint, key) WHERE key IS NOT NULL;

-- Secrets that sign the tokens of waitpoints. retires: an older one, which verifies until then.
CREATE TABLE weft.signing_key (
    id      int    NOT NULL PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    secret  bytea  NOT NULL,
    created bigint NOT NULL,
    retires bigint
);

CREATE TRIGGER suspension_has AFTER INSERT ON weft.suspension
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION weft.set_has(4);
CREATE TRIGGER resumption_has AFTER INSERT ON weft.resumption
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION weft.set_has(8);
CREATE TRIGGER waitpoint_has AFTER INSERT ON weft.waitpoint
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION weft.set_has(16);
CREATE TRIGGER signal_has AFTER INSERT ON weft.signal
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION weft.set_has(32);

-- Suspensions by their timeout, for passes, and by lane, for passes in turns and for lists, which want those
-- without a timeout as well. The second condition says the same in other words, so that the planner never takes
-- the one for the other: see 0016.
CREATE INDEX live_suspended ON weft.live (due) WHERE state = 5 AND due IS NOT NULL;
CREATE INDEX live_suspended_lane ON weft.live (lane, due) WHERE state BETWEEN 5 AND 5;

-- The part of the poll for all of this: when the next suspension times out and the next pending waitpoint expires,
-- and two numbers that change with the set of signing keys.
CREATE FUNCTION weft.poll_waiting(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off
AS $function$
    SELECT 9,
           (SELECT due FROM weft.live WHERE state = 5 AND due IS NOT NULL ORDER BY due LIMIT 1),
           (SELECT expires FROM weft.waitpoint
             WHERE bound = 0 AND closed IS NULL AND expires IS NOT NULL ORDER BY expires LIMIT 1),
           (SELECT max(id)::bigint FROM weft.signing_key),
           (SELECT sum(coalesce(retires, 0) % 1000000007)::bigint FROM weft.signing_key),
           NULL::text
$function$;

-- Readers see the suspension.
CREATE OR REPLACE VIEW weft.snapshot AS
SELECT e.id, e.created, e.queue, e.content_type, e.tags, e.key,
       coalesce(l.state, o.state) AS state,
       coalesce(l.priority, o.priority) AS priority,
       coalesce(l.attempt, o.attempt) AS attempt,
       coalesce(l.epoch, o.epoch) AS epoch,
       coalesce(l.lost, o.lost) AS lost,
       coalesce(l.replays, o.replays) AS replays,
       coalesce(l.worker, o.worker) AS worker,
       coalesce(l.started, o.started) AS started,
       coalesce(l.claimed, o.claimed) AS claimed,
       coalesce(l.deadline, o.deadline) AS deadline,
       l.due, o.finished, o.ended, o.by, coalesce(o.reason, s.reason) AS reason, o.error_class, o.error_message,
       p.percent, p.note, n.flow, n.name AS node,
       coalesce(l.policy, o.policy) AS policy,
       coalesce(l.forgiven, o.forgiven) AS forgiven,
       octet_length(o.result)::bigint AS result_size,
       s.since AS suspended, s.escalated
  FROM weft.execution e
  LEFT JOIN weft.live l ON l.id = e.id
  LEFT JOIN weft.outcome o ON o.id = e.id
  LEFT JOIN weft.progress p ON p.id = e.id AND p.epoch = coalesce(l.epoch, o.epoch)
  LEFT JOIN weft.node n ON n.id = e.id
  LEFT JOIN weft.suspension s ON s.id = e.id AND l.state = 5;
