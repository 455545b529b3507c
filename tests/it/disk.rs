//! A disk that is full and a wall clock that jumps, under the real binary.

use serde_json::{Value, json};
use tempfile::TempDir;

use raincheck_testkit::disk::Shim;

use crate::server::Server;

/// A place with a store of its own, and beside it what the test decides about its disk and clock.
struct Place {
    own: TempDir,
    beside: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = || TempDir::new().expect("a folder");
        Self { own: folder(), beside: folder() }
    }

    fn beside(&self, name: &str) -> std::path::PathBuf {
        self.beside.path().join(name)
    }

    async fn serve(&self) -> Server {
        let own = self.own.path();
        let shim = Shim::new(own).full_while(&self.beside("full")).shifted_by(&self.beside("jump"));
        let server = Server::spawn_with(|command| {
            command.arg("--store").arg(own.join("store.db"));
            command.env("RAINCHECK_STATE_DIR", own.join("state")).envs(shim.variables());
        });
        server.shake_hands().await
    }

    fn set(&self, name: &str, text: &str) {
        std::fs::write(self.beside(name), text).expect("a file");
    }

    /// Begins a task that ends when a file appears, and waits until its program runs.
    async fn begin(&self, server: &mut Server, gate: &str) -> Value {
        let inputs = json!({"open": self.beside(gate)});
        let task = json!({"tool_name": "gate", "inputs": inputs});
        let task = server.data("submit_task", task).await;
        let follow = json!({"task_id": task["task_id"], "wait_s": 20});
        let logs = server.data("tail_task_logs", follow).await;
        assert_eq!(logs["lines"][0]["message"], "waiting", "{logs}");
        task
    }

    fn n_runs(&self, gate: &str) -> usize {
        let marks = std::fs::read_to_string(self.beside(&format!("{gate}.ran")));
        marks.unwrap_or_default().lines().count()
    }
}

async fn read(server: &mut Server, tool: &str, task: &Value, wait_s: u64) -> Value {
    let mut arguments = json!({"task_id": task["task_id"]});
    if wait_s > 0 {
        arguments["wait_s"] = wait_s.into();
    }
    server.data(tool, arguments).await
}

/// Returns the day and the hour at which a task was submitted, by the server's clock.
async fn submitted(server: &mut Server, task: &Value) -> (String, String) {
    let status = read(server, "get_task_status", task, 0).await;
    let (day, hour) =
        status["submitted_at"].as_str().and_then(|at| at.split_once('T')).expect("an instant");
    (day.to_owned(), hour.to_owned())
}

/// Checks that a call was refused for the disk, in words that show nothing of the inside.
fn check_refused(place: &Place, answer: &Value) {
    let error = &answer["error"];
    assert_eq!(error["code"], "storage_unavailable", "{answer}");
    assert_eq!(error["guarantee"], "not_executed", "{answer}");
    let text = answer.to_string().to_lowercase();
    let path = place.own.path().to_string_lossy().to_lowercase();
    assert!(!text.contains("sqlite") && !text.contains(&path), "{answer}");
}

#[tokio::test]
async fn a_full_disk_refuses_what_is_new_and_keeps_what_runs() {
    // [DUR-1] [DUR-5] [QUEUE-6]
    let place = Place::new();
    let mut server = place.serve().await;
    let task = place.begin(&mut server, "gate").await;
    place.set("full", "");
    let another = json!({"tool_name": "echo", "inputs": {}});
    for _ in 0..3 {
        check_refused(&place, &server.data("submit_task", another.clone()).await);
        check_refused(&place, &server.data("echo", json!({})).await);
        let status = read(&mut server, "get_task_status", &task, 0).await;
        assert_eq!((&status["state"], &status["attempt"]), (&json!("running"), &json!(1)));
        let listed = server.data("list_tasks", json!({})).await;
        assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(1), "{listed}");
        let logs = read(&mut server, "tail_task_logs", &task, 0).await;
        assert_eq!(logs["lines"][0]["message"], "waiting", "{logs}");
    }
    check_refused(&place, &read(&mut server, "cancel_task", &task, 0).await);

    // The program ends, which nobody can write down yet.
    place.set("gate", "");
    let waited = read(&mut server, "get_task_result", &task, 2).await;
    assert_eq!(waited["state"], "running", "{waited}");
    assert_eq!(place.n_runs("gate"), 1);
    std::fs::remove_file(place.beside("full")).expect("there is room again");
    let ended = server.ended(&task).await;
    assert_eq!(
        (&ended["state"], &ended["result"]),
        (&json!("succeeded"), &json!({"opened": true}))
    );
    assert_eq!(server.data("echo", json!({"n": 1})).await, json!({"n": 1}), "it takes work again");

    server.child.kill().await.expect("killed");
    let mut server = place.serve().await;
    assert_eq!(server.ended(&task).await["result"], ended["result"]);
    assert_eq!(place.n_runs("gate"), 1, "it ran once");
    assert!(server.close().await.success());
}

#[tokio::test]
async fn a_wall_clock_that_jumps_a_day_ends_nothing_and_strands_nothing() {
    // [TIME-6] [DUR-3]
    for jump in ["86400", "-86400"] {
        let place = Place::new();
        let mut server = place.serve().await;
        let first = place.begin(&mut server, "first").await;
        let second = place.begin(&mut server, "second").await;
        place.set("jump", jump);
        let waited = read(&mut server, "get_task_result", &first, 1).await;
        assert_eq!(waited["state"], "running", "{jump}: {waited}");
        place.set("first", "");
        assert_eq!(server.ended(&first).await["state"], "succeeded", "{jump}");
        let kept = read(&mut server, "get_task_status", &first, 0).await;
        assert_eq!(kept["state"], "succeeded", "{jump}: it is readable on");
        let after = place.begin(&mut server, "after").await;
        place.set("after", "");
        assert_eq!(server.ended(&after).await["state"], "succeeded", "{jump}");
        let before = submitted(&mut server, &first).await;
        let after = submitted(&mut server, &after).await;
        // A day later at an earlier hour it is only past midnight.
        assert!(before.0 == after.0 || after.1 < before.1, "{jump}: the server's clock followed");

        // The next server believes the clock; what runs is heard before any deadline counts.
        server.child.kill().await.expect("killed");
        let mut server = place.serve().await;
        let found = read(&mut server, "get_task_status", &second, 0).await;
        assert_eq!(found["state"], "running", "{jump}: {found}");
        let third = place.begin(&mut server, "third").await;
        let days =
            (submitted(&mut server, &second).await.0, submitted(&mut server, &third).await.0);
        assert_ne!(days.0, days.1, "{jump}: the clock never jumped");
        place.set("second", "");
        place.set("third", "");
        for task in [&second, &third] {
            assert_eq!(server.ended(task).await["state"], "succeeded", "{jump}");
        }
        assert!(server.close().await.success());
    }
}
