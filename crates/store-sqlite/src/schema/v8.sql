-- What attempts asked their callers, `n` from 1, and what they were answered. While the state of a task is
-- `input_required`, its column `waiting` holds the key of the question that is open.
CREATE TABLE questions (
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    response TEXT,
    PRIMARY KEY (seq, n)
) WITHOUT ROWID;
