-- The twin of 0025-suspension-due.pg.sql.
ALTER TABLE suspension ADD COLUMN due INTEGER;
ALTER TABLE suspension ADD COLUMN lane INTEGER NOT NULL DEFAULT 0;
ALTER TABLE suspension ADD COLUMN namespace INTEGER;
DROP INDEX live_suspended;
DROP INDEX live_suspended_lane;
UPDATE suspension SET due = l.due, lane = l.lane
  FROM execution e CROSS JOIN live l ON l.num = e.num WHERE e.id = suspension.id;
UPDATE suspension SET namespace = (SELECT n.namespace FROM name n WHERE n.id = suspension.lane)
 WHERE escalated IS NOT NULL;
UPDATE schema SET oldest_binary = 25 WHERE oldest_binary = 24;
CREATE INDEX suspension_due ON suspension (due) WHERE due IS NOT NULL;
CREATE INDEX suspension_lane ON suspension (lane, coalesce(due, 9223372036854775807));
DROP INDEX suspension_escalated;
CREATE INDEX suspension_escalated ON suspension (namespace, id) WHERE escalated IS NOT NULL;
DROP TRIGGER suspension_has;
DROP TRIGGER resumption_has;
DROP TRIGGER signal_has;
DROP TRIGGER waitpoint_has;
UPDATE live SET has = has | 60 WHERE has & 60 <> 0;
UPDATE outcome SET has = has | 60
 WHERE num IN (SELECT e.num FROM (SELECT id FROM waitpoint UNION SELECT id FROM resumption) w
                CROSS JOIN execution e ON e.id = w.id);
CREATE TRIGGER waitpoint_has AFTER INSERT ON waitpoint
BEGIN
    UPDATE live SET has = has | 60
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 60 <> 60;
    UPDATE outcome SET has = has | 60
     WHERE num = (SELECT num FROM execution WHERE id = NEW.id) AND has & 60 <> 60;
END;
