//! A simulated extension: it polls, keeps a journal, runs commands tab by tab, and posts until it has
//! a verdict. Its posts are late, and come twice, now and then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use raincheck_loopback::Secret;
use raincheck_testkit::dice::Dice;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use turmoil::net::TcpStream;

use super::fault::Fault;
use super::history::{Log, lock, now};
use super::journal::{Journal, Record, Stage};
use super::server;
use crate::http::{SECRET, Sender, ask};

pub(crate) const HOST: &str = "browser";

const WAIT_MS: u64 = 4000;
const POLL_LIMIT: Duration = Duration::from_millis(WAIT_MS + 1500);
const POST_LIMIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(300);

/// One life of the worker.
struct Extension {
    log: Log,
    journal: Arc<Mutex<Journal>>,
    dice: Arc<Mutex<Dice>>,
    fault: Option<Fault>,
    session: String,
    bearer: Secret,
    tasks: Mutex<JoinSet<()>>,
    tabs: Mutex<BTreeMap<i64, Arc<tokio::sync::Mutex<()>>>>,
    stops: Mutex<BTreeMap<String, Arc<Notify>>>,
    sending: Mutex<BTreeSet<String>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a lock")
}

pub(crate) async fn live(
    log: Log,
    journal: Arc<Mutex<Journal>>,
    dice: Arc<Mutex<Dice>>,
    fault: Option<Fault>,
) -> turmoil::Result {
    let session = {
        let mut journal = held(&journal);
        if fault == Some(Fault::ForgetsItsJournal) {
            journal.records.clear();
        }
        journal.n_sessions += 1;
        format!("session-{}", journal.n_sessions)
    };
    lock(&log).note(now(), &format!("{session} of the worker starts"));
    let extension = Arc::new(Extension {
        log,
        journal,
        dice,
        fault,
        session,
        bearer: Secret::from_bytes(SECRET),
        tasks: Mutex::default(),
        tabs: Mutex::default(),
        stops: Mutex::default(),
        sending: Mutex::default(),
    });
    extension.recover();
    extension.poll().await
}

