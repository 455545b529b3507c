//! Sessions of the revisions that have them: who introduced itself, what it has asked, its own stream.

use std::collections::{BTreeMap, HashMap};
use std::future::{Future, ready};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientNotification, InitializeRequestParams, InitializedNotification, JsonRpcMessage, RequestId,
};
use rmcp::service::{RunningService, RxJsonRpcMessage, TxJsonRpcMessage, serve_directly_with_ct};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::channel::{Inlet, Outlet, channel};
use super::owner::Owner;
use crate::server::{Backlog, Session, to_line};
use crate::wire::Id;

/// How many bytes of what belongs to no request a session may leave unread.
const UNREAD: usize = 256 << 10;

/// How many questions of the server one session may leave unanswered.
const MAX_QUESTIONS: usize = 256;

/// One session of one client.
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) id: Box<str>,
    pub(super) owner: Arc<Owner>,
    /// Who introduced itself, with the version that was agreed on.
    pub(super) client: InitializeRequestParams,
    /// How many bytes that was at most; each request has a copy.
    pub(super) n_bytes: usize,
    pub(super) face: Session,
    /// Fires when the session is over.
    pub(super) closing: CancellationToken,
    state: Mutex<State>,
    /// What the server says beside answers.
    standing: Standing,
}

#[derive(Debug)]
struct State {
    /// What is asked and not answered, by the client's ids, and what cancels it.
    asked: HashMap<Id, CancellationToken>,
    /// What the server has asked, by the ids that the client sees.
    questions: BTreeMap<i64, Question>,
    next_question: i64,
    /// Where a message goes that belongs to no request.
    stream: Option<Outlet>,
    seen_at: Instant,
}

/// A question of the server: who waits for its answer, and under which id.
#[derive(Debug)]
struct Question {
    to: mpsc::UnboundedSender<RxJsonRpcMessage<RoleServer>>,
    id: RequestId,
}

/// The service that speaks for the whole session.
#[derive(Debug)]
struct Standing {
    to: mpsc::UnboundedSender<RxJsonRpcMessage<RoleServer>>,
    /// Ends it when it is dropped.
    running: RunningService<RoleServer, Session>,
}

impl HttpSession {
    /// Begins a session.
    pub(super) fn begin(
        id: Box<str>,
        owner: Arc<Owner>,
        (client, n_bytes): (InitializeRequestParams, usize),
        face: Session,
        closing: CancellationToken,
    ) -> Arc<Self> {
        Arc::new_cyclic(|session: &Weak<Self>| {
            let (to, asked) = Asked::new();
            let standing = Voice { session: Weak::clone(session), asked };
            let (service, client_info) = (face.clone(), Some(client.clone()));
            let running =
                serve_directly_with_ct(service, standing, client_info, closing.child_token());
            let state = State {
                asked: HashMap::new(),
                questions: BTreeMap::new(),
                next_question: 0,
                stream: None,
                seen_at: Instant::now(),
            };
            let standing = Standing { to, running };
            let state = Mutex::new(state);
            Self { id, owner, client, n_bytes, face, closing, state, standing }
        })
    }

    /// Notes that the client has something to say.
    fn seen(&self) {
        self.state().seen_at = Instant::now();
    }

