//! How long a caller can be made to wait [CALL-2].

use std::time::Duration;

use tokio::time::Instant;

/// The longest wait of the canonical surface.
pub(crate) const SURFACE_CAP: Duration = Duration::from_secs(60);

/// What is kept back of a client's timeout for the way there and back, at the most.
const MARGIN: Duration = Duration::from_secs(5);

/// The timeout of a client that nobody knows, in seconds.
const UNKNOWN: u64 = 25;

/// After how many seconds clients give a call up, by a part of the name they introduce themselves
/// with, in lower case; the first match counts. Taken from what the clients document and from
/// their users' reports in November 2026.
const TABLE: &[(&str, u64)] = &[
    ("claude-code", 120),
    ("claude-ai", 60),
    ("claude", 60),
    ("codex", 60),
    ("cursor", 60),
    ("visual studio code", 300),
    ("vscode", 300),
    ("gemini", 60),
    ("antigravity", 180),
    ("opencode", 60),
    ("jetbrains", 30),
    ("intellij", 30),
];

/// How long clients wait for an answer: the built-in table, and what a configuration puts before it.
#[derive(Clone, Debug, Default)]
pub struct ClientTimeouts {
    own: Vec<(String, Duration)>,
}

impl ClientTimeouts {
    /// Sets the timeout of clients whose name contains `name`, before every other rule.
    #[must_use]
    pub fn with(mut self, name: &str, timeout: Duration) -> Self {
        self.own.insert(0, (name.to_lowercase(), timeout));
        self
    }

    /// Returns how long one call of a client may be held: its timeout less a margin, within the cap
    /// of the surface.
    #[must_use]
    pub fn budget(&self, client: Option<&str>) -> Duration {
        let timeout = self.timeout(&client.unwrap_or_default().to_lowercase());
        timeout.saturating_sub(MARGIN.min(timeout / 5)).min(SURFACE_CAP)
    }

    fn timeout(&self, client: &str) -> Duration {
        let own = self.own.iter().find(|(name, _)| client.contains(name.as_str()));
        let known = || TABLE.iter().find(|(name, _)| client.contains(name));
        match own {
            Some((_, timeout)) => *timeout,
            None => Duration::from_secs(known().map_or(UNKNOWN, |(_, seconds)| *seconds)),
        }
    }
}

/// The wait of one call: it began when the request arrived, not when somebody got round to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    arrival: Instant,
    most: Duration,
}

impl Budget {
    /// Begins at `arrival` and lasts at most `most`.
    pub(crate) const fn new(arrival: Instant, most: Duration) -> Self {
        Self { arrival, most }
    }

    /// Returns as much of a wish as can be granted.
    pub(crate) fn within(&self, wish: Duration) -> Duration {
        wish.min(self.most)
    }

    /// Returns what is left of a wish at `now`.
    pub(crate) fn left(&self, wish: Duration, now: Instant) -> Duration {
        self.within(wish).saturating_sub(now.saturating_duration_since(self.arrival))
    }

    /// Returns the longest wait to suggest for a next call, in whole seconds.
    pub(crate) fn next_wait_s(&self) -> u64 {
        self.most.as_secs().clamp(1, 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_wish_cap_and_ceiling_counts_from_arrival() {
        let client_timeouts = ClientTimeouts::default();
        let cases = [
            (Some("claude-code"), 60),
            (Some("Visual Studio Code"), 60),
            (Some("cursor-vscode"), 55),
            (Some("JetBrains-IU/copilot-intellij"), 25),
            (Some("nobody"), 20),
            (None, 20),
        ];
        for (client, seconds) in cases {
            assert_eq!(client_timeouts.budget(client), Duration::from_secs(seconds), "{client:?}");
        }
        let arrival = Instant::now();
        let budget = Budget::new(arrival, Duration::from_secs(20));
        let later = arrival + Duration::from_secs(4);
        assert_eq!(budget.left(Duration::from_secs(10), later), Duration::from_secs(6));
        assert_eq!(budget.left(Duration::from_secs(90), later), Duration::from_secs(16));
        assert_eq!(budget.left(Duration::from_secs(1), later), Duration::ZERO);
    }

    #[test]
    fn a_configured_ceiling_wins_over_the_table() {
        let client_timeouts = ClientTimeouts::default().with("Cursor", Duration::from_secs(10));
        assert_eq!(client_timeouts.budget(Some("cursor-vscode")), Duration::from_secs(8));
    }
}
