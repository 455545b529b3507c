//! What of a store cannot be read: for whoever looks for the cause of a trouble.

use std::path::Path;

use raincheck_core::ids::TaskId;
use raincheck_core::store::Error;

use crate::fault::Fault;
use crate::files;
use crate::owner;
use crate::reader::Reader;
use crate::rows;

/// One task whose row cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// The task; `None` where even its identity cannot be read.
    pub task: Option<TaskId>,
    /// What is wrong with it.
    pub what: String,
}

impl Reader {
    /// Looks through the whole store for rows that cannot be read, damaged ones and those with a word of
    /// a newer version. Stops after `most` of them.
    ///
    /// # Errors
    /// [`Error`] when the store itself cannot be read.
    pub fn defects(&self, most: usize) -> Result<Vec<Defect>, Error> {
        Ok(self.unreadable_rows(most)?)
    }

    fn unreadable_rows(&self, most: usize) -> Result<Vec<Defect>, Fault> {
        let sql = format!("SELECT {} FROM tasks ORDER BY seq", rows::columns());
        let mut statement = self.connection().prepare(&sql)?;
        let mut found = statement.query([])?;
        let mut defects = Vec::new();
        while let Some(row) = found.next()?.filter(|_| defects.len() < most) {
            match rows::read(row) {
                Ok(_) => {}
                Err(Fault::Broken(why)) => {
                    let task = row.get(0).ok().and_then(|id| rows::task_id(id).ok());
                    let what = format!("its row cannot be read by this version: {why}");
                    defects.push(Defect { task, what });
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(defects)
    }
}

/// Looks whether a store could be owned in the folder of `path`: some network folders lock no files.
/// Leaves nothing behind; a folder that is not there is not made.
///
/// # Errors
/// [`Error`] that names the cause, and what to do.
pub fn check_locks(path: &Path) -> Result<(), Error> {
    let path = crate::schema::beside(&files::behind_links(path), ".lock-check");
    let file = match files::open_private(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Fault::from(error).into()),
    };
    let can_lock = owner::can_lock(&file) && file.try_lock().is_ok();
    drop(file);
    // Another look may have removed it.
    let _ = std::fs::remove_file(&path);
    if can_lock { Ok(()) } else { Err(Fault::NoLocks.into()) }
}
