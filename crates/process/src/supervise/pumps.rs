//! The readers and the writer of a program's pipes.

use std::sync::atomic::{AtomicBool, Ordering};

use raincheck_core::log::{Draft, Level, Stream};
use raincheck_core::progress::Progress;
use raincheck_core::text::clip;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_util::sync::CancellationToken;

use super::backlog::{BATCH, Log};
use super::control::{Channel, Claim, MAX_WORDS, Report};
use super::lines::{Piece, Splitter, messages};
use super::tail::Tail;
use super::{Listener, note};

/// How much is read at once, the size of a pipe.
const CHUNK: usize = 64 << 10;

/// How often a pipe is read after it was cut: what it holds, and its end.
const LATE: usize = 2;

/// The most words about artifacts that one program may say.
pub(super) const MAX_CLAIMS: usize = 10_000;

/// Writes all of standard input, then closes it. A program need not read it.
pub(super) async fn feed(
    mut pipe: impl AsyncWrite + Unpin,
    bytes: &[u8],
    gone: &CancellationToken,
) {
    tokio::select! {
        // A program that closes its input early is no fault.
        _ = pipe.write_all(bytes) => {}
        () = gone.cancelled() => {}
    }
}

/// Reads an output stream to its end and returns its last words.
pub(super) async fn output(
    pipe: impl AsyncRead + Unpin,
    stream: Stream,
    listener: &dyn Listener,
    mut log: Log,
    cut: &CancellationToken,
    bar: &Bar,
) -> Tail {
    let (mut tail, mut splitter) = (Tail::default(), Splitter::default());
    let mut source = Source::new(pipe, cut);
    loop {
        let (mut lines, mut redrawn) = (Vec::new(), None);
        let bytes = source.read().await;
        let ts = listener.now();
        let mut add = |piece| match piece {
            Piece::Line(message) => lines.push(Draft { ts, stream, level: Level::Info, message }),
            Piece::Redraw(text) => redrawn = Some(text),
        };
        if let Some(bytes) = bytes {
            tail.push(bytes);
            splitter.push(bytes, &mut add);
        } else {
            splitter.finish(&mut add);
        }
        let is_over = bytes.is_none();
        if let Some(text) = redrawn {
            bar.show(&text, listener);
        }
        send(&mut log, listener, lines).await;
        if is_over {
            break;
        }
    }
    if source.is_open {
        let text =
            "an output stream is held open by a process outside the program's tree; it was closed";
        send(&mut log, listener, vec![note(listener, text)]).await;
    }
    log.close(listener).await;
    tail
}

/// Reads the control channel to its end and returns what was said about artifacts.
pub(super) async fn control(
    pipe: impl AsyncRead + Unpin,
    listener: &dyn Listener,
    mut log: Log,
    cut: &CancellationToken,
    bar: &Bar,
) -> Vec<Claim> {
    let (mut channel, mut claims) = (Channel::default(), Claims::default());
    let mut source = Source::new(pipe, cut);
    loop {
        let mut lines = Vec::new();
        let bytes = source.read().await;
        let mut hear = |report| {
            bar.heed(&report);
            hear(report, listener, &mut lines, &mut claims);
        };
        if let Some(bytes) = bytes {
            channel.push(bytes, &mut hear);
        } else {
            channel.finish(&mut hear);
        }
        let is_over = bytes.is_none();
        send(&mut log, listener, lines).await;
        if is_over {
            break;
        }
    }
    log.close(listener).await;
    claims.all
}

/// A line that the program draws again and again, such as a progress bar. It is shown as the message
/// of its progress, unless the program tells its progress itself.
#[derive(Debug, Default)]
pub(super) struct Bar {
    is_told: AtomicBool,
}

impl Bar {
    fn heed(&self, report: &Report) {
        if matches!(report, Report::Progress(_)) {
            self.is_told.store(true, Ordering::Relaxed);
        }
    }

