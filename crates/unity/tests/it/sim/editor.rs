//! A simulated editor: its main thread, its journal, which outlives its connections, and its connections.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use raincheck_core::ids::TaskId;
use raincheck_testkit::dice::Dice;
use raincheck_testkit::editor::{Editor, ended};
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::Fault;
use crate::world::{PORT, SECOND, reach, secret, who};

/// Something that happens to the editor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// The connection is lost for a while.
    Drop(Duration),
    /// The code is loaded anew.
    Reload(Duration),
    /// The process dies, and what it ran with it.
    Crash(Duration),
    /// It compiles for a while.
    Compile(Duration),
}

/// What the editor knows; it outlives connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    /// Calls that were taken on and have not ended.
    queue: VecDeque<Value>,
    cancelled: BTreeSet<String>,
    seen: BTreeSet<String>,
    /// Results that were not acknowledged, by call.
    pub(crate) outbox: BTreeMap<String, Value>,
    /// How often each task ran.
    pub(crate) runs: BTreeMap<TaskId, u32>,
    /// What each task produced.
    pub(crate) produced: BTreeMap<TaskId, Value>,
    pub(crate) complaints: Vec<String>,
    n_lives: u64,
    is_healed: bool,
}

struct Shared {
    journal: Mutex<Journal>,
    network: Mutex<mpsc::UnboundedSender<DuplexStream>>,
    dice: Mutex<Dice>,
    fault: Option<Fault>,
    /// The main thread has something to do.
    work: Notify,
    /// A result is there.
    done: Notify,
    acts: mpsc::UnboundedSender<Act>,
}

/// An editor and its lives.
pub(crate) struct Life {
    shared: Arc<Shared>,
    _running: JoinSet<()>,
}

fn request_of(call: &Value) -> String {
    call["request_id"].as_str().expect("a name").to_owned()
}

fn task_of(request: &str) -> TaskId {
    request.rsplit_once('.').expect("a call").0.parse().expect("a task")
}

impl Life {
    pub(crate) fn new(
        fault: Option<Fault>,
        dice: Dice,
        network: mpsc::UnboundedSender<DuplexStream>,
    ) -> Self {
        let (acts, acted) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            journal: Mutex::default(),
            network: Mutex::new(network),
            dice: Mutex::new(dice),
            fault,
            work: Notify::new(),
            done: Notify::new(),
            acts,
        });
        let mut running = JoinSet::new();
        running.spawn(Arc::clone(&shared).main_thread());
        running.spawn(Arc::clone(&shared).connections(acted));
        Self { shared, _running: running }
    }

    pub(crate) fn act(&self, act: Act) {
        self.shared.acts.send(act).expect("an editor");
    }

    /// Finds the next server.
    pub(crate) fn find(&self, network: mpsc::UnboundedSender<DuplexStream>) {
        *self.shared.network.lock().expect("a network") = network;
    }

    pub(crate) fn heal(&self) {
        self.shared.journal().is_healed = true;
    }

    pub(crate) fn has_begun(&self, id: TaskId) -> bool {
        self.shared.journal().runs.contains_key(&id)
    }

    pub(crate) fn journal(&self) -> Journal {
        self.shared.journal().clone()
    }

    /// Waits until nothing is under way any more.
    pub(crate) async fn settled(&self, by: Instant) {
        while Instant::now() < by {
            let is_settled = {
                let journal = self.shared.journal();
                journal.queue.is_empty() && journal.outbox.is_empty()
            };
            if is_settled {
                return;
            }
            sleep(SECOND / 10).await;
        }
    }
}

