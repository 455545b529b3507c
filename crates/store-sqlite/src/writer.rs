//! The one thread that writes: it takes whatever commands have handed over since the last commit and
//! makes one transaction of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use raincheck_core::decide::Change;
use raincheck_core::error::Guarantee;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use raincheck_core::ledger::Ledger;
use raincheck_core::store::{Claimed, Durability, Error, Update};
use raincheck_core::task::{Outcome, TaskRecord};
use raincheck_core::time::Timestamp;

use crate::batch::Batch;
use crate::database;
use crate::fault::Fault;
use crate::files::Files;
use crate::front::{Job, Shared, Sink};
use crate::housekeeper::{self, Chore, Housekeeper};
use crate::log::{Log, Need};
use crate::owner::Lock;
use crate::payload;
use crate::rows::Statements;
use crate::settled::Settled;
use crate::write;

/// What a writer needs to begin.
pub(crate) struct Start {
    /// The database file as it was named, which may be a link.
    pub(crate) named: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) shared: Arc<Shared>,
    pub(crate) files: Arc<Files>,
    pub(crate) sink: Sink,
    pub(crate) now: Timestamp,
    pub(crate) lanes: Vec<(LaneId, lane::Config)>,
    /// How long attempts that outlived a restart may be silent.
    pub(crate) reattach: Duration,
    /// Decides, in tests, whether a commit fails.
    #[cfg(test)]
    pub(crate) faults: tests::Faults,
}

/// The open store, on its thread.
pub(crate) struct Writer {
    start: Start,
    connection: Connection,
    log: Log,
    statements: Statements,
    noted: write::Noted,
    housekeeper: Housekeeper,
    /// Files that commits which failed would have named; they go once one has succeeded, so that
    /// nothing on the disk can name them.
    unnamed: Vec<String>,
    /// Held as long as the file is written.
    _lock: Lock,
}

