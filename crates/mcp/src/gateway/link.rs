//! One connection to the other server: requests of ours and their answers, and what it says by itself.

use std::collections::HashMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use raincheck_core::content::Json;

use super::connect::CLOSED;
use super::message::{self, Incoming, RpcError};
use crate::transport::stdio::{Lines, Read};

/// The longest line that is taken, in bytes.
const MAX_LINE: usize = 64 << 20;

/// How many lines may wait to be written. A server that does not read so many is given up.
const MAX_UNREAD: usize = 4096;

/// How long is still read of a server that closed its input.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// How many questions of the other server are answered at once.
const MAX_ASKED: usize = 64;

/// What hears what the other server says by itself.
#[async_trait]
pub(super) trait Hears: Send + Sync {
    /// Hears a notification.
    async fn notified(&self, method: &str, params: Option<&RawValue>);

    /// Hears a line that is no message.
    async fn noise(&self, line: &[u8]);

    /// Answers a request.
    fn asked(&self, method: &str, params: Option<&RawValue>) -> Answering;
}

/// The answer to a request of the other server, in the making.
pub(super) type Answering = Pin<Box<dyn Future<Output = Result<Json, RpcError>> + Send>>;

/// Why a request got no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection ended; whether the request had been written, in whole or in part.
    Lost { is_written: bool },
    /// The other server answered with an error.
    Refused(RpcError),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    out: mpsc::Sender<Arc<Outgoing>>,
    pending: Mutex<HashMap<u64, oneshot::Sender<Result<Json, RpcError>>>>,
    next_id: AtomicU64,
    /// Fires when the connection is to end: nothing is put into its queue any more.
    over: CancellationToken,
    /// Set once nothing is written any more, and whoever waited was told.
    has_ended: AtomicBool,
}

/// A line to be written. It is there until its writing begins, or until it is withdrawn.
#[derive(Debug)]
struct Outgoing(Mutex<Line>);

#[derive(Debug)]
enum Line {
    Waiting(String),
    Withdrawn,
    Begun,
}

impl Outgoing {
    fn new(line: String) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Line::Waiting(line))))
    }

    fn now(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the line to write it; `None` where it was withdrawn.
    fn begin(&self) -> Option<String> {
        let mut line = self.now();
        match std::mem::replace(&mut *line, Line::Begun) {
            Line::Waiting(text) => Some(text),
            before @ (Line::Withdrawn | Line::Begun) => {
                *line = before;
                None
            }
        }
    }

    /// Takes the line back; tells whether nothing of it was written, nor will be.
    fn withdraw(&self) -> bool {
        let mut line = self.now();
        if matches!(*line, Line::Waiting(_)) {
            *line = Line::Withdrawn;
        }
        matches!(*line, Line::Withdrawn)
    }
}

/// What is to be written to a connection.
#[derive(Debug)]
pub(super) struct Outbox(mpsc::Receiver<Arc<Outgoing>>);

impl Link {
    /// Makes a connection, and what [`run`](Self::run) writes of it.
    pub(super) fn new() -> (Arc<Self>, Outbox) {
        let (out, lines) = mpsc::channel(MAX_UNREAD);
        let link = Self {
            out,
            pending: Mutex::default(),
            next_id: AtomicU64::new(1),
            over: CancellationToken::new(),
            has_ended: AtomicBool::new(false),
        };
        (Arc::new(link), Outbox(lines))
    }

    /// Tells whether the connection has ended.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Ends the connection, of which nothing is written any more: whoever waits for an answer gets none.
    pub(super) fn end(&self) {
        self.over.cancel();
        self.has_ended.store(true, Ordering::SeqCst);
        self.pending().clear();
    }

    /// Begins a request. Requests are written in the order in which they were begun.
    pub(super) fn ask<P: Serialize>(self: &Arc<Self>, method: &str, params: P) -> Asked {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.pending().insert(id, answer);
        let line = self.put(message::request(Some(id), method, Some(params)));
        if self.has_ended.load(Ordering::SeqCst) {
            // Whoever ended it may have looked before this one was there. Before that end, its line may
            // still be written.
            self.pending().remove(&id);
        }
        Asked { id, link: Arc::clone(self), answered, line }
    }

    /// Makes a request and waits for its result.
    pub(super) async fn request<P: Serialize>(
        self: &Arc<Self>,
        method: &str,
        params: P,
    ) -> Result<Json, Failure> {
        self.ask(method, params).answer().await
    }

    /// Says something that gets no answer.
    pub(super) fn notify<P: Serialize>(&self, method: &str, params: Option<P>) {
        self.put(message::request(None, method, params));
    }

    fn put(&self, line: String) -> Arc<Outgoing> {
        let line = Outgoing::new(line);
        if self.out.try_send(Arc::clone(&line)).is_err() {
            // It is full of what was not read, or over already.
            self.over.cancel();
        }
        line
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Json, RpcError>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the connection to its end and says why it ended.
    pub(super) async fn run(
        &self,
        reader: impl AsyncRead + Unpin,
        writer: impl AsyncWrite + Unpin,
        outbox: Outbox,
        hears: &dyn Hears,
    ) -> &'static str {
        let why = {
            let mut reading = pin!(self.read(reader, hears));
            tokio::select! {
                why = &mut reading => why,
                why = write(writer, outbox) => {
                    // It may have answered before it closed its input.
                    timeout(LAST_WORDS, reading).await.unwrap_or(why)
                }
                () = self.over.cancelled() => "it does not read what it is sent",
            }
        };
        self.end();
        why
    }