impl Shared {
    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().expect("a journal")
    }

    fn one_in(&self, n: u64) -> bool {
        let is_healed = self.journal().is_healed;
        !is_healed && self.dice.lock().expect("dice").one_in(n)
    }

    /// Runs one call after the other.
    async fn main_thread(self: Arc<Self>) {
        loop {
            let work = self.work.notified();
            let (next, life) = {
                let journal = self.journal();
                (journal.queue.front().cloned(), journal.n_lives)
            };
            let Some(call) = next else {
                work.await;
                continue;
            };
            let request = request_of(&call);
            let n_runs = if self.fault == Some(Fault::RunsTwice) { 2 } else { 1 };
            *self.journal().runs.entry(task_of(&request)).or_default() += n_runs;
            let text = call["params"]["path"].as_str().or(call["params"]["filter"].as_str());
            let (_, ms) = text.and_then(|text| text.split_once('/')).expect("a length");
            let end = Instant::now() + Duration::from_millis(ms.parse().expect("a number"));
            let is_cancelled = loop {
                let is_cancelled = self.journal().cancelled.contains(&request);
                if is_cancelled || Instant::now() >= end || self.journal().n_lives != life {
                    break is_cancelled;
                }
                sleep(Duration::from_millis(5)).await;
            };
            let mut journal = self.journal();
            if journal.n_lives != life {
                // It died with the process.
                continue;
            }
            journal.queue.pop_front();
            let value = json!({ "of": request });
            let message = if is_cancelled {
                ended(&call, "cancelled", Value::Null)
            } else {
                journal.produced.insert(task_of(&request), value.clone());
                ended(&call, "ok", value)
            };
            journal.outbox.insert(request, message);
            drop(journal);
            self.done.notify_one();
        }
    }

    /// Connects again and again, and does what happens to it.
    async fn connections(self: Arc<Self>, mut acts: mpsc::UnboundedReceiver<Act>) {
        loop {
            let pause = self.one_connection(&mut acts).await;
            if self.fault == Some(Fault::LosesItsOutbox) {
                self.journal().outbox.clear();
            }
            sleep(pause).await;
        }
    }

    async fn one_connection(&self, acts: &mut mpsc::UnboundedReceiver<Act>) -> Duration {
        const AGAIN: Duration = Duration::from_millis(150);
        let network = self.network.lock().expect("a network").clone();
        let Some(io) = reach(&network) else { return AGAIN };
        let mut who = who();
        {
            let journal = self.journal();
            let listed = |call: &Value| json!({ "request_id": call["request_id"], "tool_name": call["tool_name"] });
            let running: Vec<Value> = journal.queue.iter().map(listed).collect();
            who.running = json!(running);
            if self.fault == Some(Fault::ForgetsWhatItRuns) {
                who.running = json!([]);
            }
            who.finished = json!(journal.outbox.keys().collect::<Vec<_>>());
        }
        let secret = secret();
        let connecting = Editor::connect(io, PORT, &secret, &who);
        let Ok(Some(mut editor)) = timeout(SECOND, connecting).await else { return AGAIN };
        let mut sent = BTreeSet::new();
        loop {
            let unsent: Vec<(String, Value)> = {
                let journal = self.journal();
                let new = journal.outbox.iter().filter(|(request, _)| !sent.contains(*request));
                new.map(|(request, message)| (request.clone(), message.clone())).collect()
            };
            for (request, message) in unsent {
                if self.one_in(20) {
                    return AGAIN;
                }
                // One comes twice, now and then.
                for _ in 0..if self.one_in(6) { 2 } else { 1 } {
                    editor.socket.say(&message).await;
                }
                sent.insert(request);
            }
            let heard = tokio::select! {
                message = editor.socket.hear() => message,
                () = self.done.notified() => continue,
                Some(act) = acts.recv() => match self.happens(act, &mut editor).await {
                    Some(pause) => return pause,
                    None => continue,
                },
                () = sleep(5 * SECOND) => {
                    editor.state("ready").await;
                    continue;
                }
            };
            let Some(message) = heard else { return AGAIN };
            if self.hears(message, &mut editor).await.is_none() {
                return AGAIN;
            }
        }
    }

    /// Takes in a message; `None` when the connection is lost over it.
    async fn hears(&self, message: Value, editor: &mut Editor<DuplexStream>) -> Option<()> {
        match message["type"].as_str().expect("a type") {
            "execute" | "submit_job" => {
                if self.one_in(15) {
                    return None;
                }
                let request = request_of(&message);
                let is_new = {
                    let mut journal = self.journal();
                    let is_new = journal.seen.insert(request.clone());
                    if is_new && !journal.queue.is_empty() && self.fault.is_none() {
                        let words = format!("{request} came while another call was there");
                        journal.complaints.push(words);
                    }
                    if is_new {
                        journal.queue.push_back(message.clone());
                    }
                    is_new
                };
                if is_new {
                    self.work.notify_one();
                }
                if self.one_in(15) {
                    return None;
                }
                editor.about("accepted", &message).await;
            }
            "cancel" => {
                let target = message["target_request_id"].as_str().expect("a target").to_owned();
                self.journal().cancelled.insert(target);
            }
            "result_ack" => {
                let request = request_of(&message);
                self.journal().outbox.remove(&request);
            }
            _ => {}
        }
        Some(())
    }

    /// Something happens; a pause when the connection is lost over it.
    async fn happens(&self, act: Act, editor: &mut Editor<DuplexStream>) -> Option<Duration> {
        match act {
            Act::Drop(pause) => Some(pause),
            Act::Reload(pause) => {
                editor.state("reloading").await;
                editor.socket.say(json!({ "type": "bye", "reason": "reload" })).await;
                Some(pause)
            }
            Act::Crash(pause) => {
                let mut journal = self.journal();
                journal.n_lives += 1;
                journal.queue.clear();
                Some(pause)
            }
            Act::Compile(pause) => {
                editor.state("compiling").await;
                sleep(pause.min(3 * SECOND)).await;
                editor.state("ready").await;
                None
            }
        }
    }
}
