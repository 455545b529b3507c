-- What has not ended: read when the store opens, and listed from here.
CREATE INDEX live_tasks ON tasks (scope, seq) WHERE ended_at IS NULL;

-- What has ended is not in memory. Each entry is written once with the end, and once more when the
-- retention is over.
CREATE INDEX ended_by_state ON tasks (scope, state, seq) WHERE ended_at IS NOT NULL;
CREATE INDEX ended_by_tool ON tasks (scope, tool, state, seq) WHERE ended_at IS NOT NULL;
CREATE INDEX ended_by_key ON tasks (scope, tool, key, state)
    WHERE key IS NOT NULL AND ended_at IS NOT NULL;
CREATE INDEX by_retention ON tasks (retention_at) WHERE retention_at IS NOT NULL;
CREATE INDEX tombstones ON tasks (updated_at) WHERE state = 'expired';

-- The labels of tasks whose retention is not over.
CREATE TABLE task_tags (
    scope TEXT NOT NULL,
    tag TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (scope, tag, seq)
) WITHOUT ROWID;
INSERT OR IGNORE INTO task_tags (scope, tag, seq)
    SELECT t.scope, j.value, t.seq FROM tasks t, json_each(t.spec, '$.tags') j
    WHERE t.state <> 'expired';

-- Of each 1,024 places in the order of acceptance an instant before which all of its tasks were submitted:
-- what was submitted after an instant begins with the first of them that is later. Instants need not
-- follow the order, since clocks are set back.
CREATE TABLE submit_times (
    block INTEGER PRIMARY KEY,
    newest INTEGER NOT NULL
);
INSERT INTO submit_times (block, newest) SELECT seq >> 10, max(submitted_at) FROM tasks GROUP BY 1;
