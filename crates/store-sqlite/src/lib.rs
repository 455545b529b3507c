//! Tasks in one SQLite file: they outlive the process and, if you choose so, a loss of power.
//!
//! [`SqliteStore`] is the same [`Ledger`](raincheck_core::ledger::Ledger) as in memory, in front of
//! one thread that writes. A command is decided in memory and handed over under one lock; the thread
//! makes one transaction of whatever was handed over since the last one. Sixty-four callers wait for
//! one commit, not for sixty-four.
//!
//! ```no_run
//! use std::sync::Arc;
//! use raincheck_core::store::TaskStore;
//! use raincheck_store_sqlite::{Options, SqliteStore};
//!
//! let store: Arc<dyn TaskStore> = Arc::new(SqliteStore::new(Options::full("state/tasks.db")));
//! ```
//!
//! # What it promises
//!
//! - Nothing that is read, and no receipt, shows what is not committed [DUR-1]. A change, its entry in
//!   the history, its result and its artifacts are one transaction [DUR-2].
//! - [`Options::full`] waits for the disk with every commit. [`Options::process`] does not: a loss of
//!   power may take the last commits with it, a crash of the process never does [DUR-7].
//! - A receipt of inline calls without a key is ready at once; their first read waits [DUR-6].
//! - When a commit fails, everything that waits for it fails with the reason and nothing is accepted.
//!   What is committed is read on. Every further command makes the writer try again: it begins a new
//!   epoch and reads the ledger back from the disk. Attempts whose lease was committed go on [DUR-5].
//! - Opening checks the whole file. A damaged one is renamed to `<name>.damaged-<ms>`, together with
//!   what belongs to it, and the opening fails and says so; the next one begins with an empty store.
//!   Of a file above 64 MiB only the rows of the tasks are read at once; the rest is checked while it
//!   is in use. Damage that is found in use is logged, and the next opening checks before anything.
//! - A second process is refused and told which one owns the store [DUR-4].
//!
//! # Looking from outside
//!
//! A [`Reader`] shows what is committed to any process of the same user, whether a server owns the
//! store at the moment or none does.
//!
//! # What lies where
//!
//! | file | what it is |
//! |---|---|
//! | `<name>` | the database |
//! | `<name>-wal`, `<name>-shm` | its log, written back by a thread of its own after every 4 MiB; zeros behind it are room for what comes |
//! | `<name>.contents/` | inputs and results of more than 64 KiB, written before the row that names them |
//! | `<name>.lock` | who owns the store: pid, start, and how many times the store had been taken over |
//! | `<name>.suspect` | damage was found in use: the next opening checks the whole file first |
//! | `<name>.v<n>` | a copy from before a newer version changed the tables |
//!
//! # What it costs
//!
//! The row of every task that has not ended is in memory, and those of the last thousand or so that
//! have; the rest is read from the disk when it is asked for [DUR-8]. So are inputs, results and
//! histories, but for 8 MiB of inputs of queued tasks. Of ended tasks with an idempotency key up to 65,536
//! keys are remembered by 16 bytes each; beyond that every new key is looked for in the file.
//!
//! A list is read from indexes of the file, without a lock that a command would need: by state, by tool,
//! by both, by a label or by time it costs what its page costs, however many tasks there are.
//!
//! Renewed leases are not written: after a restart every attempt gets the grace anew. What comes with a
//! heartbeat is written where it is new. Partial results lie in the database whatever their size. Log
//! lines are not kept here.
//!
//! SQLite is built as it comes unless `LIBSQLITE3_FLAGS=-DHAVE_FDATASYNC` is set when it is compiled, as
//! this project's own builds do on every system: with it a commit on Linux waits for what it wrote and
//! not for the time of the file's last change as well.

mod fault;

mod schema;

mod owner;

mod rows;

mod outcome;

mod files;

mod payload;

mod list;

mod settled;

mod alone;

mod batch;

mod front;

mod database;

mod wanted;
mod write;

mod log;

mod housekeeper;

mod writer;

mod readers;

mod store;

mod recall;

mod reading;

mod reader;

mod defects;

pub use alone::is_alone;
pub use defects::{Defect, check_locks};
pub use reader::Reader;
pub use store::{Options, SqliteStore};
