//! A bounded queue in front of a writer that may be stuck.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use raincheck_core::text::{clip, escape};

/// How many lines may wait for the writer.
const LINES: usize = 1024;

/// The longest line, in bytes; the rest of a longer one is cut off.
const LONGEST: usize = 16 << 10;

enum Item {
    Line(String),
    Flush(SyncSender<()>),
}

/// The queue; putting a line in never waits.
pub struct Queue {
    items: SyncSender<Item>,
    dropped: Arc<AtomicU64>,
}

impl Queue {
    /// Starts the thread that writes lines to `out`.
    #[must_use]
    pub fn start(out: impl Write + Send + 'static) -> Self {
        let (items, waiting) = sync_channel(LINES);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&dropped);
        // Without the thread every line is dropped, and nothing else is lost.
        let _ = thread::Builder::new()
            .name("raincheck-log".into())
            .spawn(move || write_all(&waiting, &lost, out));
        Self { items, dropped }
    }

    /// Returns a writer that becomes one line when it is dropped.
    #[must_use]
    pub const fn line(&self) -> Line<'_> {
        Line { queue: self, bytes: Vec::new() }
    }

    /// Waits until everything before it is written, for a limited time; tells whether it is.
    pub fn flush(&self, limit: Duration) -> bool {
        let (done, written) = sync_channel(1);
        self.items.try_send(Item::Flush(done)).is_ok() && written.recv_timeout(limit).is_ok()
    }

    fn push(&self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let line = escape(clip(text.trim_end_matches(['\r', '\n']), LONGEST)).into_owned();
        match self.items.try_send(Item::Line(line + "\n")) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("dropped", &self.dropped).finish_non_exhaustive()
    }
}

fn write_all(waiting: &Receiver<Item>, dropped: &AtomicU64, mut out: impl Write) {
    for item in waiting {
        match item {
            Item::Line(line) => {
                // A reader that went away is nobody to tell.
                let _ = out.write_all(line.as_bytes());
            }
            Item::Flush(done) => {
                let _ = out.flush();
                let _ = done.try_send(());
            }
        }
        let n = dropped.swap(0, Ordering::Relaxed);
        if n > 0 {
            let _ = writeln!(out, "{n} log lines were dropped, since nobody read them");
        }
    }
}

/// One line in the making.
#[derive(Debug)]
pub struct Line<'a> {
    queue: &'a Queue,
    bytes: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.queue.push(&self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn log(queue: &Queue, text: &str) {
        queue.line().write_all(text.as_bytes()).expect("a line takes everything");
    }

    #[test]
    fn a_stuck_reader_costs_lines_and_no_time() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let queue = Queue::start(writer);
        let (long, n_sent) = ("x".repeat(1000), 4 * LINES);
        for _ in 0..n_sent {
            log(&queue, &long);
        }
        drop(queue);
        let (mut n_read, mut n_told) = (0, 0);
        for line in BufReader::new(reader).lines().map(|line| line.expect("text")) {
            match line.strip_suffix(" log lines were dropped, since nobody read them") {
                Some(n) => n_told += n.parse::<usize>().expect("a number"),
                None => n_read += 1,
            }
        }
        assert!(n_told > LINES, "only {n_told} lines were dropped");
        assert_eq!(n_read + n_told, n_sent);
    }

    #[test]
    fn a_line_stays_one_line_and_controls_become_visible() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let queue = Queue::start(writer);
        log(&queue, "a\nb\u{1b}[2J\n");
        assert!(queue.flush(SOON));
        drop(queue);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("text");
        assert_eq!(text, "a\\x0ab\\x1b[2J\n");
    }

    #[test]
    fn the_end_waits_for_lines_but_not_for_a_stuck_reader() {
        let (reader, writer) = io::pipe().expect("a pipe");
        let queue = Queue::start(writer);
        for _ in 0..200 {
            log(&queue, &"x".repeat(1000));
        }
        assert!(!queue.flush(Duration::from_millis(10)));
        drop(reader);
    }
}