    fn show(&self, text: &str, listener: &dyn Listener) {
        let text = clip(text.trim(), MAX_WORDS);
        if !text.is_empty() && !self.is_told.load(Ordering::Relaxed) {
            let message = Some(text.to_owned());
            listener.progress(Progress { message, ..Progress::default() });
        }
    }
}

/// What a program says about its artifacts, as far as it is kept.
#[derive(Debug, Default)]
struct Claims {
    all: Vec<Claim>,
    /// Whether it was told that there are too many.
    is_told: bool,
}

fn hear(report: Report, listener: &dyn Listener, lines: &mut Vec<Draft>, claims: &mut Claims) {
    match report {
        Report::Progress(progress) => listener.progress(progress),
        Report::Partial(partial) => listener.partial(partial),
        Report::Log(level, text) => {
            let ts = listener.now();
            for line in text.lines() {
                messages(line, &mut |message| {
                    lines.push(Draft { ts, stream: Stream::Control, level, message });
                });
            }
        }
        Report::Artifact(claim) if claims.all.len() < MAX_CLAIMS => claims.all.push(claim),
        Report::Artifact(_) if claims.is_told => {}
        Report::Artifact(_) => {
            claims.is_told = true;
            lines.push(note(listener, format!("more than {MAX_CLAIMS} artifacts were reported")));
        }
        Report::Fault(what) => lines.push(note(listener, what)),
    }
}

async fn send(log: &mut Log, listener: &dyn Listener, lines: Vec<Draft>) {
    let mut lines = lines.into_iter().peekable();
    while lines.peek().is_some() {
        log.send(listener, lines.by_ref().take(BATCH).collect()).await;
    }
}

/// A pipe that is read until its end, or until it is cut.
struct Source<'a, P> {
    pipe: P,
    buffer: Vec<u8>,
    cut: &'a CancellationToken,
    /// How often it was read after it was cut.
    n_late: usize,
    /// It was cut, and had not ended.
    is_open: bool,
}

impl<'a, P: AsyncRead + Unpin> Source<'a, P> {
    fn new(pipe: P, cut: &'a CancellationToken) -> Self {
        Self { pipe, buffer: vec![0; CHUNK], cut, n_late: 0, is_open: false }
    }

    /// Returns the next bytes, or `None` at the end.
    async fn read(&mut self) -> Option<&[u8]> {
        // What is in the pipe when it is cut was written before.
        self.n_late += usize::from(self.cut.is_cancelled());
        self.is_open = self.n_late > LATE;
        if self.is_open {
            return None;
        }
        let n = tokio::select! {
            biased;
            // An error is an end: nothing more can come.
            n = self.pipe.read(&mut self.buffer) => n.unwrap_or(0),
            () = self.cut.cancelled() => {
                self.is_open = true;
                0
            }
        };
        self.buffer.get(..n).filter(|bytes| !bytes.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    // [LEASE-8]
    #[tokio::test]
    async fn what_is_in_a_pipe_when_it_is_cut_is_read_and_its_end_is_seen() {
        for is_open in [false, true] {
            let (mut far, near) = tokio::io::duplex(CHUNK);
            far.write_all(b"last words").await.expect("written");
            let _held = is_open.then_some(far);
            let cut = CancellationToken::new();
            cut.cancel();
            let mut source = Source::new(near, &cut);
            assert_eq!(source.read().await, Some(&b"last words"[..]));
            assert_eq!(source.read().await, None);
            assert_eq!(source.is_open, is_open);
        }
    }

    #[tokio::test]
    async fn a_pipe_that_never_falls_silent_is_cut_all_the_same() {
        let cut = CancellationToken::new();
        cut.cancel();
        let mut source = Source::new(tokio::io::repeat(b'x'), &cut);
        for _ in 0..LATE {
            assert!(source.read().await.is_some());
        }
        assert!(source.read().await.is_none() && source.is_open);
    }
}
