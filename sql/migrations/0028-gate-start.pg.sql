-- The twin of a change to SQLite's store alone: live_end has always recorded the starts of windows here.
-- A binary of before would rely on the trigger, so where gates are in use this one is the oldest.
UPDATE weft.schema SET oldest_binary = 28 WHERE oldest_binary < 28 AND EXISTS (SELECT 1 FROM weft.gate_setting);
