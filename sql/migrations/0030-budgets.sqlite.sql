-- The twin of 0030-budgets.pg.sql.
CREATE TABLE budget (
    id         INTEGER PRIMARY KEY,
    namespace  INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    matches    INTEGER NOT NULL,
    lane       TEXT,
    kind       TEXT,
    tenant     TEXT,
    on_hard    INTEGER NOT NULL,
    every_us   INTEGER NOT NULL,
    months     INTEGER NOT NULL,
    anchor     INTEGER NOT NULL,
    next_reset INTEGER,
    began      INTEGER NOT NULL,
    period     INTEGER NOT NULL DEFAULT 1,
    breaches   INTEGER NOT NULL DEFAULT 0,
    soft_at    INTEGER,
    hard_at    INTEGER,
    cancelling INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace, name)
);
CREATE INDEX budget_matches ON budget (namespace) WHERE matches;
CREATE INDEX budget_reset ON budget (next_reset) WHERE next_reset IS NOT NULL;
CREATE INDEX budget_cancelling ON budget (id) WHERE cancelling;
CREATE TABLE budget_version (
    one     INTEGER PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    version INTEGER NOT NULL
);
INSERT INTO budget_version (version) VALUES (1);
CREATE TABLE budget_dimension (
    id       INTEGER PRIMARY KEY,
    budget   INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    hard     INTEGER NOT NULL,
    soft     INTEGER NOT NULL,
    estimate INTEGER NOT NULL,
    used     INTEGER NOT NULL DEFAULT 0,
    reserved INTEGER NOT NULL DEFAULT 0,
    dropped  INTEGER NOT NULL DEFAULT 0,
    stale    INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX budget_dimension_name ON budget_dimension (budget, name) WHERE NOT dropped;
CREATE INDEX budget_dimension_sweep ON budget_dimension (id) WHERE dropped OR stale;
CREATE TABLE ledger (
    id        BLOB    NOT NULL,
    epoch     INTEGER NOT NULL,
    dimension INTEGER NOT NULL,
    period    INTEGER NOT NULL,
    reserved  INTEGER NOT NULL,
    total     INTEGER NOT NULL,
    earlier   INTEGER NOT NULL,
    settled   INTEGER,
    changed   INTEGER NOT NULL,
    PRIMARY KEY (id, epoch, dimension)
) WITHOUT ROWID;
CREATE INDEX ledger_period ON ledger (dimension, period, id) WHERE epoch > 0;
CREATE INDEX ledger_open ON ledger (dimension, id, epoch) WHERE settled IS NULL;
CREATE INDEX ledger_settled ON ledger (settled) WHERE settled > 0;
CREATE TABLE cost (
    id        BLOB    NOT NULL,
    dimension TEXT    NOT NULL,
    amount    INTEGER NOT NULL,
    PRIMARY KEY (id, dimension)
) WITHOUT ROWID;
