-- The twin of 0020-poll.pg.sql. In SQLite the poll is a statement of its own: nothing to change.
SELECT 1;
