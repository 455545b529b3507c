//! Short words for what the tests do.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::{Content, Json};
use raincheck_core::decide::Change;
use raincheck_core::ids::{Fence, TaskId};
use raincheck_core::lane;
use raincheck_core::retry;
use raincheck_core::scope::Scope;
use raincheck_core::store::{
    Claim, Claimed, Error, Found, NoSink, Submit, Submitted, TaskStore, Update, UpdateResult,
};
use raincheck_core::task::{Limits, Outcome, Resources, Task, TaskDetails, TaskRecord};
use raincheck_core::time::Timestamp;
use raincheck_store_sqlite::{Options, SqliteStore};

pub(crate) const START: Timestamp = Timestamp::from_millis(1_000_000);
pub(crate) const LANE: &str = "lane";
pub(crate) const REATTACH: Duration = Duration::from_secs(10);

pub(crate) fn id(n: u64) -> TaskId {
    TaskId::from_parts(1_000 + n, [1; 10])
}

pub(crate) fn at(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

/// Opens the store of a folder, with one lane.
pub(crate) async fn open_at(
    folder: &Path,
    now: Timestamp,
) -> Result<(SqliteStore, Vec<Claimed>), Error> {
    let store = SqliteStore::new(Options::process(folder.join("tasks.db")));
    let lanes = vec![(LANE.into(), lane::Config::new(2, 1_000))];
    let survivors = store.open(now, lanes, REATTACH, Arc::new(NoSink)).await?;
    Ok((store, survivors))
}

pub(crate) async fn open(folder: &Path) -> (SqliteStore, Vec<Claimed>) {
    open_at(folder, START).await.expect("the store opens")
}

pub(crate) fn one(n: u64, edit: impl FnOnce(&mut Task)) -> Submit {
    let mut task = Task {
        id: id(n),
        scope: Scope::local(),
        tool: "tool".into(),
        lane: LANE.into(),
        priority: 0,
        tags: Vec::new(),
        key: None,
        inputs_hash: 0,
        limits: Limits::default(),
        resources: Resources::default(),
        supports_cancel: true,
        is_idempotent: false,
        retry: retry::Policy::default(),
        trace: None,
        submitted_at: START,
    };
    edit(&mut task);
    let inputs = Json::parse(format!("{{\"n\":{n}.0}}")).expect("JSON");
    Submit { task, inputs, waiting: None, is_inline: false, is_known: false }
}

pub(crate) async fn submit(store: &SqliteStore, submit: Submit) -> Submitted {
    let posted = store.submit(START, vec![submit], None).await.expect("a submit");
    posted.receipt.committed().await.expect("its commit");
    posted.value.0.into_iter().next().expect("an answer")
}

pub(crate) async fn claim(store: &SqliteStore) -> Option<Claimed> {
    let claim = Claim { lanes: vec![LANE.into()], n: 1 };
    let posted = store.claim(START, claim).await.expect("a claim");
    posted.receipt.committed().await.expect("its commit");
    posted.value.into_iter().next()
}

pub(crate) fn attempt(claimed: &Claimed, change: Change) -> Update {
    Update { releases: true, ..Update::attempt(claimed.record.id(), claimed.record.fence, change) }
}

pub(crate) async fn update(store: &SqliteStore, update: Update) -> UpdateResult {
    let posted = store.update(START, vec![update], None).await.expect("a post");
    posted.receipt.committed().await.expect("its commit");
    posted.value.0.into_iter().next().expect("a verdict")
}

pub(crate) fn cancel(n: u64) -> Update {
    let change = Change::RequestCancel { reason: Some("why".into()) };
    Update { fence: None, ..Update::attempt(id(n), Fence::NONE, change) }
}

pub(crate) fn done(text: &str) -> Change {
    Change::Finish(Outcome::Succeeded(vec![Content::Text(text.into())]))
}

pub(crate) async fn find(store: &SqliteStore, n: u64) -> Found {
    store.find(&Scope::local(), id(n)).await.expect("a find")
}

pub(crate) async fn task(store: &SqliteStore, n: u64) -> (TaskRecord, Arc<TaskDetails>) {
    match find(store, n).await {
        Found::Task(record, payload) => (record, payload),
        found @ (Found::Tombstone(_) | Found::Absent) => panic!("task {n} is {found:?}"),
    }
}
