//! One connection of the native protocol, as a pure machine.

mod phase;

use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::Kind;
use raincheck_core::progress::Progress;
use raincheck_core::text;
use raincheck_loopback::Secret;
use raincheck_loopback::websocket::End;
use tokio::time::Instant;

use crate::backend::{Act, Ask, Backend, Ending, Introduction, Order, Target, Word, code};
use crate::specs::{self, AnnouncedTool, millis};
use crate::wire::chunks::{Assembly, Piece, Put, cut};
use crate::wire::inbound::{self, Message, Unread};
use crate::wire::proof::{Challenge, Side, is_nonce};
use crate::wire::{EditorState, PROTOCOL, RequestId, lenient, name, outbound, path};

use phase::{Phase, Step};

/// The most bytes of the words of a progress report.
const MAX_WORDS: usize = 500;

/// The most bytes of an `auth` that comes in chunks.
const MAX_AUTH: usize = 4 * 1024 * 1024;

/// How many messages that cannot be understood are answered on one connection.
const MAX_FAULTS: u32 = 10_000;

/// What all connections of a listener have in common.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) secret: Secret,
    pub(crate) port: u16,
    pub(crate) max_message: usize,
    pub(crate) max_chunked: usize,
    pub(crate) hello: Duration,
    pub(crate) auth: Duration,
    pub(crate) silence: Duration,
    pub(crate) status_interval: Duration,
    pub(crate) tools: Vec<AnnouncedTool>,
}

/// The machine of one connection.
#[derive(Debug)]
pub(crate) struct Session {
    rules: Arc<Rules>,
    phase: Phase,
    /// When the phase began; once the editor is known, when it was heard of last.
    since: Instant,
    connection_id: String,
    challenge: Challenge,
    hello: Option<inbound::Hello>,
    assembly: Assembly,
    status_seq: u64,
    n_faults: u32,
}

impl Session {
    /// Makes the machine of a connection that is about to open.
    pub(crate) fn new(
        rules: Arc<Rules>,
        now: Instant,
        connection_id: String,
        nonce: String,
    ) -> Self {
        let challenge =
            Challenge { client_nonce: String::new(), server_nonce: nonce, port: rules.port };
        let assembly = Assembly::new(MAX_AUTH.min(rules.max_chunked));
        Self {
            rules,
            phase: Phase::Fresh,
            since: now,
            connection_id,
            challenge,
            hello: None,
            assembly,
            status_seq: 0,
            n_faults: 0,
        }
    }

    fn step(&mut self, now: Instant, on: Step) -> bool {
        let Some(to) = self.phase.next(on) else { return false };
        self.phase = to;
        self.since = now;
        true
    }

    /// Says why, and closes.
    fn end(&mut self, kind: Kind, words: &'static str, code: u16) -> Vec<Act> {
        self.phase = Phase::Over;
        vec![Act::Send(outbound::error(kind, words, None)), Act::Close(code, words)]
    }

    fn greeted(&mut self, now: Instant, hello: inbound::Hello) -> Vec<Act> {
        if !self.step(now, Step::Hello) {
            return self.out_of_turn("hello");
        }
        if hello.protocol_version != PROTOCOL {
            let words = "this server speaks version 1 of the protocol; install its package with unity-mcp install";
            return self.end(Kind::PeerIncompatible, words, code::POLICY);
        }
        if !is_nonce(&hello.nonce) {
            let words = "the nonce of a hello is 16 bytes in base64url without padding";
            return self.end(Kind::Unauthorized, words, code::UNAUTHORIZED);
        }
        self.challenge.client_nonce.clone_from(&hello.nonce);
        self.hello = Some(hello);
        let mac = self.challenge.proof(&self.rules.secret, Side::Server);
        let answer = outbound::Message::Hello {
            protocol_version: PROTOCOL,
            server_version: env!("CARGO_PKG_VERSION"),
            connection_id: &self.connection_id,
            editor_status_interval_ms: millis(self.rules.status_interval),
            max_message_bytes: self.rules.max_message,
            nonce: &self.challenge.server_nonce,
            mac: &mac,
        };
        vec![Act::Send(answer.write())]
    }

