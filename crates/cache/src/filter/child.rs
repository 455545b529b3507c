//! The filter process.
//!
//! It reads requests from standard input and writes outputs to standard output, and ends when its input
//! does: with the server, however that ends. It gives up what it may not need before it reads the first
//! request, and limits what it may use before each run. Whatever a filter does to it ends this process,
//! and nothing else.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use jaq_json::Val;

use super::limits::{LimitKind, Limits, Stop};
use super::value::{Value, read, write};
use super::wire::{End, Frame, GREETING, How, OUTPUT_FRAME, Request};
use super::{engine, syntax};

mod confine;

/// The stack that filters run on, in bytes. Definitions that call themselves end here.
const STACK: usize = 256 << 20;

/// How long the process waits for a request before it ends, and its parsed body with it.
const IDLE: Duration = Duration::from_secs(90);

/// How much more memory than before its run the process may hold and be used again, in bytes.
const SPENT: u64 = 64 << 20;

/// Why the process ends.
enum Over {
    /// The server closed the pipe, or is gone.
    Closed,
    Idle,
}

/// Runs filters for the server that started this process, until it closes the pipe.
///
/// To be called in a program that was started with [`ChildProgram::arguments`](super::ChildProgram::arguments),
/// before anything else: standard input and output are taken over, and descriptors above standard error are
/// closed.
#[must_use]
pub fn run_child() -> ExitCode {
    confine::leave_the_rest();
    panic::set_hook(Box::new(|_| {}));
    let (requests, received) = sync_channel(1);
    let (over, ended) = sync_channel(2);
    let reader_over = over.clone();
    let reader = thread::Builder::new().name("requests".into()).spawn(move || {
        // An error is a pipe that is no more.
        let _ = read_requests(&requests);
        let _ = reader_over.send(Over::Closed);
    });
    let runner = thread::Builder::new().name("filter".into()).stack_size(STACK).spawn(move || {
        let over_by = serve(&received).unwrap_or(Over::Closed);
        let _ = over.send(over_by);
    });
    if reader.is_err() || runner.is_err() {
        return ExitCode::FAILURE;
    }
    match ended.recv() {
        Ok(Over::Closed | Over::Idle) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn read_requests(to: &SyncSender<(Request, Option<Vec<u8>>)>) -> io::Result<()> {
    let mut input = io::stdin().lock();
    while let Some(request) = Request::read(&mut input)? {
        let body = match request.body {
            None => None,
            Some(len) => {
                let mut body = Vec::new();
                (&mut input).take(len).read_to_end(&mut body)?;
                if body.len() as u64 != len {
                    return Ok(());
                }
                Some(body)
            }
        };
        if to.send((request, body)).is_err() {
            break;
        }
    }
    Ok(())
}

fn serve(requests: &Receiver<(Request, Option<Vec<u8>>)>) -> io::Result<Over> {
    // Locked for each write only: whoever ends the process may have to write, too.
    let mut output = io::stdout();
    output.write_all(GREETING)?;
    output.flush()?;
    let mut input: Option<Val> = None;
    loop {
        let (request, body) = match requests.recv_timeout(IDLE) {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => return Ok(Over::Idle),
            Err(RecvTimeoutError::Disconnected) => return Ok(Over::Closed),
        };
        if body.is_some() {
            input = None;
        }
        confine::before_run(&request.limits, request.body.unwrap_or(0));
        let mut base = confine::resident();
        let run = AssertUnwindSafe(|| {
            if let Some(body) = body {
                input = Some(parsed(body, request.is_text)?);
                base = confine::resident();
            }
            let input = input
                .clone()
                .ok_or_else(|| How::Confused("no body came with the first request".into()))?;
            run(&request, Value(input), &mut output)
        });
        let how = match panic::catch_unwind(run) {
            Ok(Ok(how) | Err(how)) => how,
            Err(payload) => match payload.downcast_ref::<Stop>() {
                Some(stop) => How::Limit(stop.kind()),
                None => How::Failed("the filter does what the engine cannot do".into()),
            },
        };
        let is_spent = confine::resident() > base.saturating_add(SPENT);
        Frame::end(&mut output, &End { how, is_spent })?;
    }
}

fn parsed(body: Vec<u8>, is_text: bool) -> Result<Val, How> {
    let body = Bytes::from(body);
    if is_text {
        return Ok(Val::utf8_str(body));
    }
    read::json(&body).map_err(|why| How::Confused(format!("the body is not JSON: {why}")))
}

fn run(request: &Request, input: Value, output: &mut impl Write) -> Result<How, How> {
    let wrong = |problem: syntax::Problem| How::Confused(problem.hint);
    let lines = syntax::Lines::default();
    let term = syntax::program(&request.filter, &lines).map_err(wrong)?;
    let program = engine::compile(&request.filter, term).map_err(wrong)?;
    let mut batch = Batch::new(&request.limits);
    let mut how = How::Done;
    program.run(input, |value| {
        let taken = match value {
            Ok(value) => batch.take(&value.0, output),
            Err(error) => Err(How::Failed(write::message(&error.into_val().0))),
        };
        match taken {
            Ok(()) => ControlFlow::Continue(()),
            Err(end) => {
                how = end;
                ControlFlow::Break(())
            }
        }
    });
    batch.flush(output).map_err(|_| How::Confused("the pipe is closed".into()))?;
    Ok(how)
}

/// Outputs on their way.
struct Batch<'l> {
    limits: &'l Limits,
    bytes: Vec<u8>,
    count: u32,
    all: usize,
    all_bytes: usize,
}

impl<'l> Batch<'l> {
    const fn new(limits: &'l Limits) -> Self {
        Self { limits, bytes: Vec::new(), count: 0, all: 0, all_bytes: 0 }
    }

    fn take(&mut self, value: &Val, to: &mut impl Write) -> Result<(), How> {
        if self.all >= self.limits.outputs {
            return Err(How::Limit(LimitKind::Outputs));
        }
        let before = self.bytes.len();
        if self.count > 0 {
            self.bytes.push(b',');
        }
        let max_len =
            before.saturating_add(1 + self.limits.output_bytes.saturating_sub(self.all_bytes));
        write::json(value, &mut self.bytes, max_len, self.limits.depth).map_err(|too_much| {
            self.bytes.truncate(before);
            How::Limit(match too_much {
                write::TooMuch::Bytes => LimitKind::Output,
                write::TooMuch::Depth => LimitKind::Depth,
            })
        })?;
        self.all_bytes += self.bytes.len() - before;
        self.all += 1;
        self.count += 1;
        if self.bytes.len() >= OUTPUT_FRAME / 4 {
            self.flush(to).map_err(|_| How::Confused("the pipe is closed".into()))?;
        }
        Ok(())
    }

    /// Sends what there is. A single long output goes in several frames, the last of which counts it.
    fn flush(&mut self, to: &mut impl Write) -> io::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        let mut pieces = self.bytes.chunks(OUTPUT_FRAME).peekable();
        while let Some(piece) = pieces.next() {
            let count = if pieces.peek().is_none() { self.count } else { 0 };
            Frame::outputs(to, count, piece)?;
        }
        self.bytes.clear();
        self.count = 0;
        Ok(())
    }
}
