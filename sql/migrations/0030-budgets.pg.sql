-- Budgets: how much executions may spend (src/engine/limit/budgets.c and its neighbours).
--
-- The row of a budget is the lock of all sums in its dimensions. Claims reserve, reports of workers turn what was
-- reserved into what is used, and the end of a lease gives back the rest; each of these writes the ledger too, so
-- the ledger adds up to the sums at any commit. A binary that does not know budgets would claim without reserving:
-- the first budget raises schema.oldest_binary (budget_put), so a rolling upgrade is free as long as there is none.
--
--   matches      lane, kind and tenant (NULL: any) say which executions are under it, besides those that name it
--   every_us     length of a period, or `months`; both 0: it has no end. Periods begin at `anchor`
--   next_reset   when this period ends; NULL: never
--   began        when this period began; `period` numbers them
--   breaches     reports in this period that were refused, or that reached a hard limit
--   soft_at      when a soft limit was first reached in this period
--   hard_at      since then a hard limit is broken: nothing is claimed until the period ends or the limits change
--   cancelling   running executions are being cancelled
CREATE TABLE weft.budget (
    id         int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace  int      NOT NULL,
    name       text COLLATE "C" NOT NULL,
    matches    bool     NOT NULL,
    lane       text COLLATE "C",
    kind       text COLLATE "C",
    tenant     text COLLATE "C",
    on_hard    smallint NOT NULL,
    every_us   bigint   NOT NULL,
    months     int      NOT NULL,
    anchor     bigint   NOT NULL,
    next_reset bigint,
    began      bigint   NOT NULL,
    period     int      NOT NULL DEFAULT 1,
    breaches   bigint   NOT NULL DEFAULT 0,
    soft_at    bigint,
    hard_at    bigint,
    cancelling bool     NOT NULL DEFAULT false,
    CONSTRAINT budget_name UNIQUE (namespace, name)
);
CREATE INDEX budget_matches ON weft.budget (namespace) WHERE matches;
CREATE INDEX budget_reset ON weft.budget (next_reset) WHERE next_reset IS NOT NULL;
CREATE INDEX budget_cancelling ON weft.budget (id) WHERE cancelling;

-- Counts the changes of settings. Its row is locked from the change to the commit, so the number grows in the order of
-- commits: a process that has read the settings with a number knows that they are still the same. 1: there were none yet.
CREATE TABLE weft.budget_version (
    one     int    PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version bigint NOT NULL
);
INSERT INTO weft.budget_version (version) VALUES (1);

-- What a budget counts. 0: no hard limit, no soft one. A dimension that was taken away is `dropped` until its
-- ledger has been removed. stale: there may be a ledger of earlier periods.
CREATE TABLE weft.budget_dimension (
    id       int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    budget   int    NOT NULL,
    name     text COLLATE "C" NOT NULL,
    hard     bigint NOT NULL,
    soft     bigint NOT NULL,
    estimate bigint NOT NULL,
    used     bigint NOT NULL DEFAULT 0,
    reserved bigint NOT NULL DEFAULT 0,
    dropped  bool   NOT NULL DEFAULT false,
    stale    bool   NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX budget_dimension_name ON weft.budget_dimension (budget, name) WHERE NOT dropped;
CREATE INDEX budget_dimension_sweep ON weft.budget_dimension (id) WHERE dropped OR stale;

-- What a lease has reserved and spent. A row of a lease that has not been settled is of the present period.
--   reserved  what is left of its reservation
--   total     what its worker has reported; `earlier`: the part of it that was spent in earlier periods
--   settled   when its lease was seen to have ended; NULL: it may still run
-- Rows that were settled long ago are added up in one row of the period, with no id, the period as its epoch and
-- settled = 0.
CREATE TABLE weft.ledger (
    id        uuid   NOT NULL,
    epoch     int    NOT NULL,
    dimension int    NOT NULL,
    period    int    NOT NULL,
    reserved  bigint NOT NULL,
    total     bigint NOT NULL,
    earlier   bigint NOT NULL,
    settled   bigint,
    changed   bigint NOT NULL,
    PRIMARY KEY (id, epoch, dimension)
);
-- All rows are in it: the condition keeps looks by id, which do not say it, from walking the index for want of a better.
CREATE INDEX ledger_period ON weft.ledger (dimension, period, id) WHERE epoch > 0;
CREATE INDEX ledger_open ON weft.ledger (dimension, id, epoch) WHERE settled IS NULL;
CREATE INDEX ledger_settled ON weft.ledger (settled) WHERE settled > 0;

-- What an execution is expected to spend, where its spec says so.
CREATE TABLE weft.cost (
    id        uuid   NOT NULL,
    dimension text COLLATE "C" NOT NULL,
    amount    bigint NOT NULL,
    PRIMARY KEY (id, dimension)
);

-- The part of the poll: the next reset, whether leases are to be settled, executions cancelled or a ledger removed, and
-- the number that changes with the settings.
CREATE FUNCTION weft.poll_budgets(OUT what int, OUT a bigint, OUT b bigint, OUT c bigint, OUT d bigint, OUT text text)
RETURNS SETOF record LANGUAGE sql STABLE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off
AS $function$
    SELECT 11, (SELECT next_reset FROM weft.budget WHERE next_reset IS NOT NULL ORDER BY next_reset LIMIT 1),
           (EXISTS (SELECT 1 FROM weft.ledger WHERE settled IS NULL)
            OR EXISTS (SELECT 1 FROM weft.budget WHERE cancelling)
            OR EXISTS (SELECT 1 FROM weft.budget_dimension WHERE dropped OR stale))::int::bigint,
           (SELECT version FROM weft.budget_version), NULL::bigint, NULL::text
$function$;