    fn proved(&mut self, now: Instant, mut auth: inbound::Auth) -> Vec<Act> {
        if self.phase == Phase::Greeted
            && !self.challenge.is_proved(&self.rules.secret, Side::Client, &auth.mac)
        {
            let words = "the mac is not that of this server's secret; read endpoint.json again";
            return self.end(Kind::Unauthorized, words, code::UNAUTHORIZED);
        }
        if !self.step(now, Step::Auth) {
            return self.out_of_turn("auth");
        }
        self.assembly = Assembly::new(self.rules.max_chunked);
        let Some(hello) = self.hello.take() else { return Vec::new() };
        let commands = auth.commands();
        let is_control = |tool: &str| match commands.get(tool) {
            Some(command) => command.is_control,
            None => specs::find(tool).is_some_and(|entry| entry.is_control),
        };
        let on_main = auth.running.iter().filter(|one| !is_control(&one.tool_name));
        let on_main = on_main
            .filter_map(|one| Some((one.request_id.parse().ok()?, one.tool_name.clone())))
            .collect();
        let running = auth.running.iter().filter_map(|one| {
            Some((one.request_id.parse().ok()?, one.job_id.clone().filter(|it| it.len() <= 128)))
        });
        let finished =
            auth.finished_unacked.iter().filter_map(|one| Some((one.parse().ok()?, None)));
        let introduction = Introduction {
            backend: "native",
            instance: name(&hello.editor_instance_id),
            name: name(&hello.project_name),
            project_path: path(&auth.project_path),
            unity_version: name(&hello.unity_version),
            plugin_version: name(&hello.plugin_version),
            pid: hello.pid,
            state: EditorState::from_word(&auth.state).unwrap_or(EditorState::Ready),
            has: Some(running.chain(finished).collect()),
            running: on_main,
            commands,
        };
        let capability = outbound::Message::Capability { tools: &self.rules.tools }.write();
        // Whoever has its capabilities is connected for callers, too.
        vec![Act::Attach(Box::new(introduction)), Act::Send(capability)]
    }

    /// A message that has no place in the phase: before the proof that ends the connection.
    fn out_of_turn(&mut self, what: &str) -> Vec<Act> {
        if self.phase == Phase::Known {
            let words = format!("`{what}` was said already");
            return self.fault(Kind::InvalidRequest, &words, None);
        }
        let words = "hello and auth come before anything else";
        self.end(Kind::InvalidRequest, words, code::POLICY)
    }

    /// Answers what cannot be understood.
    fn fault(&mut self, kind: Kind, words: &str, request_id: Option<&str>) -> Vec<Act> {
        self.n_faults += 1;
        if self.n_faults > MAX_FAULTS {
            let words = "too much of what was sent cannot be understood";
            return self.end(Kind::InvalidRequest, words, code::POLICY);
        }
        vec![Act::Send(outbound::error(kind, words, request_id))]
    }

    fn read(&mut self, now: Instant, text: &str, may_be_chunk: bool) -> Vec<Act> {
        let mended;
        let read = match inbound::read(text) {
            Err(Unread::Malformed(_)) => {
                mended = lenient::mended(text);
                inbound::read(&mended)
            }
            read => read,
        };
        let message = match read {
            Ok(message) => message,
            Err(Unread::Malformed(_)) if self.phase != Phase::Known => {
                return self.end(Kind::InvalidRequest, "what was sent is no message", code::POLICY);
            }
            Err(Unread::Malformed(why)) => {
                let words = format!("what was sent is no message: {why}");
                let mut acts = self.fault(Kind::InvalidRequest, &words, None);
                acts.extend(unreadable(text));
                return acts;
            }
            Err(Unread::Unknown { .. }) if self.phase != Phase::Known => {
                return self.out_of_turn("");
            }
            Err(Unread::Unknown { kind, request_id }) => {
                let words = format!("the protocol has no message `{kind}`");
                return self.fault(Kind::UnknownTool, &words, request_id.as_deref());
            }
        };
        if let Message::Hello(hello) = message {
            return self.greeted(now, hello);
        }
        if let Message::Auth(auth) = message {
            return self.proved(now, *auth);
        }
        if let Message::Chunk(chunk) = &message
            && may_be_chunk
        {
            // The tools of an editor may be more than one message holds.
            let is_auth = self.phase == Phase::Greeted && chunk.request_id == "auth";
            if is_auth || self.phase == Phase::Known {
                return self.piece(now, chunk);
            }
        }
        if self.phase != Phase::Known {
            return self.out_of_turn("");
        }
        self.understood(message)
    }

