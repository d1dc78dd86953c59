-- The twin of 0034-purge.pg.sql.
DROP INDEX flow_hidden;