impl Extension {
    fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = held(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    fn note(&self, words: &str) {
        lock(&self.log).note(now(), words);
    }

    fn record(&self, id: &str) -> Option<Record> {
        held(&self.journal).get(id)
    }

    fn between(&self, low: u64, high: u64) -> Duration {
        Duration::from_millis(held(&self.dice).between(low, high))
    }

    fn one_in(&self, n: u64) -> bool {
        held(&self.dice).one_in(n)
    }

    async fn ask(&self, path: &str, body: Option<&str>) -> Option<(u16, String)> {
        let io = TcpStream::connect((server::HOST, server::PORT)).await.ok()?;
        let (name, session) = ("sim", self.session.as_str());
        let bearer = self.bearer.text();
        let sender = Sender { bearer, port: server::PORT, name, session, revision: 2 };
        ask(io, sender, path, body).await.ok()
    }

    /// Takes up what the last life left.
    fn recover(self: &Arc<Self>) {
        let (accepted, running) = {
            let journal = held(&self.journal);
            (journal.all(Stage::Accepted), journal.all(Stage::Running))
        };
        for record in running {
            let script: Value = serde_json::from_str(&record.script).unwrap_or_default();
            if script["awaits"] == true {
                // Pages outlive the worker.
                lock(&self.log).goes_on(now(), &record.id);
            }
            let words = r#""error":{"code":"worker_lost","message":"the worker was restarted"}"#;
            self.answer(&record.id, "error", words, None);
        }
        for record in accepted {
            self.start(record);
        }
    }

    async fn poll(self: Arc<Self>) -> turmoil::Result {
        let mut is_connected = false;
        loop {
            let wait_ms = if is_connected { WAIT_MS } else { 0 };
            let path = format!("/pending-queries?wait_ms={wait_ms}");
            let answer = timeout(POLL_LIMIT, self.ask(&path, None)).await.ok().flatten();
            let Some((200, body)) = answer else {
                is_connected = false;
                sleep(PAUSE).await;
                continue;
            };
            let entries: Vec<Value> = serde_json::from_str(&body)?;
            for entry in entries {
                self.deliver(&entry);
                if self.one_in(6) {
                    // The poll loop hands it to the worker once more.
                    let (again, late) = (Arc::clone(&self), self.between(0, 1500));
                    self.spawn(async move {
                        sleep(late).await;
                        again.deliver(&entry);
                    });
                }
            }
            if !is_connected {
                is_connected = true;
                self.connected();
            }
        }
    }

    /// Tells a server that is there again what it may not know.
    fn connected(self: &Arc<Self>) {
        let (received, answered) = {
            let journal = held(&self.journal);
            (journal.all(Stage::Received), journal.all(Stage::Answered))
        };
        for record in received {
            self.spawn(Arc::clone(self).accept(record));
        }
        for record in answered {
            self.spawn(Arc::clone(self).tell(record.id));
        }
    }

    fn deliver(self: &Arc<Self>, entry: &Value) {
        let id = entry["correlation_id"].as_str().unwrap_or_default().to_owned();
        if entry["type"] == "cancel" {
            self.note(&format!("{id} is to stop"));
            self.stop(&id);
            return;
        }
        let (attempt, fence) = (entry["attempt"].as_u64(), entry["fence"].as_u64());
        let (attempt, fence) = (attempt.unwrap_or_default(), fence.unwrap_or_default());
        self.note(&format!("{id} is delivered as {attempt}.{fence:x}"));
        let mut journal = held(&self.journal);
        let known = journal.records.get_mut(&id).filter(|known| {
            self.fault != Some(Fault::RunsDuplicates)
                && !(known.stage == Stage::Settled && known.attempt != attempt)
        });
        if let Some(known) = known {
            if known.fence > fence {
                // It was under way for longer than the command was in the outbox.
                return;
            }
            (known.attempt, known.fence) = (attempt, fence);
            let known = known.clone();
            drop(journal);
            lock(&self.log).meet("a delivery that came twice");
            self.again(known);
            return;
        }
        journal.n_placed += 1;
        let params = &entry["params"];
        // What is in no tab waits for none.
        let apart = -i64::try_from(journal.n_placed).unwrap_or(i64::MAX);
        let script = match params["of"].as_str() {
            Some(of) => json!({ "of": of, "ms": 20 }).to_string(),
            None => params["script"].as_str().unwrap_or_default().to_owned(),
        };
        let record = Record {
            id: id.clone(),
            attempt,
            fence,
            tab: entry["tab_id"].as_i64().unwrap_or(apart),
            script,
            deadline_ms: entry["deadline_ms"].as_u64().unwrap_or_default(),
            stage: Stage::Received,
            answer: None,
            value: None,
            place: journal.n_placed,
        };
        journal.records.insert(id, record.clone());
        drop(journal);
        self.spawn(Arc::clone(self).accept(record));
    }

    /// The same command once more: what is known of it is told, it does not run again.
    fn again(self: &Arc<Self>, known: Record) {
        match known.stage {
            Stage::Received => self.spawn(Arc::clone(self).accept(known)),
            Stage::Accepted | Stage::Running => {
                let extension = Arc::clone(self);
                self.spawn(async move {
                    extension.post(&item(&known, "pending", "")).await;
                });
            }
            Stage::Answered | Stage::Settled => self.spawn(Arc::clone(self).tell(known.id)),
        }
    }

    async fn accept(self: Arc<Self>, record: Record) {
        if self.fault == Some(Fault::RunsBeforeConfirmation) {
            self.begin(&record);
        }
        let Some(verdict) = self.post(&item(&record, "accepted", "")).await else { return };
        let known = self.record(&record.id);
        let is_open =
            known.is_some_and(|it| it.stage == Stage::Received && it.fence == record.fence);
        if !is_open {
            return;
        }
        let is_confirmed = verdict == "accepted" || self.fault == Some(Fault::RunsWhatWasRefused);
        if is_confirmed {
            self.begin(&record);
        } else if verdict != "storage_unavailable" {
            held(&self.journal).records.remove(&record.id);
        }
    }

    fn begin(self: &Arc<Self>, record: &Record) {
        let edit = |it: &mut Record| it.stage = Stage::Accepted;
        let begun = held(&self.journal).change(&record.id, &[Stage::Received], edit);
        if let Some(record) = begun {
            self.start(record);
        }
    }

    /// Stands in line for the tab.
    fn start(self: &Arc<Self>, record: Record) {
        let tab = Arc::clone(held(&self.tabs).entry(record.tab).or_default());
        let extension = Arc::clone(self);
        // Whoever comes first to the lock goes first; tasks begin in the order of their spawns.
        self.spawn(async move {
            let _turn = tab.lock().await;
            extension.run(record.id).await;
        });
    }

    async fn run(self: &Arc<Self>, id: String) {
        let edit = |it: &mut Record| it.stage = Stage::Running;
        let Some(record) = held(&self.journal).change(&id, &[Stage::Accepted], edit) else {
            return;
        };
        let stop = Arc::new(Notify::new());
        held(&self.stops).insert(id.clone(), Arc::clone(&stop));
        let run = lock(&self.log).begins(now(), &id, record.tab);
        let script: Value = serde_json::from_str(&record.script).unwrap_or_default();
        if let Some(of) = script["of"].as_str() {
            self.halt(of).await;
        }
        let work = Duration::from_millis(script["ms"].as_u64().unwrap_or_default());
        let limit = Duration::from_millis(record.deadline_ms);
        let ended = tokio::select! {
            biased;
            () = stop.notified() => "cancelled",
            () = sleep(work.min(limit)) => if work > limit { "timeout" } else { "complete" },
        };
        held(&self.stops).remove(&id);
        lock(&self.log).ends(now(), run, ended);
        if ended != "complete" && script["awaits"] == true {
            // It is on no thread that could be stopped.
            lock(&self.log).goes_on(now(), &id);
            let status = if ended == "timeout" { ended } else { "error" };
            let words = r#""error":{"code":"tool_failed","reason":"not_stopped","goes_on":true}"#;
            return self.answer(&id, status, words, None);
        }
        if ended != "complete" {
            return self.answer(&id, ended, "", None);
        }
        if let Some(of) = script["of"].as_str() {
            if self.fault != Some(Fault::LeavesThePage) {
                lock(&self.log).is_loaded_anew(now(), of);
            }
            let value = r#"{"ended":true}"#.to_owned();
            return self.answer(&id, "complete", &format!(r#""result":{value}"#), Some(value));
        }
        if script["throws"] == true {
            let words = r#""error":{"code":"script_error","message":"thrown"}"#;
            return self.answer(&id, "error", words, None);
        }
        // Bytes that a reader of numbers would write in another way.
        let value = format!(r#"{{"run":{run},"n":{},"is":[1.0,1e2,"é"]}}"#, script["n"]);
        self.answer(&id, "complete", &format!(r#""result":{value}"#), Some(value));
    }

    /// Stops a command, and waits until it is at work no more.
    async fn halt(self: &Arc<Self>, id: &str) {
        self.stop(id);
        while self.record(id).is_some_and(|it| it.stage == Stage::Running) {
            sleep(PAUSE / 10).await;
        }
    }

    fn stop(self: &Arc<Self>, id: &str) {
        let stage = self.record(id).map(|it| it.stage);
        match stage {
            None => {}
            Some(Stage::Received) => {
                held(&self.journal).records.remove(id);
            }
            Some(Stage::Accepted) => {
                let words = r#""error":{"code":"cancelled","message":"before it began"}"#;
                self.answer(id, "cancelled", words, None);
            }
            Some(Stage::Running) => {
                let stop = held(&self.stops).get(id).cloned();
                stop.iter().for_each(|stop| stop.notify_one());
            }
            Some(Stage::Answered | Stage::Settled) => {
                self.spawn(Arc::clone(self).tell(id.to_owned()));
            }
        }
    }

    /// Keeps an answer, and tells it.
    fn answer(self: &Arc<Self>, id: &str, status: &str, words: &str, value: Option<String>) {
        let edit = |it: &mut Record| {
            it.stage = Stage::Answered;
            it.answer = Some(format!("{status} {words}"));
            it.value = value;
        };
        let open = [Stage::Accepted, Stage::Running];
        let Some(record) = held(&self.journal).change(id, &open, edit) else { return };
        lock(&self.log).answered(id, record.value.as_deref());
        self.spawn(Arc::clone(self).tell(record.id));
    }

    /// Posts an answer until there is a verdict on it.
    async fn tell(self: Arc<Self>, id: String) {
        if !held(&self.sending).insert(id.clone()) {
            return;
        }
        while let Some(record) = self.record(&id) {
            let answer = record.answer.clone().unwrap_or_default();
            let Some((status, words)) = answer.split_once(' ') else { break };
            let verdict = self.post(&item(&record, status, words)).await;
            if let Some(verdict) = verdict.filter(|it| it != "storage_unavailable") {
                let is_confirmed = verdict == "accepted";
                lock(&self.log).settled(&id, record.value.as_deref().filter(|_| is_confirmed));
                let edit = |it: &mut Record| it.stage = Stage::Settled;
                held(&self.journal).change(&id, &[Stage::Answered], edit);
                break;
            }
            sleep(PAUSE).await;
        }
        held(&self.sending).remove(&id);
    }

    /// Posts an item and returns the word of its verdict, if there is one.
    async fn post(self: &Arc<Self>, item: &str) -> Option<String> {
        if self.one_in(4) {
            sleep(self.between(1, 1200)).await;
        }
        if self.one_in(5) {
            let (again, late, item) =
                (Arc::clone(self), self.between(0, 2500), format!("[{item}]"));
            self.spawn(async move {
                sleep(late).await;
                // Nobody waits for the answer to a copy.
                timeout(POST_LIMIT, again.ask("/query-result", Some(&item))).await.ok();
            });
        }
        let body = format!("[{item}]");
        let answer =
            timeout(POST_LIMIT, self.ask("/query-result", Some(&body))).await.ok().flatten();
        let word = answer.and_then(|(status, body)| verdict(status, &body));
        if word.as_deref() == Some("storage_unavailable") {
            lock(&self.log).meet("a post that could not be stored");
        }
        self.note(&format!("{item} -> {}", word.as_deref().unwrap_or("no answer")));
        word
    }
}

fn verdict(status: u16, body: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(body).ok().filter(|_| status == 200)?;
    let verdict = &answer["results"][0];
    Some(verdict["reason"].as_str().unwrap_or("accepted").to_owned())
}

fn item(record: &Record, status: &str, more: &str) -> String {
    let Record { id, attempt, fence, .. } = record;
    let comma = if more.is_empty() { "" } else { "," };
    format!(
        r#"{{"correlation_id":"{id}","attempt":{attempt},"fence":{fence},"status":"{status}"{comma}{more}}}"#
    )
}
