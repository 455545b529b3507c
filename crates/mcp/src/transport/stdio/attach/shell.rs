//! What moves the lines of a [`Relay`].

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::relay::{Action, Handshake, Relay};
use super::roles::{Event, Role};
use super::{Found, Link, Owners};
use crate::caller::Repeat;
use crate::server::{Server, written};
use crate::transport::refusals::{Refused, refused};
use crate::transport::stdio::line::{Lines, Read};
use crate::transport::stdio::outbox::Outbox;
use crate::transport::stdio::source::{Fed, number};
use crate::transport::stdio::{DRAIN, FLUSH};
use crate::wire::{Id, Message, parse};

/// The longest line that an owner may send.
const MAX_ANSWER: usize = 512 << 20;

/// How many bytes beside requests, which the relay bounds, may wait for the owner or for the session of
/// this process before no more is read from the client.
const READ_AHEAD: usize = 1 << 20;

/// How long after a long vain search for an owner the next one begins: as long as the search took, and not
/// longer than this.
const PAUSE: Duration = Duration::from_secs(2);

/// A vain search of up to this time is repeated for whatever the client asks next: the owner may be gone.
const QUICK: Duration = Duration::from_secs(1);

/// How long after an owner that took this process in and was gone the next one is looked for.
const AGAIN: Duration = Duration::from_millis(50);

/// How long an owner may take to answer the handshake. It is on the same machine, and may be asleep.
const HANDSHAKE: Duration = Duration::from_secs(5);

type Search = Pin<Box<dyn Future<Output = Sought> + Send>>;

/// What came of looking for the owner.
enum Sought {
    /// It is this process.
    Ours,
    /// It is another one: the way there, its store, and the line with which the session was opened.
    Theirs(Box<There>, Option<Arc<str>>, Option<Vec<u8>>),
    /// It is another one, which is of no use.
    Apart,
}

/// How relaying ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relayed {
    /// The client is gone, or the process ends.
    Ended,
    /// The session of this process has the client's stream.
    HandedOn,
}

/// Moves the lines between a client, the session of this process and the owner.
pub(super) struct Shell<R> {
    relay: Relay,
    server: Server,
    owners: Arc<dyn Owners>,
    /// What the client says; `None` once it says nothing more.
    client: Option<Lines<R>>,
    outbox: Outbox,
    here: Here<R>,
    there: Option<There>,
    search: Option<Search>,
    /// When the last search began.
    sought_since: Instant,
    /// Before this instant one that is apart does not look for the owner again.
    not_before: Option<Instant>,
    /// Whether an owner is gone that answered the client.
    had_owner: bool,
}

/// The way to the session of this process.
struct Here<R> {
    feed: mpsc::Sender<Fed<R>>,
    waiting: VecDeque<Fed<R>>,
    n_bytes: usize,
}

/// The way to the owner, and back.
struct There {
    lines: Lines<Box<dyn AsyncRead + Send + Unpin>>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    waiting: VecDeque<(Vec<u8>, Option<u64>)>,
    /// How much of the first line is written.
    n_written: usize,
    n_notes: usize,
    is_flushed: bool,
    is_shut: bool,
    /// Whether writing failed: what the owner said before it went is still read.
    is_deaf: bool,
}

/// What happens next.
enum Turn {
    Fed,
    Found(Sought),
    Heard(io::Result<Read>),
    Wrote(io::Result<()>),
    Said(io::Result<Read>),
    Room,
    Stopped,
    Over,
}

