-- The twin of 0019-one-namespace.sqlite.sql. In PostgreSQL a submission under way would not see that another
-- transaction has added the second namespace, so spans are written from the first row on: nothing to change.
SELECT 1;
