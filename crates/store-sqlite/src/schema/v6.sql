-- One entry of an index less with every end: what has ended is listed by its tool and state.
DROP INDEX ended_by_state;

-- Of each 1,024 places an instant before which the retention of none of its tasks is over.
DROP INDEX by_retention;
CREATE TABLE due_times (
    block INTEGER PRIMARY KEY,
    due INTEGER NOT NULL
);
INSERT INTO due_times (block, due)
    SELECT seq >> 10, min(retention_at) FROM tasks WHERE retention_at IS NOT NULL GROUP BY 1;
