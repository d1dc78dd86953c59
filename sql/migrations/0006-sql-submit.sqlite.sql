-- The twin of 0006-sql-submit.pg.sql. SQLite has no roles, no functions of ours and no inbox: there
-- is nothing to change.
SELECT 1;
