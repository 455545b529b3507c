//! The relay as a value: lines in, what to do with them out. It reads no clock and waits for nobody.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use raincheck_core::time::Timestamp;
use raincheck_runtime::AskedBefore;

use super::roles::{self, Event, Kind, Role, Way};
use crate::caller::{Repeat, RequestKey};
use crate::server::{MAX_BYTES, MAX_REQUESTS, Refusal};
use crate::wire::{Id, Message, parse};

/// What lists the tools.
const LIST: &str = "tools/list";

/// How many questions of an owner may be open at its client.
const MAX_QUESTIONS: usize = 1024;

/// Something to be done with a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Give it to the session of this process.
    Here(Vec<u8>, Option<RequestKey>),
    /// Send it to the owner. A request has a number, and may have been sent to another owner before.
    There(Vec<u8>, Option<(u64, Option<Repeat>)>),
    /// Write it to the client.
    Client(Vec<u8>),
    /// Refuse a request.
    Refuse(Id, Refusal),
    /// Tell the client that nobody knows what became of a call.
    Lost(Id, String),
    /// Take a request back that was to be sent to the owner, and of which it has nothing.
    Withdraw(u64),
    /// Take a question back that an owner asked.
    TakeBack(Id),
    /// Find out who owns the store.
    Decide,
}

/// A request without an answer.
#[derive(Debug)]
struct Open {
    id: Id,
    line: Vec<u8>,
    /// The tool of a call.
    tool: Option<String>,
    /// Set once an owner may have it.
    asked: Option<Asked>,
}

/// How a request is asked of the next one.
enum Again {
    /// Nobody had it.
    First,
    /// An owner had it.
    Repeat(Repeat),
    /// It is not asked: what became of it nobody can know.
    Never,
}

/// Of whom a request was asked first.
#[derive(Debug)]
struct Asked {
    /// The name of that owner's store, if it outlives the owner.
    store: Option<Arc<str>>,
    at: Timestamp,
}

impl Open {
    /// Returns what the next one has to know who is asked.
    fn again(&self, is_free: bool) -> Again {
        match &self.asked {
            None => Again::First,
            Some(_) if is_free => Again::Repeat(Repeat::Free),
            Some(Asked { store: Some(store), at }) => {
                Again::Repeat(Repeat::Of(AskedBefore { store: Arc::clone(store), at: *at }))
            }
            Some(Asked { store: None, .. }) => Again::Never,
        }
    }
}

/// The lines of one client, and who has to answer them.
#[derive(Debug)]
pub(super) struct Relay {
    /// Whether the list of tools is the owner's to tell.
    has_live_tools: bool,
    role: Role,
    process: Box<str>,
    /// The name of the owner's store, if it outlives the owner.
    store: Option<Arc<str>>,
    open: BTreeMap<u64, Open>,
    numbers: HashMap<Id, u64>,
    last: u64,
    n_bytes: usize,
    /// How the client introduced itself.
    pub(super) handshake: Handshake,
    /// What owners have asked the client.
    questions: HashSet<Id>,
}

/// What a session begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Handshake {
    /// The request `initialize`, and its id.
    pub(super) initialize: Option<(Id, Vec<u8>)>,
    /// The notification after it.
    pub(super) initialized: Option<Vec<u8>>,
}

impl Relay {
    /// Begins for a process, whose name no other has.
    pub(super) fn new(process: &str, has_live_tools: bool) -> Self {
        Self {
            has_live_tools,
            role: Role::Undecided,
            process: process.into(),
            store: None,
            open: BTreeMap::new(),
            numbers: HashMap::new(),
            last: 0,
            n_bytes: 0,
            handshake: Handshake::default(),
            questions: HashSet::new(),
        }
    }

    pub(super) const fn role(&self) -> Role {
        self.role
    }

    /// Tells whether requests wait for an answer here.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes a line of the client.
    pub(super) fn said(&mut self, line: Vec<u8>) -> Vec<Action> {
        match parse(&line) {
            Message::Request { id, method, params } => {
                if is_own(&method) && !(self.has_live_tools && method == LIST) {
                    if method != "initialize" {
                        return vec![Action::Here(line, None)];
                    }
                    self.handshake =
                        Handshake { initialize: Some((id, line.clone())), initialized: None };
                    // The owner's answer is not the client's: it has that of its own process.
                    return self.note(Kind::Introduction, line);
                }
                let tool = (method == "tools/call")
                    .then(|| params.and_then(|raw| tool_of(raw.get())).unwrap_or_default());
                self.request(id, tool, line)
            }
            Message::Initialized => {
                self.handshake.initialized = Some(line.clone());
                let mut actions = self.note(Kind::Initialized, line);
                actions.extend(self.wanted());
                actions
            }
            Message::Cancelled(id) => {
                // Its answer is not sent any more, whoever makes it; it is not asked again.
                match self.forget(&id) {
                    // Nobody has it, and nobody gets it.
                    Some((number, open)) if open.asked.is_none() => {
                        let is_in_line = self.role == Role::Attached;
                        is_in_line.then_some(Action::Withdraw(number)).into_iter().collect()
                    }
                    // It was asked while this process answered by itself.
                    None if self.role == Role::Attached => vec![Action::Here(line, None)],
                    Some(_) | None => self.note(Kind::Cancel, line),
                }
            }
            Message::Response { id, .. } => {
                let is_known = self.questions.remove(&id) || self.role != Role::Attached;
                if is_known { self.note(Kind::Reply, line) } else { Vec::new() }
            }
            Message::Nothing => self.note(Kind::Note, line),
            Message::Invalid(_) => vec![Action::Here(line, None)],
        }
    }