impl<R: AsyncRead + Send + Unpin + 'static> Shell<R> {
    pub(super) fn new(
        server: Server,
        owners: Arc<dyn Owners>,
        process: &str,
        (client, outbox): (Lines<R>, Outbox),
        feed: mpsc::Sender<Fed<R>>,
    ) -> Self {
        Self {
            relay: Relay::new(process, server.has_live_tools()),
            server,
            owners,
            client: Some(client),
            outbox,
            here: Here { feed, waiting: VecDeque::new(), n_bytes: 0 },
            there: None,
            search: None,
            sought_since: Instant::now(),
            not_before: None,
            had_owner: false,
        }
    }

    /// Relays until the client is gone, `stop` fires, or this process is the owner.
    pub(super) async fn run(mut self, stop: CancellationToken) -> Relayed {
        let mut end: Option<Instant> = None;
        loop {
            if self.is_handed_on() {
                return Relayed::HandedOn;
            }
            if self.client.is_none() && self.has_ended() {
                return Relayed::Ended;
            }
            match self.turn(&stop, end).await {
                Turn::Over => return Relayed::Ended,
                Turn::Stopped => self.client = None,
                Turn::Room | Turn::Fed => {}
                Turn::Said(read) => self.said(read),
                Turn::Heard(read) => self.heard(read),
                Turn::Wrote(wrote) => self.wrote(wrote),
                Turn::Found(sought) => self.found(sought),
            }
            if self.client.is_none() && end.is_none() {
                end = Some(Instant::now() + DRAIN + FLUSH);
            }
        }
    }

    /// Waits for whatever happens next.
    async fn turn(&mut self, stop: &CancellationToken, end: Option<Instant>) -> Turn {
        let has_room = self.outbox.has_room();
        let may_read = self.may_read();
        let is_ending = self.client.is_none();
        let over = async {
            match end {
                Some(end) => sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        let (lines, way) = match &mut self.there {
            None => (None, None),
            Some(There { lines, is_deaf: true, .. }) => (Some(lines), None),
            Some(There { lines, writer, waiting, n_written, is_flushed, is_shut, .. }) => {
                let front = waiting.front().map(|(line, number)| (line, *number));
                if let Some(number) = front.and_then(|(_, number)| number)
                    && *n_written == 0
                {
                    self.relay.sent(number, self.server.engine().now());
                }
                let rest = front.map(|(line, _)| line.get(*n_written..).unwrap_or_default());
                let way = Writing { writer, rest, n_written, is_flushed, is_shut, is_ending };
                (Some(lines), way.is_due().then_some(way))
            }
        };
        tokio::select! {
            biased;
            () = over => Turn::Over,
            () = self.outbox.broken() => Turn::Over,
            () = stop.cancelled(), if !is_ending => Turn::Stopped,
            found = some(self.search.as_mut()), if self.search.is_some() => Turn::Found(found),
            permit = self.here.feed.reserve(), if !self.here.waiting.is_empty() => {
                if let (Ok(permit), Some(line)) = (permit, self.here.waiting.pop_front()) {
                    self.here.n_bytes -= size(&line);
                    permit.send(line);
                    Turn::Fed
                } else {
                    // The session of this process is over.
                    Turn::Over
                }
            }
            wrote = write(way) => Turn::Wrote(wrote),
            () = self.outbox.room(), if !has_room => Turn::Room,
            read = next(lines), if has_room => Turn::Heard(read),
            read = next(self.client.as_mut()), if may_read => Turn::Said(read),
        }
    }

    /// Tells whether there is room for what the client says next.
    fn may_read(&self) -> bool {
        let is_read = |there: &There| there.n_notes < READ_AHEAD;
        self.client.is_some()
            && self.here.n_bytes < READ_AHEAD
            && self.there.as_ref().is_none_or(is_read)
    }

    /// Tells whether the session of this process has everything, the stream included.
    fn is_handed_on(&self) -> bool {
        self.relay.role() == Role::Owner && self.here.waiting.is_empty()
    }

    /// Tells whether nothing more is to come for a client that says nothing more.
    fn has_ended(&self) -> bool {
        match self.relay.role() {
            Role::Attached => self.there.is_none(),
            Role::Deciding => self.relay.is_idle(),
            Role::Undecided | Role::Apart | Role::Owner => self.here.waiting.is_empty(),
        }
    }

    fn said(&mut self, read: io::Result<Read>) {
        let line = match read {
            Ok(Read::Line(line)) => line,
            Ok(Read::TooLong) => return self.here.put(Fed::TooLong),
            Ok(Read::End) => {
                self.client = None;
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "standard input cannot be read any more");
                self.client = None;
                return;
            }
        };
        let is_due = self.not_before.is_none_or(|at| Instant::now() >= at);
        let again =
            if is_due && self.relay.role() == Role::Apart { self.relay.decide() } else { None };
        let actions = self.relay.said(line);
        self.act(again.into_iter().chain(actions));
    }

    fn heard(&mut self, read: io::Result<Read>) {
        match read {
            Ok(Read::Line(line)) => {
                let actions = self.relay.heard(line);
                self.act(actions);
            }
            Ok(Read::TooLong) => {
                tracing::error!("the owner sent a line of more than {MAX_ANSWER} bytes");
                self.lost();
            }
            Ok(Read::End) => self.lost(),
            Err(error) => {
                tracing::debug!(%error, "the connection to the owner broke");
                self.lost();
            }
        }
    }

    fn wrote(&mut self, wrote: io::Result<()>) {
        let Some(there) = &mut self.there else { return };
        if let Err(error) = wrote {
            tracing::debug!(%error, "the connection to the owner broke");
            there.is_deaf = true;
            return;
        }
        let is_whole = |(line, _): &(Vec<u8>, _)| line.len() <= there.n_written;
        if let Some((line, number)) = there.waiting.pop_front_if(|front| is_whole(front)) {
            there.n_written = 0;
            if number.is_none() {
                there.n_notes -= line.len();
            }
        }
    }

    /// Looks for the next owner. Nobody waits for one whose client is gone and has asked for nothing.
    fn lost(&mut self) {
        self.there = None;
        if self.client.is_none() {
            // Whatever was open ended with the connection, as at the end of any client.
            self.relay = Relay::new("", false);
            return;
        }
        tracing::info!("the owner of the store is gone");
        self.had_owner = true;
        let actions = self.relay.lost();
        self.act(actions);
    }

    fn found(&mut self, sought: Sought) {
        self.search = None;
        let (event, store) = match sought {
            Sought::Ours => (Event::Owned, None),
            Sought::Theirs(there, store, opened) => {
                self.there = Some(*there);
                self.introduce(opened.as_deref());
                (Event::Joined, store)
            }
            Sought::Apart => {
                let took = self.sought_since.elapsed();
                self.not_before = (took > QUICK).then(|| Instant::now() + took.min(PAUSE));
                (Event::Refused, None)
            }
        };
        let may_repeat = |tool: &str| self.server.may_repeat(tool);
        let actions = self.relay.decided(event, store, may_repeat);
        self.act(actions);
        if event != Event::Refused && std::mem::take(&mut self.had_owner) {
            self.tell_lists();
        }
        if event == Event::Owned
            && let Some(client) = self.client.take()
        {
            self.here.put(Fed::Stream(client));
        }
    }

    /// Tells the client to read again what the next owner may list otherwise.
    fn tell_lists(&self) {
        if self.relay.handshake.initialized.is_none() {
            return;
        }
        for list in self.server.live_lists() {
            let method = format!("notifications/{list}/list_changed");
            self.outbox.put_all(written(&json!({ "jsonrpc": "2.0", "method": method })));
        }
    }

    /// Tells the owner what the client said of itself, beside what the session was opened with.
    fn introduce(&mut self, opened: Option<&[u8]>) {
        let Some(there) = &mut self.there else { return };
        let Handshake { initialize, initialized } = self.relay.handshake.clone();
        let later = initialize.map(|(_, line)| line).filter(|line| Some(&line[..]) != opened);
        for line in later.into_iter().chain(initialized) {
            there.put(line, None);
        }
    }

    fn seek(&self) -> Search {
        let owners = Arc::clone(&self.owners);
        let initialize = self.relay.handshake.initialize.clone();
        Box::pin(async move {
            loop {
                match owners.find().await {
                    Found::Ours => return Sought::Ours,
                    Found::Apart => return Sought::Apart,
                    Found::Theirs(link) => match join(link, initialize.as_ref()).await {
                        Ok((there, store)) => {
                            let opened = initialize.map(|(_, line)| line);
                            return Sought::Theirs(Box::new(there), store, opened);
                        }
                        Err(error) => {
                            tracing::warn!(%error, "the owner of the store was gone at once");
                            sleep(AGAIN).await;
                        }
                    },
                }
            }
        })
    }

    fn act(&mut self, actions: impl IntoIterator<Item = Action>) {
        for action in actions {
            match action {
                Action::Here(line, key) => self.here.put(Fed::Line(line, key)),
                Action::There(line, numbered) => {
                    if let Some(there) = &mut self.there {
                        there.put(line, numbered);
                    }
                }
                Action::Client(mut line) => {
                    line.push(b'\n');
                    self.outbox.put(line);
                }
                Action::Refuse(id, refusal) => {
                    self.outbox.put_all(written(&Refused::new(Some(id), refused(refusal))));
                }
                Action::Lost(id, tool) => self.outbox.put_all(self.server.lost(&id, &tool)),
                Action::Withdraw(number) => {
                    if let Some(there) = &mut self.there {
                        there.waiting.retain(|(_, of)| *of != Some(number));
                    }
                }
                Action::TakeBack(id) => self.outbox.put_all(written(&taken_back(&id))),
                Action::Decide => {
                    self.sought_since = Instant::now();
                    self.search = Some(self.seek());
                }
            }
        }
    }
}

