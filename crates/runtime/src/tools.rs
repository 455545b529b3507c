//! Every tool of every set, by its name.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::{join_all, select_all};
use tokio::sync::watch;

use raincheck_core::error::Error;
use raincheck_core::tool::ToolSpec;

use crate::executor::{Executor, StartReport};
use crate::toolset::{ToolSet, ToolsChanged};

/// One tool, and who answers for it.
pub(crate) struct Tool {
    pub(crate) spec: ToolSpec,
    pub(crate) set: Arc<dyn ToolSet>,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) start_report: StartReport,
}

/// Every tool.
pub(crate) struct Tools {
    /// Where artifacts lie.
    pub(crate) folders: Box<[PathBuf]>,
    sets: Box<[Source]>,
    /// One of each set, in their order.
    executors: Vec<Arc<dyn Executor>>,
    table: RwLock<Arc<Table>>,
}

/// A set, and what tells that its tools changed.
struct Source {
    set: Arc<dyn ToolSet>,
    executor: Arc<dyn Executor>,
    changes: Option<ToolsChanged>,
}

/// The tools as they were named last.
struct Table {
    version: u64,
    specs: Arc<[ToolSpec]>,
    by_name: HashMap<Box<str>, Arc<Tool>>,
}

impl Tools {
    pub(crate) fn new(sets: &[Arc<dyn ToolSet>]) -> Self {
        let source = |set: &Arc<dyn ToolSet>| Source {
            set: Arc::clone(set),
            executor: set.executor(),
            changes: set.changes(),
        };
        let sources: Box<[Source]> = sets.iter().map(source).collect();
        Self {
            folders: sets.iter().filter_map(|set| set.artifacts()).collect(),
            executors: sources.iter().map(|source| Arc::clone(&source.executor)).collect(),
            table: RwLock::new(Arc::new(Table::of(&sources))),
            sets: sources,
        }
    }

    /// Returns the tools, in the order in which their sets name them.
    pub(crate) fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.table().specs)
    }

    pub(crate) fn find(&self, name: &str) -> Option<Arc<Tool>> {
        self.table().by_name.get(name).cloned()
    }

    /// Finds a tool, once its set knows its tools; `None` where no set has it.
    ///
    /// # Errors
    /// Of a set that does not know its tools yet: it may be one of them.
    pub(crate) async fn find_known(&self, name: &str) -> Result<Option<Arc<Tool>>, Error> {
        if let Some(tool) = self.find(name) {
            return Ok(Some(tool));
        }
        let known = self.known().await;
        match self.find(name) {
            Some(tool) => Ok(Some(tool)),
            None => known.map(|()| None),
        }
    }

    /// Waits until every set knows its tools.
    ///
    /// # Errors
    /// Of the first set that does not know them yet.
    pub(crate) async fn known(&self) -> Result<(), Error> {
        let unsure = self.sets.iter().filter(|source| source.changes.is_some());
        join_all(unsure.map(|source| source.set.known())).await.into_iter().collect()
    }

    /// Returns who may have something of an attempt left whose tool is gone.
    pub(crate) fn executors(&self) -> &[Arc<dyn Executor>] {
        &self.executors
    }

    /// Returns a number that is another after each change of the tools.
    pub(crate) fn version(&self) -> u64 {
        version(&self.sets)
    }

    /// Watches the tools for changes; `None` when they never change.
    pub(crate) fn watch(&self) -> Option<ToolsWatch> {
        let changes = self.sets.iter().filter_map(|source| source.changes.as_ref());
        let changes: Vec<_> = changes.map(ToolsChanged::subscribe).collect();
        (!changes.is_empty()).then_some(ToolsWatch(changes))
    }

    /// Returns the tools as they are now. Sets are asked again only after they told of a change.
    fn table(&self) -> Arc<Table> {
        let version = self.version();
        let table = Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner));
        if table.version == version {
            return table;
        }
        let table = Arc::new(Table::of(&self.sets));
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&table);
        table
    }
}

