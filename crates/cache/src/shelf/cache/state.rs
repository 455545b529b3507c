//! The rows and the index file, changed together.

use std::io;

use uuid::Uuid;

use crate::shelf::body::Body;
use crate::shelf::cache::Storage;
use crate::shelf::disk::{self, Disk, Staged};
use crate::shelf::entry::{Metadata, Miss, Reason};
use crate::shelf::journal::Record;
use crate::shelf::life::Millis;
use crate::shelf::registry::{Limits, Refusal, Registry, Row};
use crate::shelf::reopen::{self, record_of};

#[derive(Debug)]
pub(super) struct State {
    pub(super) registry: Registry<Body>,
    disk: Option<Disk>,
    /// What kept the entries out of the folder.
    why: Option<String>,
    /// The instant of the last call, for what happens when a reader ends.
    now: Millis,
}

impl State {
    pub(super) fn in_memory(limits: Limits, why: Option<String>) -> Self {
        Self { registry: Registry::new(limits), disk: None, why, now: 0 }
    }

    pub(super) fn with_disk(registry: Registry<Body>, disk: Disk, now: Millis) -> Self {
        Self { registry, disk: Some(disk), why: None, now }
    }

    pub(super) fn read_only(registry: Registry<Body>, now: Millis) -> Self {
        let why = Some("the folder was opened to be looked at".to_owned());
        Self { registry, disk: None, why, now }
    }

    pub(super) fn storage(&self) -> Storage {
        match &self.disk {
            Some(Disk { broken: None, .. }) => Storage::Folder,
            Some(Disk { broken: why, .. }) => Storage::Memory { why: why.clone() },
            None => Storage::Memory { why: self.why.clone() },
        }
    }

    /// Dry run of [`State::put`], after what has expired went.
    pub(super) fn check_room(
        &mut self,
        now: Millis,
        metadata: &Metadata,
        held: u64,
    ) -> Result<(), Refusal> {
        self.expire(now);
        self.registry.make_room(metadata, held).map(|_| ())
    }

    /// Takes an entry in. The caller says next whether it is durable: [`State::keep`].
    pub(super) fn put(
        &mut self,
        now: Millis,
        metadata: Metadata,
        body: Body,
    ) -> Result<(), Refusal> {
        self.expire(now);
        let held = body.held();
        self.registry.put(now, metadata, body, held).map(|_| ())
    }

    /// Gives the file of an entry its name and writes its record, and those of who went for it. False when
    /// the entry is in memory only.
    pub(super) fn keep(&mut self, id: Uuid, staged: Option<Staged>) -> bool {
        let Some(row) = self.registry.row(id) else { return false };
        let (metadata, number) = (row.metadata.clone(), row.number);
        let mut body = row.body.clone();
        let folder = self.disk.as_ref().map(|disk| disk.folder.clone());
        let has_file = staged
            .zip(folder.as_deref())
            .is_some_and(|(staged, folder)| staged.commit(folder, &metadata).is_ok());
        if !has_file {
            body.file_bytes = None;
        }
        // The record of a new entry comes before those of whom it drove out: cut between, everyone is there.
        let is_written = self.settle(vec![record_of(&metadata, &body)]);
        if has_file && !is_written {
            if let Some(folder) = &folder {
                disk::remove_body(folder, &metadata);
            }
            body.file_bytes = None;
        }
        let is_durable = body.file_bytes.is_some();
        let held = body.held();
        self.registry.swap(id, number, body, held);
        is_durable
    }

    pub(super) fn pin(&mut self, now: Millis, scope: &str, id: Uuid) -> Result<&Row<Body>, Miss> {
        self.now = now;
        let pinned = self.registry.pin(now, scope, id).map(|row| {
            let access_count = row.metadata.access_count;
            row.body.file_bytes.map(|_| Record::Touch { id, at: now, access_count })
        });
        match pinned {
            Ok(touch) => {
                self.settle(touch.into_iter().collect());
                self.registry.row(id).ok_or(Miss::UNKNOWN)
            }
            Err(miss) => {
                self.settle(Vec::new());
                Err(miss)
            }
        }
    }