    fn piece(&mut self, now: Instant, chunk: &inbound::Chunk<'_>) -> Vec<Act> {
        let inbound::Chunk { request_id, index, total, data } = chunk;
        let piece = Piece { request_id, index: *index, total: *total, data };
        match self.assembly.put(&piece) {
            Put::Begun => Vec::new(),
            Put::Whole(text) => self.read(now, &text, false),
            Put::TooLarge | Put::Malformed if self.phase != Phase::Known => self.out_of_turn(""),
            Put::TooLarge => {
                let words = "the message is larger than is taken in";
                let mut acts = self.fault(Kind::TooLarge, words, Some(request_id));
                acts.extend(ended(request_id, None, Ending::TooLarge).map(Act::Say));
                acts
            }
            Put::Malformed => {
                let words = "the chunk belongs to no message";
                let mut acts = self.fault(Kind::InvalidRequest, words, Some(request_id));
                // A result that cannot be put together ends its call all the same.
                acts.extend(ended(request_id, None, Ending::Unreadable).map(Act::Say));
                acts
            }
        }
    }

    /// What an editor that is known says.
    fn understood(&mut self, message: Message<'_>) -> Vec<Act> {
        let word = match message {
            Message::Status(status) => self.status(status),
            Message::Accepted(about) => about.request_id.parse().ok().map(Word::Accepted),
            Message::Started(about) => about.request_id.parse().ok().map(Word::Started),
            Message::Progress(progress) => progressed(progress),
            Message::Ended(said) => {
                let result = said.result.map(ToOwned::to_owned);
                let ending = Ending::Said { status: said.status, result };
                ended(&said.request_id, said.fence, ending)
            }
            Message::Job(about) => match (about.request_id.parse(), about.job_id) {
                (Ok(request), Some(job)) if job.len() <= 128 => Some(Word::Job(request, job)),
                _ => None,
            },
            Message::JobStatus(status) => job_status(status),
            Message::CancelResult(told) => {
                let target = target(told.target_request_id.as_deref(), told.target_job_id);
                match told.status.as_str() {
                    "cancelled" => target.map(Word::Cancelling),
                    "rejected" => target.map(Word::Unknown),
                    _ => None,
                }
            }
            Message::Failed(failed) => {
                let request_id = failed.request_id.as_deref().unwrap_or_default();
                ended(request_id, None, Ending::Declined(failed.error.to_owned()))
            }
            Message::Bye(bye) => Some(Word::Leaving { quits: bye.reason == "quit" }),
            Message::Chunk(_) | Message::Pong | Message::Hello(_) | Message::Auth(_) => None,
        };
        word.map(Act::Say).into_iter().collect()
    }

    fn status(&mut self, status: inbound::Status) -> Option<Word> {
        // What an editor does in a word of another version is not known; it goes on doing what it did.
        let state = EditorState::from_word(&status.state)?;
        if status.seq < self.status_seq {
            return None;
        }
        self.status_seq = status.seq;
        Some(Word::Status {
            state,
            focused: status.focused,
            lag_ms: status.main_thread_lag_ms.filter(|lag| lag.is_finite()),
            dialog: status.dialog.map(|dialog| name(&dialog)),
        })
    }

    fn call(&self, order: &Order) -> Vec<Act> {
        let call = outbound::Call {
            request_id: order.request,
            fence: order.fence,
            client_request_id: order.key.as_deref(),
            tool_name: &order.tool,
            params: &order.params,
            timeout_ms: order.timeout_ms,
            submitted_at: order.submitted_at,
        };
        let message = match order.is_job {
            true => outbound::Message::SubmitJob(call),
            false => outbound::Message::Execute(call),
        };
        let pieces = cut(&order.request.to_string(), message.write(), self.rules.max_message);
        pieces.into_iter().map(Act::Send).collect()
    }
}

impl Backend for Session {
    fn opened(&mut self, now: Instant) -> Vec<Act> {
        self.since = now;
        Vec::new()
    }

    fn heard(&mut self, now: Instant, text: &str) -> Vec<Act> {
        match self.phase {
            Phase::Over => return Vec::new(),
            // Anything that comes is a sign of life.
            Phase::Known => self.since = now,
            Phase::Fresh | Phase::Greeted => {}
        }
        self.read(now, text, true)
    }

    fn broke(&mut self, end: End) -> Vec<Act> {
        match end {
            End::Closed => {
                self.phase = Phase::Over;
                vec![Act::Close(code::NORMAL, "")]
            }
            End::TooLarge => {
                let words = "a message is larger than max_message_bytes; send it in chunks";
                self.end(Kind::InvalidRequest, words, code::TOO_LARGE)
            }
            End::Malformed => {
                self.end(Kind::InvalidRequest, "messages are text of JSON", code::POLICY)
            }
        }
    }

