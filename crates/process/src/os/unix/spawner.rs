//! The one thread that starts programs.
//!
//! Linux kills a program "with its parent" when the *thread* that started it ends, so that thread
//! must live as long as the process. It starts one program at a time, which also keeps one
//! program's descriptors from leaking into another that starts meanwhile.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

type Job = Box<dyn FnOnce() + Send>;

/// Runs a short job on the spawner thread.
pub(super) fn run(job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    static SPAWNER: OnceLock<Option<Sender<Job>>> = OnceLock::new();
    let jobs = SPAWNER.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        let work = move || jobs.into_iter().for_each(|job| job());
        std::thread::Builder::new().name("raincheck-spawner".to_owned()).spawn(work).ok()?;
        Some(sender)
    });
    let gone = || io::Error::other("the thread that starts programs could not be started");
    jobs.as_ref().ok_or_else(gone)?.send(Box::new(job)).map_err(|_| gone())
}