    /// Ends the use of a body. Its index may take more than before: paging adds to it.
    pub(super) fn unpin(&mut self, id: Uuid, number: u64) {
        if let Some(row) = self.registry.row(id).filter(|row| row.number == number) {
            let (body, scope) = (row.body.clone(), row.metadata.scope.clone());
            let (before, held) = (row.held, body.held());
            if held != before {
                self.registry.swap(id, number, body, held);
                self.registry.unpin(id, number);
                self.registry.fit(self.now, &scope);
                self.settle(Vec::new());
                return;
            }
        }
        self.registry.unpin(id, number);
    }

    pub(super) fn look(&mut self, now: Millis, scope: &str, id: Uuid) -> Result<Metadata, Miss> {
        self.now = now;
        let found = self.registry.look(now, scope, id).map(|row| row.metadata.clone());
        self.settle(Vec::new());
        found
    }

    pub(super) fn remove(&mut self, now: Millis, id: Uuid, reason: Reason) {
        self.now = now;
        self.registry.remove(now, id, Some(reason));
        self.settle(Vec::new());
    }

    /// Takes an entry out whose file is not what was written, and says so.
    pub(super) fn lose(&mut self, now: Millis, scope: &str, id: Uuid, error: &io::Error) -> Miss {
        if reopen::is_damage(error) {
            self.remove(now, id, Reason::Lost);
            return self.look(now, scope, id).err().unwrap_or(Miss::UNKNOWN);
        }
        // It may be readable another time.
        let rerun = self.registry.row(id).map(|row| row.metadata.rerun());
        Miss { reason: Reason::Lost, rerun }
    }

    pub(super) fn expire(&mut self, now: Millis) {
        self.now = now;
        self.registry.tick(now);
        self.settle(Vec::new());
    }

    pub(super) fn tick(&mut self, now: Millis) {
        self.expire(now);
        let Some(disk) = self.disk.as_mut().filter(|disk| disk.is_stale()) else { return };
        // A failed rewrite leaves the file before, which only grows.
        disk.rewrite(&reopen::snapshot(&self.registry)).ok();
    }

    /// Replaces a body by one in another form, unless somebody came for it meanwhile.
    pub(super) fn rest(
        &mut self,
        idle_before: Millis,
        (id, number): (Uuid, u64),
        body: Body,
        staged: Option<Staged>,
    ) {
        let row = self.registry.row(id).filter(|row| {
            row.number == number && !row.is_pinned() && row.metadata.last_access_at <= idle_before
        });
        let folder = self.disk.as_ref().map(|disk| disk.folder.clone());
        let staged = staged.zip(folder);
        let Some(row) = row else {
            if let Some((staged, folder)) = staged {
                staged.discard(&folder);
            }
            return;
        };
        if let Some((staged, folder)) = staged
            && staged.commit(&folder, &row.metadata).is_err()
        {
            // It stays as it is, and is not tried again.
            let body = Body { is_at_rest: true, ..row.body.clone() };
            let held = row.held;
            self.registry.swap(id, number, body, held);
            return;
        }
        let held = body.held();
        self.registry.swap(id, number, body, held);
    }

    /// Writes what happened, and removes the files of who went. False when it could not be written.
    fn settle(&mut self, mut records: Vec<Record>) -> bool {
        let gone = self.registry.take_gone();
        let Some(disk) = &mut self.disk else { return false };
        for gone in &gone {
            let id = gone.row.metadata.id;
            records.extend(gone.reason.map(|reason| Record::Gone { id, reason, at: gone.at }));
        }
        let is_written = records.is_empty() || disk.append(&disk::encode(&records)).is_ok();
        for gone in gone.iter().filter(|gone| gone.row.body.file_bytes.is_some()) {
            disk::remove_body(&disk.folder, &gone.row.metadata);
        }
        if disk.is_overgrown() {
            disk.rewrite(&reopen::snapshot(&self.registry)).ok();
        }
        is_written
    }
}
