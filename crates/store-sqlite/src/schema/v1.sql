-- One row per task, tombstones included. Read whole when the store opens; small, because it is
-- rewritten with every transition. `seq` is the order of acceptance.
CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    -- what never changes
    id BLOB NOT NULL CHECK (length(id) = 16),
    scope TEXT NOT NULL,
    tool TEXT NOT NULL,
    lane TEXT NOT NULL,
    priority INTEGER NOT NULL,
    key TEXT,
    inputs_hash BLOB NOT NULL CHECK (length(inputs_hash) = 16),
    spec TEXT NOT NULL,
    submitted_at INTEGER NOT NULL,
    -- where it stands
    state TEXT NOT NULL CHECK (state IN ({states})),
    waiting TEXT,
    ready_left INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    worker TEXT,
    n_events INTEGER NOT NULL,
    has_reported INTEGER NOT NULL CHECK (has_reported IN (0, 1)),
    cancel_at INTEGER,
    cancel_reason TEXT,
    failure TEXT,
    started_at INTEGER,
    updated_at INTEGER NOT NULL,
    heartbeat_at INTEGER,
    ended_at INTEGER,
    -- what is armed on it
    backoff_at INTEGER,
    ready_at INTEGER,
    ttl_at INTEGER,
    accept_at INTEGER,
    run_at INTEGER,
    grace_at INTEGER,
    lease_at INTEGER,
    input_at INTEGER,
    retention_at INTEGER
);

-- Tombstones are forgotten by identity; everything else is found by `seq`.
CREATE INDEX tombstones ON tasks (id) WHERE state = 'expired';

-- What a task was given. `body`, or the name of a file when it is large.
CREATE TABLE inputs (
    seq INTEGER PRIMARY KEY,
    body BLOB,
    file TEXT,
    CHECK ((body IS NULL) <> (file IS NULL))
);

-- What came out of it so far.
CREATE TABLE results (
    seq INTEGER PRIMARY KEY,
    outcome BLOB,
    outcome_file TEXT,
    late BLOB,
    late_file TEXT,
    progress TEXT,
    partial TEXT
);

-- Its history: one entry per transition, `n` from 1 without gaps.
CREATE TABLE task_events (
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    from_state TEXT,
    to_state TEXT NOT NULL,
    cause TEXT NOT NULL,
    note TEXT,
    PRIMARY KEY (seq, n)
) WITHOUT ROWID;

-- Attempts that ended.
CREATE TABLE attempts (
    seq INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    worker TEXT,
    started_at INTEGER,
    ended_at INTEGER NOT NULL,
    ended TEXT NOT NULL,
    error TEXT,
    metrics TEXT,
    PRIMARY KEY (seq, fence)
) WITHOUT ROWID;

-- Files that attempts left.
CREATE TABLE artifacts (
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    size INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (seq, n)
) WITHOUT ROWID;

-- Places of lanes that are taken, whatever the state of the task.
CREATE TABLE slots (
    task BLOB PRIMARY KEY,
    lane TEXT NOT NULL,
    fence INTEGER NOT NULL,
    worker TEXT NOT NULL,
    lease INTEGER NOT NULL
) WITHOUT ROWID;

-- How many times the store was taken over, and the lowest `seq` that was never given.
CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    next_seq INTEGER NOT NULL
);
INSERT INTO store (one, epoch, next_seq) VALUES (1, 0, 1);
