//! How large an answer each client takes [CACHE-3].

/// The limit of a client that nobody knows, in characters.
pub const THRESHOLD_CHARS: usize = 48_000;

/// Above this many characters the largest client keeps an answer in a file unless its tool is listed with
/// a size of its own.
pub(super) const KEPT_BY_CLIENT: usize = 50_000;

/// The most that such a size can allow.
pub(super) const MOST_BY_CLIENT: usize = 500_000;

/// What clients take, by a part of the name they introduce themselves with, in lower case; the first
/// match counts.
const TABLE: &[(&str, usize)] = &[
    // Cuts what is longer than 10 KB out of the middle: github.com/openai/codex/issues/5913.
    ("codex", 10_000),
    // A file with a preview of 2 KB above 50,000 characters: anthropics/claude-code#45766; a tool that is
    // listed with `anthropic/maxResultSizeChars` may answer more.
    ("claude", MOST_BY_CLIENT),
];

/// How large an answer may be: the limit for all, the built-in table, and what a configuration puts
/// before both.
#[derive(Clone, Debug)]
pub struct ClientLimits {
    threshold: usize,
    own: Vec<(String, usize)>,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self { threshold: THRESHOLD_CHARS, own: Vec::new() }
    }
}

impl ClientLimits {
    /// Sets the limit for all clients that take no less.
    #[must_use]
    pub const fn of_all(mut self, chars: usize) -> Self {
        self.threshold = chars;
        self
    }

    /// Sets the limit of clients whose name contains `name`, before every other rule.
    #[must_use]
    pub fn with(mut self, name: &str, chars: usize) -> Self {
        self.own.insert(0, (name.to_lowercase(), chars));
        self
    }

    /// Returns the largest limit that a client can have, but for those set by name.
    pub(super) const fn threshold(&self) -> usize {
        self.threshold
    }

    /// Returns the longest answer for a client, in characters.
    #[must_use]
    pub fn chars(&self, client: Option<&str>) -> usize {
        let client = client.unwrap_or_default().to_lowercase();
        if let Some((_, own)) = self.own.iter().find(|(name, _)| client.contains(name.as_str())) {
            return *own;
        }
        let known = TABLE.iter().find(|(name, _)| client.contains(name));
        known.map_or(self.threshold, |(_, chars)| self.threshold.min(*chars))
    }

    /// Returns the largest page that a client may ask for, in bytes: what a tool is listed with counts
    /// for the clients that read it.
    pub(super) fn page_bytes(&self, client: Option<&str>) -> usize {
        let reads_meta = client.is_some_and(|name| name.to_lowercase().contains("claude"));
        if reads_meta { MOST_BY_CLIENT } else { self.chars(client) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_what_a_client_takes_and_the_threshold_counts() {
        // [CACHE-3]
        let limits = ClientLimits::default();
        for (client, chars) in [
            (None, 48_000),
            (Some("claude-code"), 48_000),
            (Some("Codex-mcp-client"), 10_000),
            (Some("somebody"), 48_000),
        ] {
            assert_eq!(limits.chars(client), chars, "{client:?}");
        }
        let raised = limits.clone().of_all(200_000).with("Codex", 30_000);
        assert_eq!(raised.chars(Some("claude-code")), 200_000);
        assert_eq!(raised.chars(Some("codex")), 30_000);
        assert_eq!(limits.clone().of_all(900_000).chars(Some("claude-code")), MOST_BY_CLIENT);
        assert_eq!(limits.clone().of_all(5000).chars(Some("codex")), 5000);
        assert_eq!(limits.page_bytes(Some("claude-ai")), MOST_BY_CLIENT);
        assert_eq!(limits.page_bytes(None), 48_000);
    }
}