impl Writer {
    /// Takes the store over, and returns the attempts that may still run.
    pub(crate) fn open(start: Start) -> Result<(Self, Vec<Claimed>), Error> {
        if let Some(folder) = start.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(Fault::from)?;
        }
        let mut lock = Lock::take(&start.path, start.now)?;
        database::fetch_contents(&start.named, &start.path)?;
        let is_checked_later = database::is_checked_later(&start.path);
        let mut connection = database::open(&start.path, start.durability, start.now)?;
        let statements = Statements::new();
        let taken = Log::of(&mut connection, &start.path, start.durability).and_then(|log| {
            Ok((log, take_over(&start, &connection, &statements, Vec::new(), start.reattach)?))
        });
        let (log, (mut ledger, settled, epoch, rows)) = match taken {
            Ok(taken) => taken,
            Err(fault) if fault.is_damage() => {
                database::close_damaged(connection);
                return Err(database::keep_aside(&start.path, start.now));
            }
            Err(fault) => return Err(fault.into()),
        };
        database::begin_use(&connection)?;
        // The log is there by now. That its name lasts, the database does not make sure of.
        database::keep_names(&start.path)?;
        lock.set_instance(epoch)?;
        let mac_key = database::mac_key(&connection)?;
        start.files.begin_epoch(epoch);
        database::keep_log(&start.path, start.durability)?;
        database::sweep(&connection, &start.files)?;
        let survivors = with_inputs(&connection, &start.files, rows, |record, error| {
            let lost = Change::Finish(Outcome::Failed(error));
            ledger.update(start.now, Update::attempt(record.id(), record.fence, lost));
        })?;
        let files = Arc::clone(&start.files);
        let housekeeper = Housekeeper::start(&start.path, start.durability, files)?;
        if is_checked_later {
            housekeeper.give(Chore::Check);
        }
        start.shared.set_mac_key(mac_key);
        start.shared.begin_life(ledger, settled);
        let unnamed = Vec::new();
        Ok((
            Self {
                start,
                connection,
                log,
                statements,
                noted: write::Noted::default(),
                housekeeper,
                unnamed,
                _lock: lock,
            },
            survivors,
        ))
    }

    pub(crate) const fn housekeeper(&self) -> &Housekeeper {
        &self.housekeeper
    }

    /// Writes until the store is closed.
    pub(crate) fn run(mut self) {
        let _ending = Ending(Arc::clone(&self.start.shared));
        loop {
            match self.start.shared.next_job() {
                Job::Commit(batch) => self.commit(&batch),
                Job::Recover(now) => self.recover(now),
                Job::Stop => break,
            }
        }
        if let Err(error) = housekeeper::write_back_all(&self.connection) {
            tracing::warn!(%error, "the log of the store was not written back at the end");
        }
    }

    fn commit(&mut self, batch: &Batch) {
        match self.try_commit(batch) {
            Ok(files) => {
                let announcement = self.start.shared.committed(batch);
                if !files.is_empty() {
                    self.housekeeper.give(Chore::Remove(files));
                }
                self.tend_log();
                if !batch.changed.is_empty() {
                    self.start.sink.changed(&batch.changed);
                }
                announcement.tell();
            }
            Err(fault) => {
                tracing::error!(error = ?fault, "a commit failed; nothing is accepted until one succeeds");
                self.unnamed.extend(batch.files());
                self.fall_back(fault);
            }
        }
    }

    /// Gives up what is not committed, and lets everybody read on what is.
    fn fall_back(&mut self, fault: Fault) {
        if fault.is_damage() {
            database::suspect(&self.start.path, &fault);
        }
        let error = fault.into();
        self.unnamed.extend(self.start.shared.refuse(&error));
        let lanes = self.start.shared.lanes();
        let committed = database::read_back(&self.connection, &self.statements, lanes);
        if let Err(fault) = &committed {
            tracing::error!(error = ?fault, "the store cannot even be read");
        }
        self.start.shared.fall_back(&error, committed.ok());
    }

    fn try_commit(&mut self, batch: &Batch) -> Result<Vec<String>, Fault> {
        #[cfg(test)]
        self.start.faults.pass()?;
        write::commit(&mut self.connection, &mut self.log, &self.statements, batch, &mut self.noted)
    }

    fn tend_log(&mut self) {
        match self.log.need() {
            Need::Nothing => {}
            Need::WriteBack => self.housekeeper.give(Chore::WriteBack),
            Need::WriteBackNow => {
                if let Err(error) = housekeeper::write_back(&self.connection) {
                    tracing::warn!(%error, "the log of the store grows and cannot be written back");
                }
            }
        }
    }

    /// Reads the ledger back after a failed commit: what was not committed never was.
    fn recover(&mut self, now: Timestamp) {
        let lanes = self.start.shared.lanes();
        #[cfg(test)]
        if self.start.faults.pass().is_err() {
            return;
        }
        if let Err(fault) = database::try_write(&self.connection) {
            tracing::error!(error = ?fault, "the store still cannot be written");
            self.unnamed.extend(self.start.shared.refuse(&fault.into()));
            return;
        }
        let connection = &self.connection;
        let reattach = self.start.reattach;
        let again = |lanes| -> Result<_, Fault> {
            let (mut ledger, settled, epoch) =
                database::take_over(connection, &self.statements, lanes)?;
            ledger.reattach(now, reattach);
            Ok((ledger, settled, epoch))
        };
        match again(lanes) {
            Ok((ledger, settled, epoch)) => {
                tracing::warn!(epoch, "the store is back after a failed commit");
                let live: Vec<TaskRecord> = ledger
                    .snapshot()
                    .rows
                    .into_iter()
                    .filter(|row| !row.state.is_terminal())
                    .collect();
                self.start.files.begin_epoch(epoch);
                self.housekeeper.give(Chore::Remove(std::mem::take(&mut self.unnamed)));
                self.start.shared.begin_life(ledger, settled);
                if !live.is_empty() {
                    self.start.sink.changed(&live);
                }
            }
            Err(fault) => {
                tracing::error!(error = ?fault, "the store is still not usable");
                self.fall_back(fault);
            }
        }
    }
}

/// Lets nobody wait for a writer that is gone, even if a sink panicked on its thread.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn take_over(
    start: &Start,
    connection: &Connection,
    statements: &Statements,
    known: Vec<database::Lane>,
    reattach: Duration,
) -> Result<(Ledger, Settled, u32, Vec<TaskRecord>), Fault> {
    let (mut ledger, settled, epoch) = database::take_over(connection, statements, known)?;
    for (lane, config) in &start.lanes {
        ledger.set_lane(lane.clone(), config.clone());
    }
    let rows = ledger.reattach(start.now, reattach);
    Ok((ledger, settled, epoch, rows))
}

/// Adds what the tools were given. A task whose inputs are gone is `lost`, and no other.
fn with_inputs(
    connection: &Connection,
    files: &Files,
    rows: Vec<TaskRecord>,
    mut lost: impl FnMut(&TaskRecord, raincheck_core::error::Error),
) -> Result<Vec<Claimed>, Fault> {
    let mut claimed = Vec::with_capacity(rows.len());
    for record in rows {
        match payload::inputs_of(connection, files, record.seq)? {
            Ok(inputs) => claimed.push(Claimed { record, inputs }),
            Err(fault) => {
                tracing::error!(task = %record.id(), error = ?fault, "the inputs of a task are gone");
                lost(&record, payload::inputs_lost(Guarantee::Unknown));
            }
        }
    }
    Ok(claimed)
}

#[cfg(test)]
pub(crate) mod tests;
