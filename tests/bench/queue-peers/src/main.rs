//! Drains a filled queue of another library and prints how many jobs a second it ran.
//!
//! `queue-peers river|apalis shipped|tuned WORKERS JOBS SECONDS FOLDER`
//!
//! Every database is a new file in FOLDER, WAL, `synchronous = FULL` on every connection, so that all
//! of them keep a finished job through a loss of power. The queue is filled first, outside the clock.
//! The handler counts and returns. The rate is of the jobs that the handler saw until all were done or
//! SECONDS were over.

mod apalis;
mod river;

use std::path::Path;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use riverqueue::sqlx::SqlitePool;
use riverqueue::sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use tokio::sync::Notify;

/// What one run is asked for.
struct Wish {
    is_tuned: bool,
    n_workers: usize,
    n_jobs: u64,
    at_most: Duration,
}

/// Counts the jobs that were run, and tells when it was all of them.
struct Tally {
    done: AtomicU64,
    all: AtomicU64,
    complete: Notify,
}

static TALLY: Tally =
    Tally { done: AtomicU64::new(0), all: AtomicU64::new(u64::MAX), complete: Notify::const_new() };

impl Tally {
    fn one(&self) {
        if self.done.fetch_add(1, Ordering::Relaxed) + 1 == self.all.load(Ordering::Relaxed) {
            self.complete.notify_one();
        }
    }

    /// Waits for the last job or the end of the time, and returns jobs a second.
    async fn rate(&self, wish: &Wish, begun: Instant) -> f64 {
        let _late = tokio::time::timeout(wish.at_most, self.complete.notified()).await;
        let seconds = begun.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a count of jobs is small")]
        let done = self.done.load(Ordering::Relaxed) as f64;
        done / seconds
    }
}

async fn pool(folder: &Path) -> anyhow::Result<SqlitePool> {
    let url = format!("sqlite://{}", folder.join("peer.db").display());
    let options = SqliteConnectOptions::from_str(&url)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(30));
    Ok(SqlitePoolOptions::new().connect_with(options).await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, setting, workers, jobs, seconds, folder] = arguments.as_slice() else {
        bail!("usage: queue-peers river|apalis shipped|tuned WORKERS JOBS SECONDS FOLDER");
    };
    let wish = Wish {
        is_tuned: setting == "tuned",
        n_workers: workers.parse().context("WORKERS")?,
        n_jobs: jobs.parse().context("JOBS")?,
        at_most: Duration::from_secs(seconds.parse().context("SECONDS")?),
    };
    TALLY.all.store(wish.n_jobs, Ordering::Relaxed);
    let pool = pool(Path::new(folder)).await?;
    let rate = match peer.as_str() {
        "river" => river::drain(pool, &wish).await?,
        "apalis" => apalis::drain(pool, &wish).await?,
        other => bail!("no peer is named `{other}`: river, apalis"),
    };
    println!("{rate:.1}");
    // Neither library has to be shut down in order: the folder is thrown away.
    std::process::exit(0);
}
