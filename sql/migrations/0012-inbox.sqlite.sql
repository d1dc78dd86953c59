-- The twin of 0012-inbox.pg.sql. SQLite has no inbox: there is nothing to change.
SELECT 1;