    async fn read(&self, reader: impl AsyncRead + Unpin, hears: &dyn Hears) -> &'static str {
        let mut lines = Lines::new(reader, MAX_LINE);
        let mut answers: JoinSet<()> = JoinSet::new();
        loop {
            let line = match lines.next().await {
                Ok(Read::Line(line)) => line,
                Ok(Read::TooLong) => return "it wrote a line of more than 64 MiB",
                Ok(Read::End) => return CLOSED,
                Err(_) => return "the connection broke",
            };
            while answers.try_join_next().is_some() {}
            match message::read(&line) {
                Incoming::Response { id, outcome } => self.answered(id, outcome),
                Incoming::Request { id, method, params } => {
                    let answering = hears.asked(&method, params);
                    if answers.len() >= MAX_ASKED {
                        let error =
                            RpcError { code: -32000, message: "too many".into(), data: None };
                        self.put(message::answer(id, &Err(error)));
                        continue;
                    }
                    let (id, out) = (id.to_owned(), self.out.clone());
                    answers.spawn(async move {
                        let line = message::answer(&id, &answering.await);
                        // Nobody waits for it once the connection is over.
                        let _ = out.send(Outgoing::new(line)).await;
                    });
                }
                Incoming::Notification { method, params } => hears.notified(&method, params).await,
                Incoming::Noise => hears.noise(&line).await,
            }
        }
    }

    fn answered(&self, id: u64, outcome: Result<&RawValue, &RawValue>) {
        let Some(waiting) = self.pending().remove(&id) else {
            tracing::debug!(id, "the wrapped server answered what nobody waits for");
            return;
        };
        let outcome = match outcome {
            Ok(result) => Ok(Json::from_raw(result.to_owned())),
            Err(error) => Err(RpcError::read(error)),
        };
        // Whoever asked may have gone.
        let _ = waiting.send(outcome);
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, Outbox(mut lines): Outbox) -> &'static str {
    while let Some(outgoing) = lines.recv().await {
        let Some(mut line) = outgoing.begin() else { continue };
        line.push('\n');
        if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
            return "it closed its input";
        }
    }
    "nobody needs it any more"
}

/// A request that waits for its answer. Dropping it forgets the request, and takes it back where nothing of
/// it was written; the other server is not told.
#[derive(Debug)]
pub(super) struct Asked {
    /// The id of the request.
    pub(super) id: u64,
    link: Arc<Link>,
    answered: oneshot::Receiver<Result<Json, RpcError>>,
    line: Arc<Outgoing>,
}