    /// Returns since when nothing has been asked or listened to; `None` while something is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        let listens = state.stream.as_ref().is_some_and(Outlet::is_open);
        (state.asked.is_empty() && !listens).then_some(state.seen_at)
    }

    /// Takes an id for a request that `cancelled` gives up; `false` when it is taken.
    pub(super) fn take(&self, id: &Id, cancelled: &CancellationToken) -> bool {
        let mut state = self.state();
        if state.asked.contains_key(id) {
            return false;
        }
        state.asked.insert(id.clone(), cancelled.clone());
        true
    }

    /// Frees an id: its handler has ended.
    pub(super) fn end(&self, id: &Id) {
        let mut state = self.state();
        state.asked.remove(id);
        state.seen_at = Instant::now();
    }

    /// Gives a request up.
    pub(super) fn cancel(&self, id: &Id) {
        if let Some(cancelled) = self.state().asked.get(id) {
            cancelled.cancel();
        }
    }

    /// Tells the client of tools that come and go, until the session is over.
    pub(super) fn announcing(&self) -> impl Future<Output = ()> + Send + use<> {
        let (face, closing) = (self.face.clone(), self.closing.clone());
        let client = self.standing.running.peer().clone();
        async move {
            tokio::select! {
                () = face.announce(client) => {}
                () = closing.cancelled_owned() => {}
            }
        }
    }

    /// Notes that the client is ready to work.
    pub(super) fn initialized(&self) {
        let ready = ClientNotification::from(InitializedNotification::default());
        // It ends with the session alone.
        self.standing.to.send(JsonRpcMessage::notification(ready)).ok();
    }

    /// Takes the client's answer to a question; `false` when nobody asked.
    pub(super) fn answered(
        &self,
        id: &Id,
        with: impl FnOnce(RequestId) -> RxJsonRpcMessage<RoleServer>,
    ) -> bool {
        let Id::Number(number) = id else { return false };
        let question = self.state().questions.remove(number);
        question.is_some_and(|question| question.to.send(with(question.id)).is_ok())
    }

    /// Begins the stream of what belongs to no request; one that was open ends.
    pub(super) fn listen(&self) -> Inlet {
        // Counted apart: whoever does not read what he did not ask for still gets his answers.
        let (outlet, inlet) = channel(&Arc::new(Backlog::new(UNREAD)));
        self.state().stream = Some(outlet);
        inlet
    }

    /// Ends a stream that is not read, if it is still the session's.
    fn stop_telling(&self, stream: &Outlet) {
        let mut state = self.state();
        if state.stream.as_ref().is_some_and(|one| one.is(stream)) {
            state.stream = None;
        }
    }

    /// Ends the stream, and everything that waits.
    pub(super) fn close(&self) {
        self.closing.cancel();
        self.state().stream = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a service has asked the client, and the answers.
#[derive(Debug)]
pub(super) struct Asked {
    to: mpsc::UnboundedSender<RxJsonRpcMessage<RoleServer>>,
    answers: mpsc::UnboundedReceiver<RxJsonRpcMessage<RoleServer>>,
}

impl Asked {
    /// Begins without a question; what is sent into the first half is as good as an answer.
    pub(super) fn new() -> (mpsc::UnboundedSender<RxJsonRpcMessage<RoleServer>>, Self) {
        let (to, answers) = mpsc::unbounded_channel();
        (to.clone(), Self { to, answers })
    }

    /// Writes a question under an id that the session has once; `None` when there are too many.
    pub(super) fn ask(
        &self,
        session: &HttpSession,
        mut item: TxJsonRpcMessage<RoleServer>,
    ) -> Option<Vec<u8>> {
        let JsonRpcMessage::Request(request) = &mut item else { return None };
        let mut state = session.state();
        state.questions.retain(|_, question| !question.to.is_closed());
        if state.questions.len() >= MAX_QUESTIONS {
            return None;
        }
        let number = state.next_question;
        state.next_question += 1;
        let id = std::mem::replace(&mut request.id, RequestId::Number(number));
        state.questions.insert(number, Question { to: self.to.clone(), id });
        drop(state);
        text(&item)
    }

    /// Waits for the next answer.
    ///
    /// # Cancel safety
    /// Safe: none is lost.
    pub(super) async fn answer(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.answers.recv().await
    }
}

/// The transport of what belongs to no request: it goes to the session's own stream.
#[derive(Debug)]
struct Voice {
    session: Weak<HttpSession>,
    asked: Asked,
}

impl Voice {
    /// Puts a message into the stream. One that nobody reads ends with what it holds: what follows
    /// would be missed without a sign of it.
    fn say(&self, item: TxJsonRpcMessage<RoleServer>) -> Option<()> {
        let session = self.session.upgrade()?;
        let stream = session.state().stream.clone()?;
        let bytes = match &item {
            JsonRpcMessage::Request(_) => self.asked.ask(&session, item)?,
            JsonRpcMessage::Response(_)
            | JsonRpcMessage::Notification(_)
            | JsonRpcMessage::Error(_) => text(&item)?,
        };
        if stream.put_if_room(bytes) {
            return Some(());
        }
        session.stop_telling(&stream);
        None
    }
}

impl Transport<RoleServer> for Voice {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let said = self.say(item);
        ready(said.ok_or_else(|| io::ErrorKind::NotConnected.into()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.asked.answer().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The sessions of a service.
#[derive(Debug)]
pub(super) struct Sessions {
    table: Mutex<HashMap<Box<str>, Arc<HttpSession>>>,
    most: usize,
    idle: Duration,
}

impl Sessions {
    /// Begins without a session: an owner may have `most`, and one that says nothing for `idle` ends.
    pub(super) fn new(most: usize, idle: Duration) -> Self {
        Self { table: Mutex::default(), most, idle }
    }

    /// Adds a session. Where its owner has as many as it may, the one that was idle longest ends for it.
    ///
    /// # Errors
    /// When none of them is idle.
    pub(super) fn add(&self, session: &Arc<HttpSession>) -> Result<(), Full> {
        let mut table = self.table();
        let (now, idle) = (Instant::now(), self.idle);
        table.retain(|_, one| {
            let is_stale = one.idle_since().is_some_and(|since| now - since >= idle);
            if is_stale {
                one.close();
            }
            !is_stale
        });
        let of_owner = || table.values().filter(|one| one.owner.scope == session.owner.scope);
        if of_owner().count() >= self.most {
            let idle = of_owner().filter_map(|one| Some((one.idle_since()?, one.id.clone())));
            let (_, id) = idle.min().ok_or(Full)?;
            if let Some(longest) = table.remove(&id) {
                longest.close();
            }
        }
        table.insert(session.id.clone(), Arc::clone(session));
        Ok(())
    }

    /// Finds the session of an owner; one of another owner is as unknown as one that never was.
    pub(super) fn find(&self, id: &str, owner: &Owner) -> Option<Arc<HttpSession>> {
        let mut table = self.table();
        let session = table.get(id).filter(|one| one.owner.scope == owner.scope)?;
        let is_stale = session.idle_since().is_some_and(|since| since.elapsed() >= self.idle);
        if is_stale {
            session.close();
            table.remove(id);
            return None;
        }
        session.seen();
        Some(Arc::clone(session))
    }

    /// Ends a session.
    pub(super) fn remove(&self, session: &HttpSession) {
        self.table().remove(&session.id);
        session.close();
    }

    /// Ends all sessions.
    pub(super) fn clear(&self) {
        self.table().drain().for_each(|(_, session)| session.close());
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<HttpSession>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An owner has as many sessions as it may, and uses all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Writes a message without the line end.
pub(super) fn text(message: &TxJsonRpcMessage<RoleServer>) -> Option<Vec<u8>> {
    let mut line = to_line(message)?;
    line.pop();
    Some(line)
}
