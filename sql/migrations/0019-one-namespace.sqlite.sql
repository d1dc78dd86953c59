-- Spans (0010-lists.pg.sql) keep the rows of a namespace apart from those of others. While there is one namespace,
-- all rows are its own: submissions write no spans, which spares each of them a page, and lists walk all ids. The
-- transaction that adds the second namespace writes the spans of all rows that are there, once; every writer after
-- it sees both. Namespaces are never removed. What tells is a second row of names of sort 1.
--
-- OR REPLACE: a span that is there already may be of some of the rows of its millisecond, these are of all.
CREATE TRIGGER second_namespace AFTER INSERT ON name
  WHEN NEW.sort = 1 AND (SELECT count(*) FROM (SELECT 1 FROM name WHERE sort = 1 LIMIT 3)) = 2
BEGIN
    INSERT OR REPLACE INTO span (namespace, last, first, count)
    SELECT q.namespace, max(e.id), min(e.id), count(*)
      FROM execution e JOIN queue q ON q.id = e.queue
     GROUP BY q.namespace, substr(e.id, 1, 6);
END;