impl Table {
    fn of(sets: &[Source]) -> Self {
        // Read first: what changes meanwhile is looked at again.
        let version = version(sets);
        let (mut specs, mut by_name) = (Vec::new(), HashMap::new());
        for Source { set, executor, .. } in sets {
            for spec in set.specs() {
                if by_name.contains_key(spec.name.as_str()) {
                    tracing::warn!(tool = %spec.name, "two tool sets name the same tool; the first counts");
                    continue;
                }
                specs.push(spec.clone());
                let name = spec.name.as_str().into();
                let (set, executor) = (Arc::clone(set), Arc::clone(executor));
                let start_report = executor.start_report();
                by_name.insert(name, Arc::new(Tool { spec, set, executor, start_report }));
            }
        }
        Self { version, specs: specs.into(), by_name }
    }
}

fn version(sets: &[Source]) -> u64 {
    sets.iter().filter_map(|source| source.changes.as_ref()).map(ToolsChanged::version).sum()
}

/// Watches the tools of an engine for changes.
#[derive(Debug)]
pub struct ToolsWatch(Vec<watch::Receiver<u64>>);

impl ToolsWatch {
    /// Waits until the tools changed since the last call, or since the watch began. Changes in between
    /// count as one.
    ///
    /// # Cancel safety
    /// Safe: a change that was not returned is returned by the next call.
    pub async fn changed(&mut self) {
        let mut news: Vec<_> = self.0.iter_mut().map(|one| Box::pin(one.changed())).collect();
        while !news.is_empty() {
            let (changed, _, rest) = select_all(news).await;
            if changed.is_ok() {
                return;
            }
            // That set is gone.
            news = rest;
        }
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use futures_util::FutureExt as _;

    use raincheck_core::content::Json;

    use super::*;
    use crate::functions::Functions;
    use crate::toolset::{Call, Route};

    /// A set whose tools a test names.
    #[derive(Default)]
    struct Named {
        names: Mutex<Vec<&'static str>>,
        changes: ToolsChanged,
        n_asked: std::sync::atomic::AtomicUsize,
    }

    #[async_trait]
    impl ToolSet for Named {
        fn specs(&self) -> Vec<ToolSpec> {
            self.n_asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let spec = |name: &&str| ToolSpec::new(*name, "", Json::empty_object());
            self.names.lock().expect("no panic").iter().map(spec).collect()
        }

        fn changes(&self) -> Option<ToolsChanged> {
            Some(self.changes.clone())
        }

        async fn route(&self, _: &Call) -> Result<Route, Error> {
            Err(Error::not_found())
        }

        fn executor(&self) -> Arc<dyn Executor> {
            Arc::new(Functions::new())
        }
    }

    #[test]
    fn tools_that_come_later_are_found_and_gone_ones_are_not() {
        // [GATE-5]
        let named = Arc::new(Named::default());
        let tools = Tools::new(&[Arc::clone(&named) as Arc<dyn ToolSet>]);
        let mut watch = tools.watch().expect("tools that change");
        assert!(tools.find("late").is_none());
        *named.names.lock().expect("no panic") = vec!["late"];
        assert!(tools.find("late").is_none(), "it was not told");
        named.changes.tell();
        assert!(watch.changed().now_or_never().is_some());
        assert!(watch.changed().now_or_never().is_none(), "once");
        assert!(tools.find("late").is_some());
        assert_eq!(tools.specs().len(), 1);
        let n_asked = named.n_asked.load(std::sync::atomic::Ordering::SeqCst);
        assert_eq!(n_asked, 2, "at the start, and after the change");
        named.names.lock().expect("no panic").clear();
        named.changes.tell();
        assert!(tools.find("late").is_none());
    }

    #[test]
    fn tools_that_never_change_have_no_watch() {
        assert!(Tools::new(&[Arc::new(Functions::new())]).watch().is_none());
    }
}
