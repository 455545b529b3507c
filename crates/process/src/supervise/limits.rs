//! What a program may use, and the look that is taken at it now and then.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::order::Limits;
use crate::os::Scale;

/// How often a program is looked at. One that takes much within that time gets it.
const LOOK: Duration = Duration::from_secs(1);

/// The share of its time that a look may take, so that a folder of many files is looked at less often.
const SHARE: u32 = 20;

/// A limit that a program went beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Excess {
    pub(crate) limit: Limit,
    pub(crate) allowed_mb: u64,
}

/// One of the limits, by the name under which a caller sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    MemoryMb,
    ScratchMb,
}

/// Waits until a program goes beyond a limit; for ever when it has none.
pub(super) async fn exceeded(limits: &Limits, scale: Scale) -> Excess {
    let mut pause = LOOK;
    loop {
        if limits.memory_mb.or(limits.scratch_mb).is_none() {
            std::future::pending::<()>().await;
        }
        sleep(pause).await;
        let begun = Instant::now();
        let (limits, scale) = (limits.clone(), scale.clone());
        if let Ok(Some(excess)) = spawn_blocking(move || look(&limits, &scale)).await {
            return excess;
        }
        pause = LOOK.max(begun.elapsed() * SHARE);
    }
}

fn look(limits: &Limits, scale: &Scale) -> Option<Excess> {
    let is_beyond = |allowed_mb: &u64, used: u64| used > allowed_mb.saturating_mul(1 << 20);
    let memory = || scale.memory(limits.memory_mb.unwrap_or(0).saturating_mul(1 << 20));
    let scratch = || size(PathBuf::from(&limits.scratch));
    let excess = |limit| move |allowed_mb| Excess { limit, allowed_mb };
    limits
        .memory_mb
        .filter(|allowed| is_beyond(allowed, memory()))
        .map(excess(Limit::MemoryMb))
        .or_else(|| {
            let allowed = limits.scratch_mb.filter(|allowed| is_beyond(allowed, scratch()));
            allowed.map(excess(Limit::ScratchMb))
        })
}

/// Returns how much the files below a folder take, without following a link.
fn size(folder: PathBuf) -> u64 {
    let (mut folders, mut total) = (vec![folder], 0_u64);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            // What goes away meanwhile takes nothing.
            let Ok(facts) = entry.metadata() else { continue };
            total = total.saturating_add(taken(&facts));
            if facts.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    total
}

#[cfg(unix)]
fn taken(facts: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(facts).saturating_mul(512)
}

#[cfg(not(unix))]
fn taken(facts: &std::fs::Metadata) -> u64 {
    facts.len()
}
