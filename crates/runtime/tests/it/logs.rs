use std::sync::Arc;
use std::time::Duration;

use raincheck_core::error::Kind;
use raincheck_core::lifecycle::State;
use raincheck_core::log::{Level, Line, Stream};
use raincheck_core::retry;
use raincheck_core::scope::Scope;
use raincheck_core::store::Page;
use raincheck_core::task::Outcome;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::{FileLogs, Functions, Options};

use crate::world::{LONG, World, failed, options, spec, text};

const SECOND: Duration = Duration::from_secs(1);

/// A tool that writes a line a second, five times.
fn chatty() -> Options {
    options(Functions::new().with(spec("chatty"), |_, context| async move {
        for n in 1..=5 {
            tokio::time::sleep(SECOND).await;
            context.log(Stream::Stdout, Level::Info, &format!("line {n}\u{1b}[2J")).await;
        }
        text("done")
    }))
}

impl World {
    async fn page(
        &self,
        id: raincheck_core::ids::TaskId,
        after: u64,
        wait: Duration,
    ) -> Page<Line> {
        self.handle.logs(&Scope::local(), id, after, 100, wait).await.expect("a page")
    }
}

async fn follow(world: World) {
    let id = world.call("chatty").await;
    assert!(world.page(id, 0, Duration::ZERO).await.items.is_empty());
    let (mut after, mut seen) = (0, Vec::new());
    loop {
        let before = world.handle.now();
        let page = world.page(id, after, LONG).await;
        let Some(last) = page.items.last() else { break };
        assert!(world.handle.now().since(before) <= SECOND, "it woke at the first new line");
        after = last.seq;
        seen.extend(page.items);
    }
    assert_eq!(world.view(id).await.record.state, State::Succeeded);
    assert_eq!(seen.iter().map(|line| line.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(&*seen[4].message, "line 5\\x1b[2J", "what a terminal would act on is shown");
}

/// What a hundred lines of ten characters take in a file.
fn quota() -> u64 {
    let line = |seq: u64| {
        let ts = "1970-01-01T00:00:00.000Z";
        let text = "0123456789";
        format!(
            r#"{{"seq":{seq},"ts":"{ts}","stream":"stdout","level":"info","message":"{text}"}}"#
        )
    };
    (1..=100).map(|seq| line(seq).len() as u64 + 1).sum()
}

/// The record of another hundred lines.
fn told() -> String {
    let (thousands, rest) = (quota() / 1_000, quota() % 1_000);
    format!(
        "truncated: 100 lines (1,000 bytes) beyond the quota of {thousands},{rest:03} bytes were dropped"
    )
}

#[tokio::test(start_paused = true)]
async fn a_log_is_followed_without_a_gap_or_a_repeat() {
    // [LOG-1] [CALL-4]
    follow(World::with(chatty())).await;
}

#[tokio::test(start_paused = true)]
async fn a_log_in_files_is_followed_like_one_in_memory() {
    // [LOG-1]
    let root = tempfile::tempdir().expect("a directory");
    follow(World::with(chatty().with_logs(Arc::new(FileLogs::new(root.path()))))).await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_gets_the_lines_of_an_executor_that_is_being_stopped() {
    // [LOG-1] [TIME-3]
    let limited = ToolSpec { run_timeout: Some(SECOND), ..spec("dying") };
    let tools = Functions::new().with(limited, |_, context| async move {
        context.cancellation_token().cancelled().await;
        tokio::time::sleep(SECOND).await;
        context.log(Stream::Stderr, Level::Error, "last words").await;
        text("too late")
    });
    let world = World::new(tools);
    let id = world.call("dying").await;
    assert_eq!(world.end(id).await.record.state, State::TimedOut);
    let page = world.page(id, 0, LONG).await;
    assert_eq!(page.items.len(), 1);
    assert!(world.page(id, 1, LONG).await.items.is_empty(), "and the wait ends with the executor");
}

#[tokio::test(start_paused = true)]
async fn a_follower_of_a_silent_executor_is_let_go_when_that_is_gone() {
    // [LOG-1] [CALL-4]
    let limited = ToolSpec { run_timeout: Some(SECOND), ..spec("silent") };
    let tools = Functions::new().with(limited, |_, context| async move {
        context.cancellation_token().cancelled().await;
        tokio::time::sleep(SECOND).await;
        Outcome::Cancelled
    });
    let world = World::new(tools);
    let (id, before) = (world.call("silent").await, world.handle.now());
    assert!(world.page(id, 0, LONG / 10).await.items.is_empty());
    assert_eq!(world.handle.now().since(before), 2 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_runaway_log_is_cut_with_its_counts_and_the_tool_goes_on() {
    // [LOG-2]
    let root = tempfile::tempdir().expect("a directory");
    let tools = Functions::new().with(spec("flood"), |_, context| async move {
        context.limit_logs(quota()).await;
        for n in 0..200 {
            context.log(Stream::Stdout, Level::Info, &format!("{n:010}")).await;
        }
        text("done")
    });
    let world = World::with(options(tools).with_logs(Arc::new(FileLogs::new(root.path()))));
    let id = world.call("flood").await;
    assert_eq!(world.end(id).await.record.state, State::Succeeded);
    let mut lines: Vec<Line> = Vec::new();
    loop {
        let page = world.page(id, lines.len() as u64, LONG).await;
        if page.items.is_empty() {
            break;
        }
        lines.extend(page.items);
    }
    assert_eq!(lines.len(), 101);
    let told = told();
    assert_eq!((lines[100].seq, &*lines[100].message), (101, &*told));
}

#[tokio::test(start_paused = true)]
async fn the_log_of_a_task_that_ends_between_two_attempts_is_closed() {
    // [LOG-2] [RETRY-1]
    let root = tempfile::tempdir().expect("a directory");
    let policy =
        retry::Policy { max_attempts: 2, on: vec![Kind::ToolFailed], ..Default::default() };
    let tools = Functions::new().with(
        ToolSpec { retry: policy, ..spec("flood") },
        |_, context| async move {
            context.limit_logs(quota()).await;
            for n in 0..200 {
                context.log(Stream::Stdout, Level::Info, &format!("{n:010}")).await;
            }
            failed()
        },
    );
    let world = World::with(options(tools).with_logs(Arc::new(FileLogs::new(root.path()))));
    let id = world.call("flood").await;
    world.reaches(id, State::Waiting).await;
    world.cancel(id).await;
    let told = told();
    let mut watch = world.handle.watch(id);
    let is_closed = async {
        loop {
            let lines = world.page(id, 100, Duration::ZERO).await.items;
            if lines.iter().map(|line| &*line.message).collect::<Vec<_>>() == [&*told] {
                return;
            }
            watch.changed().await;
        }
    };
    // The attempt closes it after its task is on record as waiting.
    tokio::time::timeout(Duration::from_secs(10), is_closed).await.expect("closed");
}
