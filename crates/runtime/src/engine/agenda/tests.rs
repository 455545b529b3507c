use super::*;

const START: Timestamp = Timestamp::from_millis(1_000_000);
const HOUR: Duration = Duration::from_secs(3600);
const NOTHING: Found =
    Found { fire_at: Timestamp::MAX, beat_at: Timestamp::MAX, lanes: BTreeSet::new() };

/// An agenda whose first look is over.
fn agenda() -> Agenda {
    let mut agenda = Agenda::new(START, HOUR);
    assert_eq!(agenda.step(START, Duration::ZERO, NOTHING), [Job::Fire, Job::Sweep]);
    agenda.done(START, Done::Fired(None));
    agenda.done(START, Done::Swept);
    agenda
}

fn lanes(names: &[&str]) -> BTreeSet<LaneId> {
    names.iter().map(|name| LaneId::from(*name)).collect()
}

#[test]
fn after_a_stall_limits_are_moved_then_leases_renewed_and_only_then_anything_fired() {
    // [LEASE-8]
    let mut agenda = agenda();
    let now = START + HOUR;
    let due = Found { fire_at: START, beat_at: START, ..NOTHING };
    // A beat does no harm meanwhile; a deadline that fires does.
    let jobs = agenda.step(now, HOUR, due);
    assert_eq!(jobs, [Job::Extend(HOUR), Job::Beat { all: false }, Job::Sweep]);
    agenda.done(now, Done::Beaten);
    assert_eq!(agenda.step(now, HOUR, NOTHING), []);
    agenda.done(now, Done::Extended(HOUR));
    assert_eq!(agenda.step(now, HOUR, NOTHING), [Job::Beat { all: true }]);
    assert_eq!(agenda.step(now, HOUR, NOTHING), []);
    agenda.done(now, Done::Beaten);
    assert_eq!(agenda.step(now, HOUR, NOTHING), [Job::Fire]);
}

#[test]
fn while_leases_cannot_be_renewed_nothing_is_judged() {
    // [LEASE-8] [DUR-5]
    let mut agenda = agenda();
    let (mut now, due) = (START + HOUR, || Found { fire_at: START, ..NOTHING });
    for kind in [Kind::Extend, Kind::Extend] {
        assert_eq!(agenda.step(now, HOUR, due())[0], Job::Extend(HOUR));
        agenda.done(now, Done::Failed(kind));
        assert_eq!(agenda.step(now, HOUR, NOTHING), [], "not before a pause");
        now = now + PAUSE;
    }
    agenda.step(now, HOUR, NOTHING);
    agenda.done(now, Done::Extended(HOUR));
    for _ in 0..2 {
        assert_eq!(agenda.step(now, HOUR, NOTHING), [Job::Beat { all: true }]);
        assert!(agenda.next() > now, "the loop does not spin meanwhile");
        agenda.done(now, Done::Failed(Kind::Beat));
        assert!(agenda.next() > now, "nor does it before the next try");
        now = now + (PAUSE - TOGETHER);
        assert!(agenda.next() <= now + TOGETHER, "it is tried again");
    }
    assert_eq!(agenda.step(now, HOUR, NOTHING), [Job::Beat { all: true }]);
    agenda.done(now, Done::Beaten);
    assert_eq!(agenda.step(now, HOUR, NOTHING), [Job::Fire]);
}

#[test]
fn a_stall_during_a_stall_is_moved_as_well() {
    let mut agenda = agenda();
    let now = START + HOUR;
    agenda.step(now, HOUR, NOTHING);
    assert_eq!(agenda.step(now, 3 * HOUR, NOTHING), [], "one move at a time");
    agenda.done(now, Done::Extended(HOUR));
    assert!(agenda.step(now, 3 * HOUR, NOTHING).contains(&Job::Extend(2 * HOUR)));
}

#[test]
fn leases_that_are_due_are_renewed_before_deadlines_fire() {
    // [LEASE-2] [LEASE-8]
    let mut agenda = agenda();
    let now = START + PAUSE;
    let due = Found { fire_at: now, beat_at: now + TOGETHER, ..NOTHING };
    assert_eq!(agenda.step(now, Duration::ZERO, due), [Job::Beat { all: false }]);
    agenda.done(now, Done::Beaten);
    assert_eq!(agenda.step(now, Duration::ZERO, NOTHING), [Job::Fire]);
}

#[test]
fn one_job_of_a_kind_is_under_way_and_the_others_wait_for_none() {
    let mut agenda = agenda();
    let now = START + HOUR;
    let more = |names| Found { fire_at: now, lanes: lanes(names), ..NOTHING };
    let jobs = agenda.step(now, Duration::ZERO, more(&["a"]));
    assert_eq!(jobs, [Job::Fire, Job::Fill(lanes(&["a"])), Job::Sweep]);
    assert_eq!(agenda.step(now, Duration::ZERO, more(&["a", "b"])), []);
    agenda.done(now, Done::Filled(BTreeSet::new()));
    assert_eq!(agenda.step(now, Duration::ZERO, NOTHING), [Job::Fill(lanes(&["a", "b"]))]);
    assert_eq!(agenda.next(), Timestamp::MAX, "the ends of jobs wake the loop");
    agenda.done(now, Done::Fired(Some(now + PAUSE)));
    assert_eq!(agenda.next(), now, "what was found meanwhile is fired too");
}

#[test]
fn lanes_that_could_not_be_filled_are_looked_at_again_after_a_pause() {
    let mut agenda = agenda();
    let found = Found { lanes: lanes(&["a", "b"]), ..NOTHING };
    agenda.step(START, Duration::ZERO, found);
    agenda.done(START, Done::Filled(lanes(&["b"])));
    assert_eq!(agenda.step(START, Duration::ZERO, NOTHING), []);
    assert_eq!(agenda.next(), START + PAUSE);
    let again = agenda.step(START + PAUSE, Duration::ZERO, NOTHING);
    assert_eq!(again, [Job::Fill(lanes(&["b"]))]);
}
