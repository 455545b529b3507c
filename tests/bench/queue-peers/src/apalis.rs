//! apalis over SQLite. As shipped it takes ten jobs at once; tuned, as many as it has workers, ten times.

use std::time::Instant;

use apalis::layers::WorkerBuilderExt as _;
use apalis::prelude::{BoxDynError, TaskSink as _, WorkerBuilder};
use apalis_sqlite::{Config, SqliteStorage};
use riverqueue::sqlx::SqlitePool;

use crate::{TALLY, Wish};

async fn nothing(_: u64) -> Result<(), BoxDynError> {
    TALLY.one();
    Ok(())
}

pub(crate) async fn drain(pool: SqlitePool, wish: &Wish) -> anyhow::Result<f64> {
    SqliteStorage::setup(&pool).await?;
    let config = Config::default();
    let config = if wish.is_tuned { config.batch_size(10 * wish.n_workers) } else { config };
    let mut backend = SqliteStorage::<u64>::new(&pool).with_config(config);
    for job in 0..wish.n_jobs {
        backend.push(job).await?;
    }
    let begun = Instant::now();
    let worker =
        WorkerBuilder::new("bench").backend(backend).concurrency(wish.n_workers).build(nothing);
    tokio::spawn(worker.run());
    Ok(TALLY.rate(wish, begun).await)
}
