//! Where a call stands among the calls of other programs: trace context as the W3C has it.

use std::sync::Arc;

/// The longest `tracestate` that is passed on, in bytes.
const MAX_STATE: usize = 512;

/// The longest `baggage` that is passed on, in bytes.
const MAX_BAGGAGE: usize = 8192;

/// The trace that a call belongs to. It changes nothing about the work and is passed on to what does it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    parent: Arc<str>,
    state: Option<Arc<str>>,
    baggage: Option<Arc<str>>,
}

impl TraceContext {
    /// Takes what a caller wrote. `None` without a `traceparent` that is one, as the standard asks for; a
    /// `tracestate` or `baggage` that is too long, or holds what a header may not, is left out.
    #[must_use]
    pub fn new(parent: &str, state: Option<&str>, baggage: Option<&str>) -> Option<Self> {
        if !is_parent(parent) {
            return None;
        }
        let kept = |text: Option<&str>, most| {
            let is_kept = |text: &&str| !text.is_empty() && text.len() <= most && is_header(text);
            text.filter(is_kept).map(Arc::from)
        };
        let (state, baggage) = (kept(state, MAX_STATE), kept(baggage, MAX_BAGGAGE));
        Some(Self { parent: parent.into(), state, baggage })
    }

    /// Returns the `traceparent`.
    #[must_use]
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// Returns the `tracestate`.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Returns the `baggage`.
    #[must_use]
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// Lists what there is by the names of the standard: `traceparent`, `tracestate`, `baggage`.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = [
            ("traceparent", Some(self.parent())),
            ("tracestate", self.state()),
            ("baggage", self.baggage()),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

/// Tells whether a text is a `traceparent`: version, trace, parent and flags in lower-case hexadecimal, with
/// more behind it only in a version that this one does not know.
fn is_parent(text: &str) -> bool {
    let is_hex = |part: &str, n: usize| {
        part.len() == n && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let is_some = |part: &str| part.bytes().any(|byte| byte != b'0');
    let mut parts = text.splitn(5, '-');
    let mut next = || parts.next().unwrap_or_default();
    let (version, trace, parent, flags) = (next(), next(), next(), next());
    let has_more = parts.next().is_some();
    is_hex(version, 2)
        && version != "ff"
        && is_hex(trace, 32)
        && is_some(trace)
        && is_hex(parent, 16)
        && is_some(parent)
        && is_hex(flags, 2)
        && (version != "00" || !has_more)
        && text.len() <= MAX_STATE
        && is_header(text)
}

fn is_header(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn only_a_traceparent_that_is_one_is_passed_on() {
        // [TRACE-1]
        let is_taken = |text: &str| TraceContext::new(text, None, None).is_some();
        assert!(is_taken(PARENT));
        assert!(is_taken(&format!("cc{}-what-comes", &PARENT[2..])), "of a later version");
        for odd in [
            "",
            "00",
            &PARENT[..54],
            &PARENT.to_uppercase(),
            &format!("{PARENT}-x"),
            &format!("ff{}", &PARENT[2..]),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            &format!("cc{}-\n", &PARENT[2..]),
        ] {
            assert!(!is_taken(odd), "{odd:?}");
        }
    }

    #[test]
    fn what_no_header_may_hold_is_left_out() {
        // [TRACE-1]
        let trace = TraceContext::new(PARENT, Some("a=1"), Some("b\n=2")).expect("a trace");
        let fields: Vec<_> = trace.fields().collect();
        assert_eq!(fields, [("traceparent", PARENT), ("tracestate", "a=1")]);
        let long = "x".repeat(513);
        assert_eq!(
            TraceContext::new(PARENT, Some(&long), Some("")).expect("a trace").fields().count(),
            1
        );
    }
}
