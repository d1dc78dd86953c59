-- The twin of 0018-inbox-turns.pg.sql. SQLite has no inbox: there is nothing to change.
SELECT 1;
