-- The twin of 0032-purge.pg.sql.
DROP INDEX flow_hidden;
