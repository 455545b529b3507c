//! The slab of rows and the two orders they are found by.

use std::collections::BTreeMap;

use crate::ids::TaskId;
use crate::scope::Scope;
use crate::task::TaskRecord;
use crate::time::Timestamp;

/// A place in the slab.
pub(super) type Place = u32;

#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    slab: Vec<Option<TaskRecord>>,
    /// The instants at which the timers look at the rows; [`Timestamp::MAX`] is none.
    armed: Vec<Timestamp>,
    free: Vec<Place>,
    by_id: BTreeMap<TaskId, Place>,
    by_owner: BTreeMap<Scope, BTreeMap<u64, Place>>,
}

impl Rows {
    /// Takes rows into an empty slab, and makes each order in one go.
    pub(super) fn of(rows: Vec<TaskRecord>) -> Self {
        let mut by_owner: BTreeMap<Scope, Vec<(u64, Place)>> = BTreeMap::new();
        for (record, place) in rows.iter().zip(0..) {
            match by_owner.get_mut(&record.task.scope) {
                Some(owned) => owned.push((record.seq, place)),
                None => {
                    by_owner.insert(record.task.scope.clone(), vec![(record.seq, place)]);
                }
            }
        }
        let by_owner = by_owner.into_iter();
        Self {
            by_id: rows.iter().zip(0..).map(|(record, place)| (record.id(), place)).collect(),
            by_owner: by_owner.map(|(scope, owned)| (scope, owned.into_iter().collect())).collect(),
            armed: vec![Timestamp::MAX; rows.len()],
            slab: rows.into_iter().map(Some).collect(),
            free: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, record: TaskRecord) -> Place {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slab.push(None);
            self.armed.push(Timestamp::MAX);
            Place::try_from(self.slab.len() - 1).unwrap_or(Place::MAX)
        });
        self.by_id.insert(record.id(), place);
        self.by_owner.entry(record.task.scope.clone()).or_default().insert(record.seq, place);
        if let Some(cell) = self.slab.get_mut(place as usize) {
            *cell = Some(record);
        }
        self.set_armed(place, None);
        place
    }

    /// Puts a row in the place of another state of it, and returns that.
    pub(super) fn replace(&mut self, place: Place, record: TaskRecord) -> Option<TaskRecord> {
        Some(std::mem::replace(self.at_mut(place)?, record))
    }

    /// The instant at which the timers look at a row.
    pub(super) fn armed(&self, place: Place) -> Option<Timestamp> {
        self.armed.get(place as usize).copied().filter(|at| *at != Timestamp::MAX)
    }

    pub(super) fn set_armed(&mut self, place: Place, at: Option<Timestamp>) {
        if let Some(armed) = self.armed.get_mut(place as usize) {
            *armed = at.unwrap_or(Timestamp::MAX);
        }
    }

    pub(super) fn remove(&mut self, id: TaskId) -> Option<TaskRecord> {
        let place = self.by_id.remove(&id)?;
        let record = self.slab.get_mut(place as usize)?.take()?;
        self.set_armed(place, None);
        self.free.push(place);
        if let Some(owned) = self.by_owner.get_mut(&record.task.scope) {
            owned.remove(&record.seq);
            if owned.is_empty() {
                self.by_owner.remove(&record.task.scope);
            }
        }
        Some(record)
    }

    pub(super) fn place(&self, id: TaskId) -> Option<Place> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn at(&self, place: Place) -> Option<&TaskRecord> {
        self.slab.get(place as usize)?.as_ref()
    }

    pub(super) fn at_mut(&mut self, place: Place) -> Option<&mut TaskRecord> {
        self.slab.get_mut(place as usize)?.as_mut()
    }

    pub(super) fn find(&self, id: TaskId) -> Option<&TaskRecord> {
        self.at(self.place(id)?)
    }

    /// The rows of one owner below a `seq`, newest first.
    pub(super) fn owned(&self, scope: &Scope, before: u64) -> impl Iterator<Item = &TaskRecord> {
        self.by_owner
            .get(scope)
            .into_iter()
            .flat_map(move |owned| owned.range(..before).rev())
            .filter_map(|(_, place)| self.at(*place))
    }

    /// The rows as they lie in memory, which is the fastest way to see them all.
    pub(super) fn unordered(&self) -> impl Iterator<Item = (Place, &TaskRecord)> {
        (0..).zip(&self.slab).filter_map(|(place, record)| Some((place, record.as_ref()?)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Place, &TaskRecord)> {
        self.by_id.values().filter_map(|place| self.at(*place).map(|record| (*place, record)))
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }
}
