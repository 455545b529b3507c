//! The body of a response: nothing, one JSON text, or a stream of events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::DropGuard;

use super::channel::{Inlet, Out};

/// How many bytes go out at once, so that what a client has not read stays counted.
const CHUNK: usize = 64 << 10;

/// How often a stream of events that has nothing to say shows that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What keeps a stream of events open for whatever is between the two ends.
const COMMENT: &[u8] = b":\n\n";

/// The body of a response.
pub struct HttpBody(Kind);

enum Kind {
    /// What is known already.
    Whole { rest: Bytes, inlet: Option<Inlet> },
    /// Events as they come.
    Events(Box<Events>),
}

struct Events {
    inlet: Inlet,
    /// What is being sent.
    parts: VecDeque<Bytes>,
    /// How much of the message that is being sent is still counted.
    counted: usize,
    is_over: bool,
    quiet: Pin<Box<Sleep>>,
    /// Fires when the response is given up before its end.
    unread: Option<DropGuard>,
}

impl HttpBody {
    /// A body that is known already.
    pub(super) fn of(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole { rest: bytes.into(), inlet: None })
    }

    /// One answer, which is counted until it has gone out.
    pub(super) fn answer(out: Out, inlet: Inlet) -> Self {
        Self(Kind::Whole { rest: out.bytes, inlet: Some(inlet) })
    }

    /// Events: what came first, and what follows. `unread` is dropped when the body is dropped before
    /// its end.
    pub(super) fn events(first: Option<Out>, inlet: Inlet, unread: Option<DropGuard>) -> Self {
        let quiet = Box::pin(sleep(KEEP_ALIVE));
        let (parts, counted, is_over) = (VecDeque::new(), 0, false);
        let mut events = Events { inlet, parts, counted, is_over, quiet, unread };
        match first {
            Some(first) => events.begin(first),
            None => events.parts.push_back(Bytes::from_static(COMMENT)),
        }
        Self(Kind::Events(Box::new(events)))
    }
}

impl Events {
    /// Begins to send a message.
    fn begin(&mut self, Out { bytes, end }: Out) {
        self.counted += bytes.len();
        self.is_over = end.is_some();
        self.parts.push_back(Bytes::from_static(b"event: message\n"));
        // A line end inside of the JSON is space between its tokens; each line of data is one of text.
        for line in lines(&bytes) {
            self.parts.push_back(Bytes::from_static(b"data: "));
            self.parts.push_back(line);
            self.parts.push_back(Bytes::from_static(b"\n"));
        }
        self.parts.push_back(Bytes::from_static(b"\n"));
    }

    /// Takes the next piece of what is being sent.
    fn piece(&mut self) -> Option<Bytes> {
        let first = self.parts.front_mut()?;
        let piece = first.split_to(first.len().min(CHUNK));
        if first.is_empty() {
            self.parts.pop_front();
        }
        let sent = if self.parts.is_empty() { self.counted } else { piece.len().min(self.counted) };
        self.counted -= sent;
        self.inlet.sent(sent);
        Some(piece)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if let Some(piece) = self.piece() {
                let pause = Instant::now() + KEEP_ALIVE;
                self.quiet.as_mut().reset(pause);
                return Poll::Ready(Some(piece));
            }
            if self.is_over {
                self.finish();
                return Poll::Ready(None);
            }
            match self.inlet.poll_next(context) {
                Poll::Ready(Some(out)) => self.begin(out),
                Poll::Ready(None) => self.is_over = true,
                Poll::Pending => {
                    if self.quiet.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    self.parts.push_back(Bytes::from_static(COMMENT));
                }
            }
        }
    }

    /// Notes that the response was read to its end.
    fn finish(&mut self) {
        if let Some(unread) = self.unread.take() {
            unread.disarm();
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.inlet.sent(self.counted);
        if self.is_over {
            // The answer was made: what is left of it belongs to nobody's work.
            self.finish();
        }
    }
}

impl Drop for HttpBody {
    fn drop(&mut self) {
        if let Kind::Whole { rest, inlet: Some(inlet) } = &self.0 {
            inlet.sent(rest.len());
        }
    }
}

/// Cuts a text at its line ends.
fn lines(bytes: &Bytes) -> Vec<Bytes> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !bytes.iter().any(is_end) {
        return vec![bytes.clone()];
    }
    let parts = bytes.split(is_end).filter(|part| !part.is_empty());
    parts.map(|part| bytes.slice_ref(part)).collect()
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = match &mut self.0 {
            Kind::Whole { rest, .. } if rest.is_empty() => None,
            Kind::Whole { rest, inlet } => {
                let piece = rest.split_to(rest.len().min(CHUNK));
                if let Some(inlet) = inlet {
                    inlet.sent(piece.len());
                }
                Some(piece)
            }
            Kind::Events(events) => match events.poll(context) {
                Poll::Ready(piece) => piece,
                Poll::Pending => return Poll::Pending,
            },
        };
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Kind::Whole { rest, .. } if rest.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole { rest, .. } => SizeHint::with_exact(rest.len() as u64),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::Whole { .. } => "HttpBody::Whole",
            Kind::Events(_) => "HttpBody::Events",
        })
    }
}
