-- Flows that no reader sees, by why: those not whole yet are looked for beside very many that are being removed,
-- and the other way round.
-- concurrently
CREATE INDEX CONCURRENTLY IF NOT EXISTS flow_unseen ON weft.flow (state, id) WHERE state < 0;
