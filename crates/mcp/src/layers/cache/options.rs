//! How a cache is set up.

use std::path::PathBuf;
use std::time::Duration;

use raincheck_cache::{ChildProgram, Config, FiltersConfig};
use raincheck_core::content::Json;
use raincheck_core::scope::Scope;

use super::limits::ClientLimits;

/// How many bytes a mebibyte has.
const MIB: u64 = 1 << 20;

/// How a cache is set up; the defaults are those of the contract [CACHE-9].
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// How large an answer each client takes.
    pub limits: ClientLimits,
    /// The folder that holds entries beyond a restart; none keeps them in memory.
    pub folder: Option<PathBuf>,
    /// The most it holds, in bytes.
    pub total_bytes: u64,
    /// The most it holds for one scope, in bytes.
    pub scope_bytes: u64,
    /// The largest entry, in bytes.
    pub entry_bytes: u64,
    /// How long an entry lives after it was read last.
    pub ttl: Duration,
    /// How long an entry lives however often it is read.
    pub absolute_ttl: Duration,
    /// Who owns what is cached ahead.
    pub warm_scope: Scope,
    /// The calls whose answers are cached ahead.
    pub warm: Vec<Warming>,
    /// How the child that runs filters is started; without one only the simplest filters run.
    pub filter_child: Option<ChildProgram>,
}

impl CacheOptions {
    /// Returns what the cache itself must know.
    pub(super) fn config(&self) -> Config {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Config {
            dir: self.folder.clone(),
            total_bytes: self.total_bytes,
            scope_bytes: self.scope_bytes.min(self.total_bytes),
            entry_bytes: self.entry_bytes,
            ttl_ms: millis(self.ttl),
            absolute_ttl_ms: millis(self.absolute_ttl),
            ..Config::default()
        }
    }

    /// Returns how filters are run.
    pub(super) fn filters(&self) -> FiltersConfig {
        FiltersConfig { program: self.filter_child.clone(), ..FiltersConfig::default() }
    }
}

/// A call whose answer is cached ahead, and refreshed under its handle [CACHE-8].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warming {
    /// The tool, which must only read, or be idempotent.
    pub tool: String,
    /// Its arguments.
    pub inputs: Json,
    /// How often it is called again; `None` is once.
    pub every: Option<Duration>,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            limits: ClientLimits::default(),
            folder: None,
            total_bytes: 256 * MIB,
            scope_bytes: 128 * MIB,
            entry_bytes: 64 * MIB,
            ttl: Duration::from_secs(30 * 60),
            absolute_ttl: Duration::from_secs(4 * 3600),
            warm_scope: Scope::local(),
            warm: Vec::new(),
            filter_child: None,
        }
    }
}
