//! What a process is to the store that it shares, and where the lines of its client go, as two tables.

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Nobody has asked for anything that needs the store.
    Undecided,
    /// It is being found out.
    Deciding,
    /// Another process owns the store and answers.
    Attached,
    /// Another process owns the store and does not answer: this one says so.
    Apart,
    /// This process owns the store.
    Owner,
}

/// What happens to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The client asks for something that needs the store.
    Wanted,
    /// The store is this process's.
    Owned,
    /// The owner takes this process in.
    Joined,
    /// The owner does not take this process in, or cannot be reached.
    Refused,
    /// The owner is gone.
    Lost,
}

/// Every change there is.
pub(super) const TABLE: &[(Role, Event, Role)] = &[
    (Role::Undecided, Event::Wanted, Role::Deciding),
    (Role::Apart, Event::Wanted, Role::Deciding),
    (Role::Deciding, Event::Owned, Role::Owner),
    (Role::Deciding, Event::Joined, Role::Attached),
    (Role::Deciding, Event::Refused, Role::Apart),
    (Role::Attached, Event::Lost, Role::Deciding),
];

/// Returns the role after an event; `None` where the event changes nothing.
pub(super) fn next(role: Role, event: Event) -> Option<Role> {
    TABLE.iter().find(|(from, on, _)| (*from, *on) == (role, event)).map(|(.., to)| *to)
}

/// What a line of the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What every process answers by itself: discovery, ping, the list of tools, and what is no message
    /// at all.
    Own,
    /// The handshake, which every process answers and the owner hears of.
    Introduction,
    /// That the client is ready to work.
    Initialized,
    /// Any other request.
    Request,
    /// That an answer is not wanted any more.
    Cancel,
    /// The answer to a question of the server.
    Reply,
    /// Any other notification.
    Note,
}

/// Where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To the session of this process.
    Here,
    /// To the owner.
    There,
    /// To both.
    Both,
    /// Nowhere yet: it is kept until the role is known.
    Wait,
    /// Nowhere: whom it was for is gone.
    Nowhere,
}

/// The ways of one kind of line: undecided, deciding, attached, apart, owner.
pub(super) const WAYS: &[(Kind, [Way; 5])] = {
    use Way::{Both, Here, Nowhere, There, Wait};
    &[
        (Kind::Own, [Here, Here, Here, Here, Here]),
        (Kind::Introduction, [Here, Here, Both, Here, Here]),
        (Kind::Initialized, [Here, Here, Both, Here, Here]),
        (Kind::Request, [Wait, Wait, There, Here, Here]),
        (Kind::Cancel, [Nowhere, Nowhere, There, Here, Here]),
        (Kind::Reply, [Nowhere, Nowhere, There, Here, Here]),
        (Kind::Note, [Nowhere, Nowhere, There, Here, Here]),
    ]
};

/// Returns where a line goes.
pub(super) fn way(role: Role, kind: Kind) -> Way {
    let place = match role {
        Role::Undecided => 0,
        Role::Deciding => 1,
        Role::Attached => 2,
        Role::Apart => 3,
        Role::Owner => 4,
    };
    let ways = WAYS.iter().find(|(one, _)| *one == kind).map(|(_, ways)| ways);
    ways.and_then(|ways| ways.get(place)).copied().unwrap_or(Way::Here)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: [Role; 5] =
        [Role::Undecided, Role::Deciding, Role::Attached, Role::Apart, Role::Owner];
    const EVENTS: [Event; 5] =
        [Event::Wanted, Event::Owned, Event::Joined, Event::Refused, Event::Lost];

    #[test]
    fn the_owner_stays_the_owner_and_every_other_role_leads_there() {
        // [ATTACH-1] [ATTACH-5]
        assert!(EVENTS.iter().all(|event| next(Role::Owner, *event).is_none()));
        let leads = |role: Role| {
            let mut reached = vec![role];
            let mut at = 0;
            while let Some(&from) = reached.get(at) {
                for to in EVENTS.iter().filter_map(|event| next(from, *event)) {
                    if !reached.contains(&to) {
                        reached.push(to);
                    }
                }
                at += 1;
            }
            reached.contains(&Role::Owner)
        };
        assert!(ROLES.iter().all(|role| leads(*role)));
    }

    #[test]
    fn no_change_stands_twice_and_every_kind_of_line_has_its_ways() {
        for (at, (from, on, _)) in TABLE.iter().enumerate() {
            let rest = &TABLE[at + 1..];
            assert!(!rest.iter().any(|(other, event, _)| (other, event) == (from, on)));
        }
        let kinds = [
            Kind::Own,
            Kind::Introduction,
            Kind::Initialized,
            Kind::Request,
            Kind::Cancel,
            Kind::Reply,
            Kind::Note,
        ];
        for kind in kinds {
            assert_eq!(WAYS.iter().filter(|(one, _)| *one == kind).count(), 1, "{kind:?}");
        }
    }

    #[test]
    fn only_what_every_process_knows_is_answered_without_the_owner() {
        // [ATTACH-1]
        for role in ROLES {
            assert_eq!(way(role, Kind::Own), Way::Here);
        }
        for role in [Role::Undecided, Role::Deciding] {
            assert_eq!(way(role, Kind::Request), Way::Wait);
        }
        assert_eq!(way(Role::Attached, Kind::Request), Way::There);
    }
}
