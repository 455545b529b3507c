//! Log lines on their way from the pipes to the log, so that a slow log never holds up a program
//! [LOG-2].

use std::time::Duration;

use raincheck_core::log::Draft;
use tokio::sync::mpsc;

use super::{Listener, note};

/// The most lines of one batch.
pub(super) const BATCH: usize = 1024;

/// How many batches may wait.
const BATCHES: usize = 32;

/// How long a reader waits for a log that takes nothing at all.
const STALL: Duration = Duration::from_secs(1);

/// The way in, one for each reader.
///
/// While the log takes lines, however slowly, a reader goes at its pace. When it takes nothing for
/// [`STALL`], lines are left out, with a line that counts them, until it takes some again.
#[derive(Clone, Debug)]
pub(super) struct Log {
    batches: mpsc::Sender<Vec<Draft>>,
    lost: usize,
}

/// The way out.
#[derive(Debug)]
pub(super) struct Backlog {
    batches: mpsc::Receiver<Vec<Draft>>,
}

/// Makes a backlog and its first way in.
pub(super) fn open() -> (Log, Backlog) {
    let (sender, receiver) = mpsc::channel(BATCHES);
    (Log { batches: sender, lost: 0 }, Backlog { batches: receiver })
}

impl Log {
    /// Hands over lines.
    pub(super) async fn send(&mut self, listener: &dyn Listener, lines: Vec<Draft>) {
        let n = lines.len();
        if n == 0 {
            return;
        }
        let is_taken = if self.lost == 0 {
            self.batches.send_timeout(lines, STALL).await.is_ok()
        } else {
            let mut told = vec![self.loss(listener)];
            told.extend(lines);
            self.batches.try_send(told).is_ok()
        };
        self.lost = if is_taken { 0 } else { self.lost + n };
    }

    /// Hands over the last lines, when nobody is held up any more.
    pub(super) async fn finish(self, mut lines: Vec<Draft>) {
        if !lines.is_empty() {
            lines.truncate(BATCH);
            let _ = self.batches.send(lines).await;
        }
    }

    /// Tells what was lost until the end of a reader.
    pub(super) async fn close(self, listener: &dyn Listener) {
        let lines = if self.lost > 0 { vec![self.loss(listener)] } else { Vec::new() };
        self.finish(lines).await;
    }

    fn loss(&self, listener: &dyn Listener) -> Draft {
        let lines = match self.lost {
            1 => "1 line was".to_owned(),
            n => format!("{n} lines were"),
        };
        note(listener, format!("{lines} left out: the log took none for a while"))
    }
}

impl Backlog {
    /// Gives every line to the listener until all readers are done.
    pub(super) async fn drain(mut self, listener: &dyn Listener) {
        let mut batches = Vec::with_capacity(BATCHES);
        while self.batches.recv_many(&mut batches, BATCHES).await > 0 {
            listener.logs(batches.drain(..).flatten().collect()).await;
        }
    }
}
