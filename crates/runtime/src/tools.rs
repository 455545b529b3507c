//! Every tool of every set, by its name.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use raincheck_core::tool::ToolSpec;

use crate::executor::{Executor, StartReport};
use crate::toolset::ToolSet;

/// One tool, and who answers for it.
pub(crate) struct Tool {
    pub(crate) spec: ToolSpec,
    pub(crate) set: Arc<dyn ToolSet>,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) start_report: StartReport,
}

/// Every tool.
pub(crate) struct Tools {
    pub(crate) specs: Arc<[ToolSpec]>,
    /// Where artifacts lie.
    pub(crate) folders: Box<[PathBuf]>,
    by_name: HashMap<Box<str>, Tool>,
    /// One of each set, in their order.
    executors: Vec<Arc<dyn Executor>>,
}

impl Tools {
    pub(crate) fn new(sets: &[Arc<dyn ToolSet>]) -> Self {
        let mut specs = Vec::new();
        let mut by_name = HashMap::new();
        let mut executors = Vec::with_capacity(sets.len());
        for set in sets {
            let executor = set.executor();
            executors.push(Arc::clone(&executor));
            for spec in set.specs() {
                if by_name.contains_key(spec.name.as_str()) {
                    tracing::warn!(tool = %spec.name, "two tool sets name the same tool; the first counts");
                    continue;
                }
                specs.push(spec.clone());
                let tool = Tool {
                    set: Arc::clone(set),
                    executor: Arc::clone(&executor),
                    start_report: executor.start_report(),
                    spec,
                };
                by_name.insert(tool.spec.name.as_str().into(), tool);
            }
        }
        let folders = sets.iter().filter_map(|set| set.artifacts()).collect();
        Self { specs: specs.into(), folders, by_name, executors }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Tool> {
        self.by_name.get(name)
    }

    /// Returns who may have something of an attempt left whose tool is gone.
    pub(crate) fn executors(&self) -> &[Arc<dyn Executor>] {
        &self.executors
    }
}