    fn note(&self, kind: Kind, line: Vec<u8>) -> Vec<Action> {
        match roles::way(self.role, kind) {
            Way::Here => vec![Action::Here(line, None)],
            Way::There => vec![Action::There(line, None)],
            Way::Both => vec![Action::Here(line.clone(), None), Action::There(line, None)],
            Way::Wait | Way::Nowhere => Vec::new(),
        }
    }

    fn request(&mut self, id: Id, tool: Option<String>, line: Vec<u8>) -> Vec<Action> {
        let way = roles::way(self.role, Kind::Request);
        if way == Way::Here {
            return vec![Action::Here(line, None)];
        }
        if self.numbers.contains_key(&id) {
            return vec![Action::Refuse(id, Refusal::IdTaken)];
        }
        if self.open.len() >= MAX_REQUESTS || self.n_bytes + line.len() > MAX_BYTES {
            return vec![Action::Refuse(id, Refusal::Full)];
        }
        self.last += 1;
        let number = self.last;
        self.n_bytes += line.len();
        self.numbers.insert(id.clone(), number);
        let mut actions = Vec::new();
        if way == Way::There {
            actions.push(Action::There(line.clone(), Some((number, None))));
        }
        self.open.insert(number, Open { id, line, tool, asked: None });
        actions.extend(self.wanted());
        actions
    }

    /// Notes that the client wants something that needs the store.
    fn wanted(&mut self) -> Option<Action> {
        // One that is apart asks again when its shell says so.
        let is_first = self.role == Role::Undecided;
        is_first.then(|| self.decide()).flatten()
    }

    /// Begins to find out who owns the store; nothing where that is known.
    pub(super) fn decide(&mut self) -> Option<Action> {
        self.role = roles::next(self.role, Event::Wanted)?;
        Some(Action::Decide)
    }

    /// Notes that a request begins to be written to the owner: from now on it may have it.
    /// What a later owner that has another store has of it, it has not begun.
    pub(super) fn sent(&mut self, number: u64, at: Timestamp) {
        if let Some(open) = self.open.get_mut(&number).filter(|open| open.asked.is_none()) {
            open.asked = Some(Asked { store: self.store.clone(), at });
        }
    }

    /// Takes a line of the owner.
    pub(super) fn heard(&mut self, line: Vec<u8>) -> Vec<Action> {
        match parse(&line) {
            Message::Response { id, .. } => {
                if self.forget(&id).is_none() {
                    // It was cancelled, or was never asked.
                    return Vec::new();
                }
            }
            Message::Request { id, .. } if self.questions.len() < MAX_QUESTIONS => {
                self.questions.insert(id);
            }
            Message::Request { .. } => return Vec::new(),
            Message::Cancelled(id) => {
                self.questions.remove(&id);
            }
            Message::Initialized | Message::Nothing => {}
            Message::Invalid(invalid) => {
                tracing::warn!(why = invalid.message, "the owner sent a line that is no message");
                return Vec::new();
            }
        }
        vec![Action::Client(line)]
    }

    /// Takes in who owns the store.
    pub(super) fn decided(
        &mut self,
        event: Event,
        store: Option<Arc<str>>,
        may_repeat: impl Fn(&str) -> bool,
    ) -> Vec<Action> {
        let Some(role) = roles::next(self.role, event) else { return Vec::new() };
        self.role = role;
        self.store = store;
        let mut actions = Vec::new();
        for (number, open) in std::mem::take(&mut self.open) {
            let is_free = open.tool.as_ref().is_none_or(|tool| may_repeat(tool));
            // Without a store nothing is found.
            let repeat = match open.again(is_free) {
                Again::First => None,
                Again::Repeat(repeat) if role != Role::Apart || is_free => Some(repeat),
                Again::Repeat(_) | Again::Never => {
                    self.drop_number(&open);
                    actions.push(Action::Lost(open.id, open.tool.unwrap_or_default()));
                    continue;
                }
            };
            if role == Role::Attached {
                actions.push(Action::There(open.line.clone(), Some((number, repeat))));
                self.open.insert(number, open);
            } else {
                self.drop_number(&open);
                let key = repeat.map(|it| RequestKey::new(&self.process, number, Some(it)));
                actions.push(Action::Here(open.line, key));
            }
        }
        actions
    }

    /// Notes that the owner is gone.
    pub(super) fn lost(&mut self) -> Vec<Action> {
        let Some(role) = roles::next(self.role, Event::Lost) else { return Vec::new() };
        self.role = role;
        self.store = None;
        let questions = self.questions.drain().map(Action::TakeBack);
        questions.chain([Action::Decide]).collect()
    }

    fn forget(&mut self, id: &Id) -> Option<(u64, Open)> {
        let number = self.numbers.remove(id)?;
        let open = self.open.remove(&number)?;
        self.n_bytes -= open.line.len();
        Some((number, open))
    }

    fn drop_number(&mut self, open: &Open) {
        self.numbers.remove(&open.id);
        self.n_bytes -= open.line.len();
    }
}

/// Tells whether every process answers a request by itself.
fn is_own(method: &str) -> bool {
    matches!(method, "initialize" | "server/discover" | "ping" | LIST)
}

/// Reads which tool a call names.
fn tool_of(params: &str) -> Option<String> {
    /// The member that matters.
    #[derive(serde::Deserialize)]
    struct Params {
        name: String,
    }

    serde_json::from_str::<Params>(params).ok().map(|params| params.name)
}

#[cfg(test)]
#[path = "relay/tests.rs"]
mod tests;
