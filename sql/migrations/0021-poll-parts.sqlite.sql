-- The twin of 0021-poll-parts.pg.sql. In SQLite the poll is a statement of its own: nothing to change.
SELECT 1;
