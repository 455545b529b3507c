//! What the engine does next, as a value: no clock, no store, no lock.
//!
//! [`Agenda::step`] is given the instant and what the [inbox](crate::kernel::Inbox) holds, and answers
//! with jobs; [`Agenda::done`] hears how each ended. The order of what is done after a time in which the
//! engine could not run is decided here and nowhere else [LEASE-8].

use std::collections::BTreeSet;
use std::time::Duration;

use raincheck_core::ids::LaneId;
use raincheck_core::time::Timestamp;

use crate::kernel::{Found, PAUSE};

/// Heartbeats that are due within this span go in one transaction.
pub(crate) const TOGETHER: Duration = Duration::from_millis(500);

/// One thing to do. At most one of each kind is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Move the limits of attempts by time in which the engine could not run.
    Extend(Duration),
    /// Renew the leases of attempts that run here.
    Beat {
        /// Of all, whenever they are due.
        all: bool,
    },
    /// Fire deadlines that passed.
    Fire,
    /// Lease work for the free slots of lanes.
    Fill(BTreeSet<LaneId>),
    /// Remove what nobody can read any more.
    Sweep,
}

/// A kind of job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Extend,
    Beat,
    Fire,
    Fill,
    Sweep,
}

impl Job {
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Extend(_) => Kind::Extend,
            Self::Beat { .. } => Kind::Beat,
            Self::Fire => Kind::Fire,
            Self::Fill(_) => Kind::Fill,
            Self::Sweep => Kind::Sweep,
        }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// The limits were moved by this much.
    Extended(Duration),
    /// The leases were renewed.
    Beaten,
    /// What had passed was fired; the next deadline, if one is armed.
    Fired(Option<Timestamp>),
    /// The lanes have no more work or no more slots, but for these, which have to be looked at again.
    Filled(BTreeSet<LaneId>),
    /// Nothing more can be removed now.
    Swept,
    /// It failed, and is tried again after a pause.
    Failed(Kind),
}

/// What is to be done, and what is under way.
#[derive(Debug)]
pub(crate) struct Agenda {
    under_way: Vec<Kind>,
    /// How much of the time in which the engine could not run is moved already.
    extended: Duration,
    /// How much of it is still to be moved.
    missed: Duration,
    /// Set from a stall, or a failure to renew, until all leases are renewed: deadlines are not fired.
    owes_beat: bool,
    fire_at: Timestamp,
    beat_at: Timestamp,
    lanes: BTreeSet<LaneId>,
    fill_at: Timestamp,
    extend_at: Timestamp,
    sweep_at: Timestamp,
    sweep_every: Duration,
}

impl Agenda {
    /// Begins with one look at everything.
    pub(crate) fn new(now: Timestamp, sweep_every: Duration) -> Self {
        Self {
            under_way: Vec::new(),
            extended: Duration::ZERO,
            missed: Duration::ZERO,
            owes_beat: false,
            fire_at: now,
            beat_at: Timestamp::MAX,
            lanes: BTreeSet::new(),
            fill_at: now,
            extend_at: now,
            sweep_at: now,
            sweep_every,
        }
    }

    /// Decides what begins now. `stalled` is the time in which the engine could not run so far.
    pub(crate) fn step(&mut self, now: Timestamp, stalled: Duration, found: Found) -> Vec<Job> {
        self.fire_at = self.fire_at.min(found.fire_at);
        self.beat_at = self.beat_at.min(found.beat_at);
        if !found.lanes.is_empty() {
            self.lanes.extend(found.lanes);
            self.fill_at = self.fill_at.min(now);
        }
        let mut jobs = Vec::new();
        self.missed = stalled.saturating_sub(self.extended);
        if !self.missed.is_zero() && self.extend_at <= now {
            let job = Job::Extend(self.missed);
            self.begin(&mut jobs, job);
        }
        if self.beat_at <= now + TOGETHER && self.may_begin(Kind::Beat) {
            let job = Job::Beat { all: self.owes_beat };
            self.beat_at = Timestamp::MAX;
            self.begin(&mut jobs, job);
        }
        if self.fire_at <= now && self.may_judge() && self.may_begin(Kind::Fire) {
            self.fire_at = Timestamp::MAX;
            self.begin(&mut jobs, Job::Fire);
        }
        if self.fill_at <= now && !self.lanes.is_empty() && self.may_begin(Kind::Fill) {
            let lanes = std::mem::take(&mut self.lanes);
            self.begin(&mut jobs, Job::Fill(lanes));
        }
        if self.sweep_at <= now {
            self.begin(&mut jobs, Job::Sweep);
        }
        jobs
    }

    /// Hears how a job ended.
    pub(crate) fn done(&mut self, now: Timestamp, done: Done) {
        let kind = match &done {
            Done::Extended(_) => Kind::Extend,
            Done::Beaten => Kind::Beat,
            Done::Fired(_) => Kind::Fire,
            Done::Filled(_) => Kind::Fill,
            Done::Swept => Kind::Sweep,
            Done::Failed(kind) => *kind,
        };
        self.under_way.retain(|under_way| *under_way != kind);
        match done {
            Done::Extended(by) => {
                self.extended += by;
                self.missed = self.missed.saturating_sub(by);
                (self.owes_beat, self.beat_at) = (true, now);
            }
            Done::Beaten => self.owes_beat = false,
            Done::Fired(next) => self.fire_at = self.fire_at.min(next.unwrap_or(Timestamp::MAX)),
            Done::Filled(again) => {
                if !again.is_empty() {
                    self.lanes.extend(again);
                    self.fill_at = now + PAUSE;
                }
            }
            Done::Swept => self.sweep_at = now + self.sweep_every,
            Done::Failed(kind) => self.again(kind, now + PAUSE),
        }
    }

    fn again(&mut self, kind: Kind, at: Timestamp) {
        match kind {
            Kind::Extend => self.extend_at = at,
            Kind::Beat => (self.owes_beat, self.beat_at) = (true, at),
            Kind::Fire => self.fire_at = self.fire_at.min(at),
            Kind::Fill => self.fill_at = at,
            Kind::Sweep => self.sweep_at = at,
        }
    }

    /// Returns when there is something to do next, should nothing else happen.
    pub(crate) fn next(&self) -> Timestamp {
        let lanes = if self.lanes.is_empty() { Timestamp::MAX } else { self.fill_at };
        // What has to wait for another job is begun when that has ended.
        let fire_at = if self.may_judge() { self.fire_at } else { Timestamp::MAX };
        let extend_at = if self.missed.is_zero() { Timestamp::MAX } else { self.extend_at };
        let all = [
            (Kind::Extend, extend_at),
            (Kind::Beat, self.beat_at),
            (Kind::Fire, fire_at),
            (Kind::Fill, lanes),
            (Kind::Sweep, self.sweep_at),
        ];
        // What is under way wakes the loop by its end.
        let free = all.into_iter().filter(|(kind, _)| self.may_begin(*kind));
        free.map(|(_, at)| at).min().unwrap_or(Timestamp::MAX)
    }

    /// Tells whether deadlines may fire: what is not renewed yet is not judged, nor is what could not be
    /// heard meanwhile.
    fn may_judge(&self) -> bool {
        self.missed.is_zero() && !self.owes_beat && self.may_begin(Kind::Beat)
    }

    fn may_begin(&self, kind: Kind) -> bool {
        !self.under_way.contains(&kind)
    }

    fn begin(&mut self, jobs: &mut Vec<Job>, job: Job) {
        if self.may_begin(job.kind()) {
            self.under_way.push(job.kind());
            jobs.push(job);
        }
    }
}

#[cfg(test)]
mod tests;
