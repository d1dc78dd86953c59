-- The twin of 0013-submit-sizes.pg.sql. SQLite has no weft_submit(): there is nothing to change.
SELECT 1;