impl Asked {
    /// Waits for the answer. To be called again only while it has not returned.
    ///
    /// # Cancel safety
    /// Safe: an answer that was not returned is returned by the next call.
    pub(super) async fn answer(&mut self) -> Result<Json, Failure> {
        match (&mut self.answered).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(error)) => Err(Failure::Refused(error)),
            Err(_) => Err(Failure::Lost { is_written: !self.line.withdraw() }),
        }
    }

    /// Tells the other server that the answer is not wanted any more; returns whether it ever heard of the
    /// request. Of one that was not written nothing is.
    pub(super) fn cancel(&self, reason: &str) -> bool {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled<'a> {
            request_id: u64,
            reason: &'a str,
        }
        let params = Cancelled { request_id: self.id, reason };
        if self.line.withdraw() {
            return false;
        }
        self.link.notify("notifications/cancelled", Some(params));
        true
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.line.withdraw();
        self.link.pending().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;

    /// Hears nothing.
    struct Deaf;

    #[async_trait]
    impl Hears for Deaf {
        async fn notified(&self, _: &str, _: Option<&RawValue>) {}

        async fn noise(&self, _: &[u8]) {}

        fn asked(&self, method: &str, _: Option<&RawValue>) -> Answering {
            let answer = Err(RpcError::no_method(method));
            Box::pin(async move { answer })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_pass_and_answers_find_their_requests() {
        // [GATE-2]
        let (ours, theirs) = tokio::io::duplex(4096);
        let (link, outbox) = Link::new();
        let (reader, writer) = tokio::io::split(ours);
        let running = link.run(reader, writer, outbox, &Deaf);
        let (from, mut to) = tokio::io::split(theirs);
        let talk = async {
            let params = Json::parse(r#"{"z":1.0,"a":1e2}"#).expect("JSON");
            let (mut first, mut second) = (link.ask("one", &params), link.ask("two", &params));
            let mut lines = BufReader::new(from).lines();
            let line = lines.next_line().await.expect("a line").expect("a line");
            assert!(line.contains(r#""params":{"z":1.0,"a":1e2}"#), "{line}");
            let answers = "noise\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"b\":1e3}}\n\
                           {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"roots/list\"}\n\
                           {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":\"no\"}}\n";
            to.write_all(answers.as_bytes()).await.expect("room");
            assert_eq!(second.answer().await.expect("a result").get(), r#"{"b":1e3}"#);
            let refused = first.answer().await.expect_err("an error");
            assert!(matches!(refused, Failure::Refused(RpcError { code: -32602, .. })));
            lines.next_line().await.expect("the second request");
            let refusal = lines.next_line().await.expect("a line").expect("a line");
            assert!(refusal.contains("-32601"), "{refusal}");
            first.cancel("enough");
            let cancel = lines.next_line().await.expect("a line").expect("a line");
            assert!(cancel.contains(r#""params":{"requestId":1,"reason":"enough"}"#), "{cancel}");
            let mut last = link.ask("three", &params);
            lines.next_line().await.expect("the third request");
            drop((lines, to));
            let lost = last.answer().await.expect_err("the end");
            assert!(matches!(lost, Failure::Lost { is_written: true }), "{lost:?}");
            let unwritten = link.ask("four", &params).answer().await.expect_err("over");
            assert!(matches!(unwritten, Failure::Lost { is_written: false }), "{unwritten:?}");
        };
        let (why, ()) = tokio::join!(running, talk);
        assert_eq!(why, "it closed the connection");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_is_given_up_and_what_was_not_written_is_known() {
        // [GATE-7] [LEASE-9]
        let (ours, theirs) = tokio::io::duplex(64);
        let (link, outbox) = Link::new();
        let (reader, writer) = tokio::io::split(ours);
        let talk = async {
            let mut first = link.ask("one", "x".repeat(1000));
            let mut second = link.ask("two", 2);
            tokio::time::sleep(Duration::from_millis(1)).await;
            for _ in 0..=MAX_UNREAD {
                link.notify("more", None::<()>);
            }
            let lost = first.answer().await.expect_err("lost");
            assert!(matches!(lost, Failure::Lost { is_written: true }), "{lost:?}");
            let lost = second.answer().await.expect_err("lost");
            assert!(matches!(lost, Failure::Lost { is_written: false }), "{lost:?}");
        };
        let (why, ()) = tokio::join!(link.run(reader, writer, outbox, &Deaf), talk);
        assert_eq!(why, "it does not read what it is sent");
        drop(theirs);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_answer_of_a_server_that_closed_its_input_is_read() {
        // [GATE-7]
        let (ours, mut answers) = tokio::io::duplex(4096);
        let (input, gone) = tokio::io::duplex(4096);
        drop(gone);
        let (link, outbox) = Link::new();
        let talk = async {
            let mut asked = link.ask("work", 1);
            let answering = async {
                // Its input broke a while ago.
                tokio::time::sleep(LAST_WORDS / 2).await;
                let answer = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}\n";
                answers.write_all(answer).await.expect("read");
                drop(answers);
            };
            let (answered, ()) = tokio::join!(asked.answer(), answering);
            assert_eq!(answered.expect("its last answer").get(), "7");
        };
        let (why, ()) = tokio::join!(link.run(ours, input, outbox, &Deaf), talk);
        assert_eq!(why, CLOSED);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_cancelled_before_it_was_written_never_is() {
        // [GATE-6] [LEASE-9]
        let (ours, mut theirs) = tokio::io::duplex(64);
        let (link, outbox) = Link::new();
        let (reader, writer) = tokio::io::split(ours);
        let talk = async {
            let first = link.ask("one", "x".repeat(1000));
            let mut second = link.ask("two", 2);
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(!second.cancel("enough"), "nothing of it was written");
            assert!(first.cancel("enough"), "it may run");
            let mut all = String::new();
            let mut lines = BufReader::new(&mut theirs).lines();
            for _ in 0..2 {
                all += &lines.next_line().await.expect("a line").expect("a line");
            }
            assert!(all.contains("\"one\"") && all.contains("\"requestId\":1"), "{all}");
            assert!(!all.contains("\"two\"") && !all.contains("\"requestId\":2"), "{all}");
            link.end();
            let lost = second.answer().await.expect_err("withdrawn");
            assert!(matches!(lost, Failure::Lost { is_written: false }), "{lost:?}");
        };
        tokio::join!(link.run(reader, writer, outbox, &Deaf), talk);
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_is_full_says_nothing_of_what_is_in_it() {
        // [GATE-7] [LEASE-3]: its line may still be written while the connection is ending.
        let (link, Outbox(mut lines)) = Link::new();
        let mut asked = link.ask("work", 1);
        for _ in 0..=MAX_UNREAD {
            link.notify("more", None::<()>);
        }
        let late = link.ask("late", 2);
        assert!(link.is_over());
        assert!(link.pending().contains_key(&asked.id), "nobody knows yet");
        assert!(lines.try_recv().expect("the first").begin().is_some(), "the writer is at it");
        link.end();
        let lost = asked.answer().await;
        assert!(matches!(lost, Err(Failure::Lost { is_written: true })), "{lost:?}");
        drop(late);
    }
}
