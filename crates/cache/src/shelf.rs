//! What is held: entries under handles, within byte budgets, over restarts.

mod blocks;
mod body;
mod cache;
mod checksum;
mod disk;
mod entry;
mod folder;
mod graves;
mod heap;
mod journal;
mod life;
mod pinned;
mod registry;
mod reopen;
mod wire;

pub use cache::{Cache, Config, New, Receipt, Refused, Storage, Usage};
pub use entry::{BodyKind, Metadata, Miss, Reason, Rerun, parse_id};
pub use life::Millis;
pub use pinned::Pinned;