    fn asked(&mut self, _: Instant, ask: Ask) -> Vec<Act> {
        let text = match ask {
            Ask::Execute(order) => return self.call(&order),
            Ask::Cancel { request, job_id } => outbound::Message::Cancel {
                request_id: format!("{request}.cancel"),
                target_request_id: request,
                target_job_id: job_id.as_deref(),
            }
            .write(),
            Ask::Ack(request_id) => {
                outbound::Message::ResultAck { request_id: &request_id }.write()
            }
            Ask::JobStatus { request, job_id } => {
                // Of its own: what is refused of it is no end of the call.
                let request_id = format!("{request}.status");
                outbound::Message::GetJobStatus { request_id, job_id: &job_id }.write()
            }
            Ask::Leave(code::GOING_AWAY, reason) => {
                self.phase = Phase::Over;
                let bye = outbound::Message::Bye { reason }.write();
                return vec![Act::Send(bye), Act::Close(code::GOING_AWAY, reason)];
            }
            Ask::Leave(code, words) => return self.end(Kind::PeerNotReady, words, code),
        };
        vec![Act::Send(text)]
    }

    fn due(&self) -> Instant {
        self.since
            + match self.phase {
                Phase::Fresh => self.rules.hello,
                Phase::Greeted => self.rules.auth,
                Phase::Known | Phase::Over => self.rules.silence,
            }
    }

    fn look(&mut self, now: Instant) -> Vec<Act> {
        if now < self.due() {
            return Vec::new();
        }
        match self.phase {
            Phase::Fresh => {
                self.end(Kind::Unauthorized, "no hello came in time", code::HELLO_TIMEOUT)
            }
            Phase::Greeted => {
                self.end(Kind::Unauthorized, "no auth came in time", code::HELLO_TIMEOUT)
            }
            Phase::Known => {
                let words = "nothing was heard of the editor for too long";
                self.end(Kind::PeerNotReady, words, code::POLICY)
            }
            Phase::Over => Vec::new(),
        }
    }
}

fn target(request: Option<&str>, job: Option<String>) -> Option<Target> {
    let request: Option<RequestId> = request.and_then(|text| text.parse().ok());
    let job = job.filter(|job| job.len() <= 128);
    request.map(Target::Request).or_else(|| job.map(Target::Job))
}

fn ended(request_id: &str, fence: Option<u64>, ending: Ending) -> Option<Word> {
    let request = request_id.parse().ok()?;
    Some(Word::Ended {
        target: Target::Request(request),
        named: request_id.to_owned(),
        fence,
        ending,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast of a number that is none or out of range saturates"
)]
fn progressed(said: inbound::Progress<'_>) -> Option<Word> {
    let steps = |number: Option<f64>| number.filter(|it| *it >= 0.0).map(|it| it as u64);
    let words = said.message.map(|it| text::escape(text::clip(&it, MAX_WORDS)).into_owned());
    Some(Word::Progress {
        target: target(said.request_id.as_deref(), said.job_id)?,
        fence: said.fence,
        seq: said.seq,
        progress: Progress {
            step: steps(said.current),
            step_total: steps(said.total),
            message: words,
            ..Progress::default()
        },
        partial: said.partial.and_then(|raw| Json::parse(raw.get()).ok()),
    })
}

fn job_status(status: inbound::JobStatus<'_>) -> Option<Word> {
    let job = status.job_id.filter(|job| job.len() <= 128)?;
    let has_ended =
        ["succeeded", "failed", "timeout", "cancelled"].contains(&status.state.as_str());
    if has_ended {
        let result = status.result.map(ToOwned::to_owned);
        return Some(Word::Ended {
            target: Target::Job(job),
            named: String::new(),
            fence: None,
            ending: Ending::Said { status: status.state, result },
        });
    }
    let mut said: inbound::Progress<'_> = serde_json::from_str(status.progress?.get()).ok()?;
    (said.request_id, said.job_id) = (None, Some(job));
    progressed(said)
}

/// A result that cannot be read ends its call all the same: nothing better will come.
fn unreadable(text: &str) -> Option<Act> {
    // What a partial result holds has no say in what the message is.
    let head = text.split(r#""partial""#).next().unwrap_or_default();
    let is_result = head.contains(r#""type":"result""#) || head.contains(r#""type": "result""#);
    let (_, rest) = text.split_once(r#""request_id""#)?;
    let (request_id, _) = rest.split_once('"')?.1.split_once('"')?;
    let word = ended(request_id, None, Ending::Unreadable)?;
    is_result.then_some(Act::Say(word))
}
