use super::*;
use crate::payload;
use crate::{list, settled};

/// How SQLite finds the rows of each statement that a task's life needs.
fn plans() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tasks.db");
    let mut connection = Connection::open(&path).expect("a file");
    crate::schema::migrate(&mut connection, &path).expect("the tables");
    let rows = Statements::new();
    let statements = [
        rows.scan.as_str(),
        &rows.live,
        &rows.holders,
        &rows::BY_SEQ,
        &rows::BY_ID,
        list::LIVE,
        list::TOOLS,
        list::BY_TOOL,
        list::BY_TAG,
        list::SUBMITTED_AFTER,
        settled::KEYS,
        settled::BY_KEY,
        settled::FIRST_DUE,
        settled::NEXT_DUE,
        settled::DUE,
        settled::TOMBSTONES,
        crate::database::IS_NAMED,
        &rows.update,
        &rows.advance,
        STILL_DUE,
        RESULTS,
        OLD_ATTEMPTS,
        ARTIFACT,
        FREE,
        FORGET,
        FILES[0],
        FILES[1],
        EXPIRE[2],
        EXPIRE[3],
        EXPIRE[4],
        payload::INPUTS,
        payload::RESULTS,
        payload::STATUS,
        payload::EVENTS,
        payload::ATTEMPTS,
        payload::ARTIFACTS,
        payload::ARTIFACT,
    ];
    let plan_of = |sql: &str| {
        let words: Vec<_> = sql.split_whitespace().filter(|word| *word != "\\").collect();
        let short: String = words.join(" ").chars().take(44).collect();
        let mut explain =
            connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a statement");
        let steps: Vec<String> = explain
            .raw_query()
            .mapped(|row| row.get(3))
            .collect::<Result<_, _>>()
            .expect("its plan");
        format!("{short:<44} | {}\n", steps.join("; "))
    };
    statements.into_iter().map(plan_of).collect()
}

#[test]
fn every_statement_finds_its_rows_by_key() {
    expect_test::expect![[r#"
        SELECT id, scope, tool, lane, priority, key, | SEARCH tasks USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)
        SELECT id, scope, tool, lane, priority, key, | SCAN tasks USING INDEX live_tasks
        SELECT id, scope, tool, lane, priority, key, | SEARCH tasks USING INDEX tasks_by_id (id=?); USING INDEX sqlite_autoindex_slots_1 FOR IN-OPERATOR
        SELECT id, scope, tool, lane, priority, key, | SEARCH tasks USING INTEGER PRIMARY KEY (rowid=?)
        SELECT id, scope, tool, lane, priority, key, | SEARCH tasks USING INDEX tasks_by_id (id=?)
        SELECT seq FROM tasks WHERE scope = ? AND en | SEARCH tasks USING INDEX live_tasks (scope=? AND seq>? AND seq<?)
        WITH RECURSIVE found (tool) AS ( SELECT min( | CO-ROUTINE found; SETUP; SEARCH tasks USING INDEX ended_by_tool (scope=?); RECURSIVE STEP; SCAN found; CORRELATED SCALAR SUBQUERY 2; SEARCH tasks USING INDEX ended_by_tool (scope=? AND tool>?); SCAN found
        SELECT seq FROM tasks WHERE scope = ? AND en | SEARCH tasks USING INDEX ended_by_tool (scope=? AND tool=? AND state=? AND seq>? AND seq<?)
        SELECT seq FROM task_tags WHERE scope = ? AN | SEARCH task_tags USING PRIMARY KEY (scope=? AND tag=? AND seq>? AND seq<?)
        SELECT min(block) << 10 FROM submit_times WH | SEARCH submit_times
        SELECT scope, tool, key FROM tasks INDEXED B | SCAN tasks USING INDEX ended_by_key
        SELECT id FROM tasks WHERE scope = ? AND too | SEARCH tasks USING INDEX ended_by_key (scope=? AND tool=? AND key=?)
        SELECT min(due) FROM due_times               | SEARCH due_times
        SELECT min(next) FROM ( SELECT due AS next F | CO-ROUTINE (subquery-2); COMPOUND QUERY; LEFT-MOST SUBQUERY; SCAN due_times; UNION ALL; SCAN d; SEARCH t USING INTEGER PRIMARY KEY (rowid>? AND rowid<?); SEARCH (subquery-2)
        SELECT t.id FROM due_times d CROSS JOIN task | SCAN d; SEARCH t USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)
        SELECT id FROM tasks WHERE state = 'expired' | SEARCH tasks USING INDEX tombstones (updated_at<?)
        SELECT EXISTS (SELECT 1 FROM tasks t LEFT JO | SCAN CONSTANT ROW; SCALAR SUBQUERY 1; SEARCH t USING COVERING INDEX tasks_by_id (id=?); SEARCH i USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN; SEARCH r USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN
        UPDATE tasks SET state = ?, waiting = ?, rea | SEARCH tasks USING INTEGER PRIMARY KEY (rowid=?)
        UPDATE tasks SET state = ?1, waiting = ?2, r | SEARCH tasks USING INTEGER PRIMARY KEY (rowid=?)
        SELECT min(retention_at) FROM tasks WHERE se | SEARCH tasks USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)
        INSERT INTO results (seq, outcome, outcome_f | 
        DELETE FROM attempts WHERE seq = ? AND attem | SEARCH attempts USING PRIMARY KEY (seq=?)
        INSERT INTO artifacts (seq, n, id, name, kin | SCALAR SUBQUERY 1; SEARCH artifacts USING PRIMARY KEY (seq=?)
        DELETE FROM slots WHERE task = ?             | SEARCH slots USING PRIMARY KEY (task=?)
        DELETE FROM tasks WHERE state = 'expired' AN | SEARCH tasks USING INDEX tasks_by_id (id=?)
        SELECT file, NULL FROM inputs WHERE seq = ?  | SEARCH inputs USING INTEGER PRIMARY KEY (rowid=?)
        SELECT outcome_file, late_file FROM results  | SEARCH results USING INTEGER PRIMARY KEY (rowid=?)
        DELETE FROM task_events WHERE seq = ?        | SEARCH task_events USING PRIMARY KEY (seq=?)
        DELETE FROM attempts WHERE seq = ?           | SEARCH attempts USING PRIMARY KEY (seq=?)
        DELETE FROM artifacts WHERE seq = ?          | SEARCH artifacts USING PRIMARY KEY (seq=?)
        SELECT body, file FROM inputs WHERE seq = ?  | SEARCH inputs USING INTEGER PRIMARY KEY (rowid=?)
        SELECT outcome, outcome_file, late, late_fil | SEARCH results USING INTEGER PRIMARY KEY (rowid=?)
        SELECT progress, partial FROM results WHERE  | SEARCH results USING INTEGER PRIMARY KEY (rowid=?)
        SELECT n, at, attempt, fence, from_state, to | SEARCH task_events USING PRIMARY KEY (seq=?)
        SELECT attempt, fence, worker, started_at, e | SEARCH attempts USING PRIMARY KEY (seq=?)
        SELECT id, name, kind, size, sha256, path FR | SEARCH artifacts USING PRIMARY KEY (seq=?)
        SELECT a.id, a.name, a.kind, a.size, a.sha25 | SEARCH a USING INDEX artifacts_by_id (id=?); SEARCH t USING INTEGER PRIMARY KEY (rowid=?)
    "#]].assert_eq(&plans());
}
