-- The twin of 0032-sql-spec.pg.sql. SQLite has no weft_submit(): there is nothing to change.
SELECT 1;
