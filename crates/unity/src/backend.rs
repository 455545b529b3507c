//! What a connection to an editor must be able to do, whichever protocol it speaks.
//!
//! A [`Backend`] is a pure machine: what comes in and the present instant go in, [`Act`]s come out. It
//! reads no clock, writes to no socket and knows no task. `connection` is the shell around it.

use std::collections::BTreeMap;
use std::fmt;

use raincheck_core::content::Json;
use raincheck_core::progress::Progress;
use raincheck_core::time::Timestamp;
use raincheck_loopback::websocket::End;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::wire::inbound::Command;
use crate::wire::{EditorState, RequestId};

/// The codes that a connection may be closed with [UNITY-3].
pub(crate) mod code {
    /// The other end said goodbye.
    pub(crate) const NORMAL: u16 = 1000;
    /// The server ends.
    pub(crate) const GOING_AWAY: u16 = 1001;
    /// What was sent breaks the protocol.
    pub(crate) const POLICY: u16 = 1008;
    /// A message is larger than may be.
    pub(crate) const TOO_LARGE: u16 = 1009;
    /// The other end did not prove itself.
    pub(crate) const UNAUTHORIZED: u16 = 4401;
    /// The other end did not say who it is in time.
    pub(crate) const HELLO_TIMEOUT: u16 = 4408;
    /// Another connection of the same project took its place.
    pub(crate) const SUPERSEDED: u16 = 4409;
}

/// Who is at the other end, once that is proved.
#[derive(Debug)]
pub(crate) struct Introduction {
    pub(crate) backend: &'static str,
    pub(crate) instance: String,
    pub(crate) name: String,
    pub(crate) project_path: String,
    pub(crate) unity_version: String,
    pub(crate) plugin_version: String,
    pub(crate) pid: Option<u64>,
    pub(crate) state: EditorState,
    pub(crate) commands: BTreeMap<String, Command>,
    /// The calls that the editor still has, running or ended; `None` when it does not say.
    pub(crate) has: Option<Vec<(RequestId, Option<String>)>>,
    /// Those of them that have its main thread, or wait for it, with their commands.
    pub(crate) running: Vec<(RequestId, String)>,
}

/// What a call is named by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Request(RequestId),
    Job(String),
}

/// How a call ended, as the editor says.
#[derive(Debug)]
pub(crate) enum Ending {
    /// With a status and a value.
    Said { status: String, result: Option<Box<RawValue>> },
    /// It did not take the call on, or gave it up.
    Declined(Box<RawValue>),
    /// With more than is taken in.
    TooLarge,
    /// With something that cannot be read.
    Unreadable,
}

/// What an editor says, for the bridge.
#[derive(Debug)]
pub(crate) enum Word {
    Status {
        state: EditorState,
        focused: Option<bool>,
        lag_ms: Option<f64>,
        dialog: Option<String>,
    },
    Accepted(RequestId),
    Started(RequestId),
    /// A job has got a name of its own.
    Job(RequestId, String),
    Progress {
        target: Target,
        fence: Option<u64>,
        seq: u64,
        progress: Progress,
        partial: Option<Json>,
    },
    Ended {
        target: Target,
        /// As the editor wrote it: what it is acknowledged by.
        named: String,
        fence: Option<u64>,
        ending: Ending,
    },
    /// It has registered more commands.
    Commands(BTreeMap<String, Command>),
    /// It has committed to end a call.
    Cancelling(Target),
    /// It knows no such call, or not any more.
    Unknown(Target),
    /// It goes away, for good if it quits.
    Leaving {
        quits: bool,
    },
}

/// A call on its way to an editor.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) request: RequestId,
    pub(crate) fence: u64,
    pub(crate) key: Option<std::sync::Arc<str>>,
    pub(crate) tool: String,
    pub(crate) params: Json,
    pub(crate) timeout_ms: u64,
    pub(crate) submitted_at: Timestamp,
    pub(crate) is_job: bool,
}

/// What the bridge asks of a connection.
#[derive(Debug)]
pub(crate) enum Ask {
    Execute(Box<Order>),
    Cancel {
        request: RequestId,
        job_id: Option<String>,
    },
    /// A result is kept, and may be forgotten.
    Ack(String),
    /// Say how a job stands.
    JobStatus {
        request: RequestId,
        job_id: String,
    },
    Leave(u16, &'static str),
}

/// What a machine wants done, in this order.
#[derive(Debug)]
pub(crate) enum Act {
    Send(String),
    Attach(Box<Introduction>),
    Say(Word),
    /// The last one.
    Close(u16, &'static str),
}

/// One connection's protocol.
pub(crate) trait Backend: fmt::Debug + Send {
    /// The connection is open.
    fn opened(&mut self, now: Instant) -> Vec<Act>;

    /// A message came.
    fn heard(&mut self, now: Instant, text: &str) -> Vec<Act>;

    /// What came is no message.
    fn broke(&mut self, end: End) -> Vec<Act>;

    /// The bridge wants something.
    fn asked(&mut self, now: Instant, ask: Ask) -> Vec<Act>;

    /// When it wants to be [looked at](Self::look), if nothing comes before.
    fn due(&self) -> Instant;

    /// The instant may have come.
    fn look(&mut self, now: Instant) -> Vec<Act>;
}
