//! riverqueue over SQLite. As shipped it fetches every 100 ms; its own benchmark sets 2 ms.

use std::time::{Duration, Instant};

use riverqueue::migrate::SqliteMigrator;
use riverqueue::sqlx::SqlitePool;
use riverqueue::{
    Client, InsertManyItem, Job, JobArgs, QueueConfig, WorkContext, WorkOutcome, Workers,
};
use serde::{Deserialize, Serialize};

use crate::{TALLY, Wish};

#[derive(Clone, Debug, Deserialize, JobArgs, Serialize)]
#[river(kind = "nothing")]
struct Nothing {}

async fn nothing(_: WorkContext, _: Job<Nothing>) -> Result<WorkOutcome, std::io::Error> {
    TALLY.one();
    Ok(WorkOutcome::Complete)
}

pub(crate) async fn drain(pool: SqlitePool, wish: &Wish) -> anyhow::Result<f64> {
    SqliteMigrator::new(pool.clone()).migrate_up().await?;
    let mut workers = Workers::new();
    workers.add_fn(nothing)?;
    let mut queue = QueueConfig::new(wish.n_workers);
    if wish.is_tuned {
        queue = queue.with_fetch_cooldown(Duration::from_millis(2));
    }
    let client = Client::builder(pool).workers(workers).queue("default", queue).build()?;
    let mut left = wish.n_jobs;
    while left > 0 {
        let n = left.min(500);
        let batch = (0..n).map(|_| InsertManyItem::new(Nothing {}, Default::default()));
        client.insert_many(batch.collect::<Vec<_>>()).await?;
        left -= n;
    }
    let begun = Instant::now();
    let _run = client.start()?;
    Ok(TALLY.rate(wish, begun).await)
}
