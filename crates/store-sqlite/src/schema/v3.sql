-- Who does not own the store looks for tasks by identity, too.
DROP INDEX tombstones;
CREATE INDEX tasks_by_id ON tasks (id);

-- When the holder of a place was last heard of.
ALTER TABLE slots ADD COLUMN heard INTEGER NOT NULL DEFAULT 0;
UPDATE slots SET heard = coalesce((SELECT heartbeat_at FROM tasks WHERE id = slots.task), lease);

-- The workers that have a task. Those without one are the other places of the lanes.
CREATE VIEW workers (id, lane, state, last_heartbeat, current_task) AS
    SELECT worker, lane, 'busy', heard, task FROM slots;
