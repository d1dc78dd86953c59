-- The twin of 0008-tokens.pg.sql; see there for what each column means.

ALTER TABLE token ADD COLUMN secret_of INTEGER;
ALTER TABLE token ADD COLUMN last_used INTEGER;
