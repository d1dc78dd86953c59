-- The twin of 0010-lists.pg.sql; see there for what a span is.
CREATE TABLE span (
    namespace INTEGER NOT NULL,
    last      BLOB NOT NULL,
    first     BLOB NOT NULL,
    count     INTEGER NOT NULL,
    PRIMARY KEY (namespace, last)
) WITHOUT ROWID;

INSERT INTO span (namespace, last, first, count)
SELECT q.namespace, max(e.id), min(e.id), count(*)
  FROM execution e JOIN queue q ON q.id = e.queue
 GROUP BY q.namespace, substr(e.id, 1, 6);

CREATE TABLE unspanned (since INTEGER NOT NULL, until INTEGER NOT NULL);
INSERT INTO unspanned (since, until)
SELECT unixepoch() * 1000000 - 3600000000, unixepoch() * 1000000 + 86400000000
 WHERE EXISTS (SELECT 1 FROM name);

CREATE INDEX flow_open ON flow (namespace) WHERE finished IS NULL;