impl<R> Here<R> {
    fn put(&mut self, line: Fed<R>) {
        self.n_bytes += size(&line);
        self.waiting.push_back(line);
    }
}

/// What a line takes while it waits.
fn size<R>(line: &Fed<R>) -> usize {
    match line {
        Fed::Line(line, _) => line.len(),
        Fed::TooLong | Fed::Stream(_) => 0,
    }
}

impl There {
    /// Sends the request that opens a session and waits for its answer, which the client has had from its
    /// own process.
    async fn open(&mut self, id: &Id, line: &[u8]) -> io::Result<()> {
        self.writer.write_all(&[line, b"\n"].concat()).await?;
        self.writer.flush().await?;
        loop {
            match self.lines.next().await? {
                Read::Line(line) => {
                    if matches!(parse(&line), Message::Response { id: of, .. } if of == *id) {
                        return Ok(());
                    }
                }
                Read::TooLong | Read::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    fn put(&mut self, line: Vec<u8>, numbered: Option<(u64, Option<Repeat>)>) {
        let (mut line, number) = match numbered {
            Some((n, repeat)) => (number(&line, n, repeat.as_ref()), Some(n)),
            None => (line, None),
        };
        line.push(b'\n');
        if number.is_none() {
            self.n_notes += line.len();
        }
        self.waiting.push_back((line, number));
    }
}

/// Opens the session at the owner as the client opened that of this process.
async fn join(
    Link { reader, writer, store }: Link,
    initialize: Option<&(Id, Vec<u8>)>,
) -> io::Result<(There, Option<Arc<str>>)> {
    let mut there = There {
        lines: Lines::new(reader, MAX_ANSWER),
        writer,
        waiting: VecDeque::new(),
        n_written: 0,
        n_notes: 0,
        is_flushed: true,
        is_shut: false,
        is_deaf: false,
    };
    let opening = async {
        match initialize {
            Some((id, line)) => there.open(id, line).await,
            None => Ok(()),
        }
    };
    timeout(HANDSHAKE, opening).await.map_err(|_| io::ErrorKind::TimedOut)??;
    Ok((there, store))
}

/// A step of writing to the owner.
struct Writing<'a> {
    writer: &'a mut Box<dyn AsyncWrite + Send + Unpin>,
    rest: Option<&'a [u8]>,
    n_written: &'a mut usize,
    is_flushed: &'a mut bool,
    is_shut: &'a mut bool,
    is_ending: bool,
}

impl Writing<'_> {
    fn is_due(&self) -> bool {
        self.rest.is_some() || !*self.is_flushed || (self.is_ending && !*self.is_shut)
    }
}

/// Writes what comes next; at the end of the client's stream, that end.
///
/// # Cancel safety
/// What was written is counted; nothing is written twice.
async fn write(way: Option<Writing<'_>>) -> io::Result<()> {
    let Some(way) = way else { return std::future::pending().await };
    if let Some(rest) = way.rest {
        let n = way.writer.write(rest).await?;
        if n == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        *way.n_written += n;
        *way.is_flushed = false;
    } else if !*way.is_flushed {
        way.writer.flush().await?;
        *way.is_flushed = true;
    } else {
        way.writer.shutdown().await?;
        *way.is_shut = true;
    }
    Ok(())
}

async fn next<R: AsyncRead + Unpin>(lines: Option<&mut Lines<R>>) -> io::Result<Read> {
    match lines {
        Some(lines) => lines.next().await,
        None => std::future::pending().await,
    }
}

async fn some(search: Option<&mut Search>) -> Sought {
    match search {
        Some(search) => search.await,
        None => std::future::pending().await,
    }
}

/// Tells a client that the answer to a question is not wanted any more.
fn taken_back(id: &Id) -> serde_json::Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": { "requestId": id, "reason": "the server that asked is gone" },
    })
}
