-- The twin of 0033-flow-unseen.pg.sql.
CREATE INDEX flow_unseen ON flow (state, num) WHERE state < 0;
