//! What `doctor` says of the file with the tasks, beside the contents that are missing.

use raincheck_app::cli::{Serving, Shared};
use raincheck_app::config::Store;
use raincheck_app::doctor::Finding;
use raincheck_app::paths::Paths;
use raincheck_store_sqlite::Reader;

use crate::{BINARY, THIS};

const CHECK: &str = "rows of tasks";

/// How many tasks that cannot be read are named.
const MOST: usize = 5;

/// Looks whether every task of the store can be read. What is wrong with the flags or the configuration is
/// found elsewhere.
pub(super) fn findings(shared: &Shared, serving: &Serving) -> Vec<Finding> {
    let place = || {
        let file = shared.load(&THIS, serving).ok()?;
        let paths = Paths::resolve(BINARY, shared).ok()?;
        match shared.store(&file, &paths.home) {
            Store::Path(path) => Some(path),
            Store::Memory => None,
        }
    };
    let Some(path) = place() else { return Vec::new() };
    let defects = Reader::open(&path).and_then(|reader| match reader {
        Some(reader) => reader.defects(MOST),
        None => Ok(Vec::new()),
    });
    match defects {
        Ok(defects) if defects.is_empty() => {
            vec![Finding::good(CHECK, "the row of every task can be read")]
        }
        Ok(defects) => {
            let named = defects.iter().map(|defect| {
                let task = defect.task.map_or_else(|| "a task".to_owned(), |id| id.to_string());
                format!("{task}: {}", defect.what)
            });
            let next = "start the version that wrote them, or run their tools again; other tasks are \
                        not concerned";
            vec![Finding::note(CHECK, named.collect::<Vec<_>>().join("\n"), next)]
        }
        Err(error) => {
            let next = error.hint.as_deref().unwrap_or("look at the server's log").to_owned();
            vec![Finding::bad(CHECK, error.message.to_string(), next)]
        }
    }
}
