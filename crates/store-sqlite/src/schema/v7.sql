-- Whether the executor has said that the attempt has stopped; every outcome says so.
ALTER TABLE tasks ADD COLUMN has_stopped INTEGER NOT NULL DEFAULT 0 CHECK (has_stopped IN (0, 1));
UPDATE tasks SET has_stopped = 1 WHERE has_reported;
