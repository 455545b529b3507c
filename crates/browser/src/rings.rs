//! What browsers told of their pages: bounded rings of events, read by `observe`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use raincheck_core::content::Json;
use raincheck_core::text;
use raincheck_core::time::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::wire::mended;

/// The most bytes that the events of a kind take, as JSON.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// The most bytes of one event, as JSON.
const MAX_EVENT: usize = 64 * 1024;

/// The longest text that is kept of one field of an event, in bytes.
const MAX_TEXT: usize = 8 * 1024;

/// The deepest nesting of an event that is kept.
const MAX_DEPTH: usize = 16;

/// The most events that one event may tell to be lost.
const MOST_LOST: u64 = 1 << 32;

/// How many events one answer shows unless it says so.
pub(crate) const PAGE: usize = 100;

/// The kinds of events: the ring each goes into, and a field that it must have.
const KINDS: &[(&str, Shelf, Option<&str>)] = &[
    ("console", Shelf::Console, Some("text")),
    ("network", Shelf::Network, Some("url")),
    ("dialog", Shelf::Dialogs, None),
    ("tab", Shelf::Events, None),
    ("navigation", Shelf::Events, None),
    ("user", Shelf::Events, None),
];

/// The levels of a console, the least first. What is no level is told as one like `info`.
pub(crate) const LEVELS: &[&str] = &["debug", "info", "warning", "error"];

/// The most tabs whose last navigation is remembered.
const MAX_TABS: usize = 4096;

/// The rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shelf {
    Console,
    Network,
    Dialogs,
    Events,
}

impl Shelf {
    const ALL: [Self; 4] = [Self::Console, Self::Network, Self::Dialogs, Self::Events];

    /// Finds the ring that a view shows.
    pub(crate) fn of_view(view: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shelf| shelf.as_str() == view)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Network => "network",
            Self::Dialogs => "dialogs",
            Self::Events => "events",
        }
    }
}

/// One event.
#[derive(Debug)]
struct Event {
    seq: u64,
    browser: Arc<str>,
    tab_id: Option<i64>,
    at: Timestamp,
    level: usize,
    shown: Json,
}

/// A tab of a browser.
type Place = (Arc<str>, i64);

/// The events of one kind, the newest last.
#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Event>,
    bytes: usize,
    n_seen: u64,
}

/// The rings of all kinds.
#[derive(Debug)]
pub(crate) struct Rings {
    rings: [Ring; Shelf::ALL.len()],
    most: usize,
    n_dropped: u64,
    /// When each tab came to the page that it shows.
    arrived: BTreeMap<Place, Timestamp>,
}

/// Which events are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) filter: Option<&'a str>,
    pub(crate) tab_id: Option<i64>,
    pub(crate) browser: Option<&'a str>,
    pub(crate) before: Option<u64>,
    /// The least level.
    pub(crate) level: Option<&'a str>,
    /// Whether only what the page said that a tab shows now is wanted.
    pub(crate) is_of_page: bool,
    pub(crate) limit: usize,
}

/// Part of a ring, the newest first.
#[derive(Debug, Serialize)]
pub(crate) struct Page {
    pub(crate) events: Vec<Json>,
    pub(crate) next: Option<u64>,
    /// How many events there were that are not kept any more.
    pub(crate) n_gone: u64,
}

impl Rings {
    pub(crate) fn new(most: usize) -> Self {
        Self { rings: Default::default(), most, n_dropped: 0, arrived: BTreeMap::new() }
    }

    /// Takes events; returns how many were kept and how many were not understood.
    pub(crate) fn take(
        &mut self,
        now: Timestamp,
        browser: &Arc<str>,
        items: &[Box<RawValue>],
    ) -> (usize, usize) {
        let kept = items.iter().filter(|item| self.keep(now, browser, item).is_some()).count();
        let dropped = items.len() - kept;
        self.n_dropped += dropped as u64;
        (kept, dropped)
    }

    fn keep(&mut self, now: Timestamp, browser: &Arc<str>, item: &RawValue) -> Option<()> {
        let text = item.get();
        if text.len() > 4 * 1024 * 1024 {
            return None;
        }
        let Ok(Value::Object(mut event)) = serde_json::from_str(&mended(text)) else { return None };
        let kind = event.remove("kind")?;
        let (_, shelf, field) = KINDS.iter().find(|(known, ..)| Some(*known) == kind.as_str())?;
        if let Some(lost) = event.get("dropped").and_then(Value::as_u64) {
            // The extension could not keep up, and says so.
            self.rings.get_mut(*shelf as usize)?.n_seen += lost.min(MOST_LOST);
            return Some(());
        }
        if let Some(field) = field {
            event.get(*field)?.as_str()?;
        }
        let at = event.remove("at").and_then(|at| at.as_i64()).map(Timestamp::from_millis);
        let tab_id = event.remove("tab_id").and_then(|tab| tab.as_i64());
        let when = at.unwrap_or(now);
        let level = level_of(event.get("level").and_then(Value::as_str));
        if kind == "navigation" && event.get("error").is_none() {
            self.arrive(browser, tab_id, when);
        }
        let ring = self.rings.get_mut(*shelf as usize)?;
        ring.n_seen += 1;
        let seq = ring.n_seen;
        let mut shown = Map::new();
        shown.insert("seq".to_owned(), json!(seq));
        shown.insert("at".to_owned(), json!(when));
        if matches!(shelf, Shelf::Events) {
            shown.insert("kind".to_owned(), kind);
        }
        if let Some(tab) = tab_id {
            shown.insert("tab_id".to_owned(), json!(tab));
        }
        let described = |(name, value): (String, Value)| {
            // What was bytes once is no text when most of it could not be decoded.
            let bytes = value.as_str().filter(|words| name == "body" && is_undecoded(words));
            let bytes =
                bytes.map(|words| json!({ "binary": true, "characters": words.chars().count() }));
            let value = bytes.unwrap_or_else(|| described(value, 0));
            (name, value)
        };
        shown.extend(event.into_iter().map(described));
        let shown = Json::of(&shown).ok().filter(|shown| shown.get().len() <= MAX_EVENT)?;
        ring.bytes += shown.get().len();
        ring.events.push_back(Event {
            seq,
            browser: Arc::clone(browser),
            tab_id,
            at: when,
            level,
            shown,
        });
        while ring.events.len() > self.most || ring.bytes > MAX_BYTES {
            let Some(oldest) = ring.events.pop_front() else { break };
            ring.bytes -= oldest.shown.get().len();
        }
        Some(())
    }

    /// Notes that a tab came to another page. Of more tabs than there may be the lowest numbers, which are the
    /// oldest, are forgotten.
    fn arrive(&mut self, browser: &Arc<str>, tab_id: Option<i64>, at: Timestamp) {
        let Some(tab) = tab_id else { return };
        self.arrived.insert((Arc::clone(browser), tab), at);
        while self.arrived.len() > MAX_TABS {
            self.arrived.pop_first();
        }
    }

    fn is_of_page(&self, event: &Event) -> bool {
        let place = event.tab_id.map(|tab| (Arc::clone(&event.browser), tab));
        place.and_then(|place| self.arrived.get(&place)).is_none_or(|at| event.at >= *at)
    }

    /// Shows events, the newest first.
    pub(crate) fn page(&self, shelf: Shelf, wanted: &Wanted<'_>) -> Page {
        let Some(ring) = self.rings.get(shelf as usize) else {
            return Page { events: Vec::new(), next: None, n_gone: 0 };
        };
        let needle = wanted.filter.map(str::to_lowercase);
        let level = wanted.level.map_or(0, |level| level_of(Some(level)));
        let mut fits = ring.events.iter().rev().filter(|event| {
            wanted.before.is_none_or(|before| event.seq < before)
                && wanted.tab_id.is_none_or(|tab| event.tab_id == Some(tab))
                && wanted.browser.is_none_or(|browser| *event.browser == *browser)
                && event.level >= level
                && (!wanted.is_of_page || self.is_of_page(event))
                && needle.as_ref().is_none_or(|it| event.shown.get().to_lowercase().contains(it))
        });
        let shown: Vec<&Event> = fits.by_ref().take(wanted.limit).collect();
        let next = fits.next().and(shown.last()).map(|event| event.seq);
        let n_gone = ring.n_seen - ring.events.len() as u64;
        Page { events: shown.iter().map(|event| event.shown.clone()).collect(), next, n_gone }
    }

    /// Forgets the events of a ring, or of all.
    pub(crate) fn clear(&mut self, shelf: Option<Shelf>) {
        for one in Shelf::ALL {
            if shelf.is_none_or(|shelf| shelf == one)
                && let Some(ring) = self.rings.get_mut(one as usize)
            {
                ring.events.clear();
                ring.bytes = 0;
            }
        }
    }
}

/// Returns the place of a level among all.
fn level_of(word: Option<&str>) -> usize {
    LEVELS.iter().position(|level| Some(*level) == word).unwrap_or(1)
}

/// Makes a value fit to be listed: long texts are cut, and what is no text is described.
fn described(value: Value, depth: usize) -> Value {
    match value {
        _ if depth > MAX_DEPTH => Value::from("…"),
        Value::String(words) if is_binary(&words) => {
            json!({ "binary": true, "characters": words.chars().count() })
        }
        Value::String(words) if words.len() > MAX_TEXT => {
            json!({ "text": text::clip(&words, MAX_TEXT), "bytes": words.len(), "cut": true })
        }
        Value::Array(items) => items.into_iter().map(|item| described(item, depth + 1)).collect(),
        Value::Object(members) => Value::Object(
            members.into_iter().map(|(name, value)| (name, described(value, depth + 1))).collect(),
        ),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

/// Tells whether a text is bytes that somebody took for text. Halves of characters, which pages can make,
/// are none.
fn is_binary(words: &str) -> bool {
    let odd = |c: &char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{1b}');
    words.contains('\0') || is_mostly(words, 10, odd)
}

/// Tells whether a text is what a decoder made of bytes that are none.
fn is_undecoded(words: &str) -> bool {
    is_mostly(words, 4, |c| *c == '\u{fffd}')
}

/// Tells whether more than one in `n` of the first characters are such.
fn is_mostly(words: &str, n: usize, such: impl Fn(&char) -> bool) -> bool {
    let first = || words.chars().take(4096);
    first().filter(such).count() * n > first().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rings(items: &[&str]) -> (Rings, (usize, usize)) {
        let mut rings = Rings::new(3);
        let items: Vec<Box<RawValue>> =
            items.iter().map(|it| RawValue::from_string((*it).to_owned()).expect("JSON")).collect();
        let told = rings.take(Timestamp::from_millis(0), &"b".into(), &items);
        (rings, told)
    }

    fn texts(rings: &Rings, wanted: &Wanted<'_>) -> Vec<String> {
        let page = rings.page(Shelf::Console, wanted);
        let text = |json: &Json| json.read::<Value>().expect("JSON")["text"].to_string();
        page.events.iter().map(text).collect()
    }

    #[test]
    fn one_odd_item_never_costs_the_others_and_bytes_are_described() {
        // Case browser-binary-bodies. [BROWSER-14]
        let (rings, told) = rings(&[
            r#"{"kind":"network","tab_id":3,"url":"http://a/f.woff2","body":"wOF2\u0000\u0001\u0000"}"#,
            r#""stray""#,
            r#"{"kind":"network"}"#,
            r#"{"kind":"console","tab_id":3,"text":"after"}"#,
        ]);
        assert_eq!(told, (2, 2));
        let network = rings.page(Shelf::Network, &Wanted { limit: 9, ..Wanted::default() });
        assert!(network.events[0].get().contains(r#""body":{"binary":true,"characters":7}"#));
        assert_eq!(texts(&rings, &Wanted { limit: 9, ..Wanted::default() }), [r#""after""#]);
    }

    #[test]
    fn halves_of_characters_do_not_make_a_text_bytes() {
        // [BROWSER-13] [BROWSER-14]
        let (rings, told) = rings(&[
            r#"{"kind":"console","text":"\ud83d"}"#,
            r#"{"kind":"console","text":"\ufffd\ufffd"}"#,
            r#"{"kind":"network","url":"http://a/","body":"{\"a\":\"\ufffd\"}"}"#,
            r#"{"kind":"network","url":"http://a/","body":"\ufffd\ufffdPNG\ufffd"}"#,
        ]);
        assert_eq!(told, (4, 0));
        let all = Wanted { limit: 9, ..Wanted::default() };
        assert_eq!(texts(&rings, &all), ["\"\u{fffd}\u{fffd}\"", "\"\u{fffd}\""]);
        let network = rings.page(Shelf::Network, &all);
        assert!(network.events[0].get().contains(r#""body":{"binary":true,"characters":6}"#));
        assert!(network.events[1].get().contains("\u{fffd}"), "{:?}", network.events[1]);
    }

    #[test]
    fn a_console_is_shown_by_level_and_since_the_page_came() {
        // [BROWSER-46]
        let (rings, _) = rings(&[
            r#"{"kind":"console","tab_id":1,"at":10,"level":"error","text":"before"}"#,
            r#"{"kind":"navigation","tab_id":1,"at":20,"url":"http://a/"}"#,
            r#"{"kind":"navigation","tab_id":1,"at":90,"url":"http://b/","error":"net::ERR"}"#,
            r#"{"kind":"console","tab_id":1,"at":20,"level":"warning","text":"after"}"#,
            r#"{"kind":"console","tab_id":1,"at":30,"level":"debug","text":"detail"}"#,
        ]);
        let all = Wanted { limit: 9, ..Wanted::default() };
        let since = Wanted { is_of_page: true, ..all };
        assert_eq!(texts(&rings, &since), [r#""detail""#, r#""after""#]);
        let grave = Wanted { level: Some("warning"), ..all };
        assert_eq!(texts(&rings, &grave), [r#""after""#, r#""before""#]);
        let both = Wanted { level: Some("error"), is_of_page: true, ..all };
        assert_eq!(texts(&rings, &both), [""; 0]);
        let info = Wanted { level: Some("info"), ..all };
        assert_eq!(texts(&rings, &info).len(), 2);
    }

    #[test]
    fn a_ring_keeps_the_newest_and_pages_go_back_from_them() {
        // [BROWSER-14]
        let items: Vec<String> =
            (1..=5).map(|n| format!(r#"{{"kind":"console","text":"n{n}"}}"#)).collect();
        let items: Vec<&str> = items.iter().map(String::as_str).collect();
        let (rings, _) = rings(&items);
        let first = Wanted { limit: 2, ..Wanted::default() };
        assert_eq!(texts(&rings, &first), [r#""n5""#, r#""n4""#]);
        let page = rings.page(Shelf::Console, &first);
        assert_eq!((page.next, page.n_gone), (Some(4), 2));
        let rest = Wanted { limit: 2, before: page.next, ..Wanted::default() };
        assert_eq!(texts(&rings, &rest), [r#""n3""#]);
        assert_eq!(rings.page(Shelf::Console, &rest).next, None);
        let found = Wanted { limit: 9, filter: Some("N4"), ..Wanted::default() };
        assert_eq!(texts(&rings, &found), [r#""n4""#]);
    }

    #[test]
    fn no_count_of_lost_events_is_too_large() {
        // [BROWSER-14]
        let lost = r#"{"kind":"console","dropped":18446744073709551615}"#;
        let (rings, told) = rings(&[lost, lost, r#"{"kind":"console","text":"after"}"#]);
        assert_eq!(told, (3, 0));
        let wanted = Wanted { limit: 9, ..Wanted::default() };
        assert_eq!(texts(&rings, &wanted), [r#""after""#]);
        assert_eq!(rings.page(Shelf::Console, &wanted).n_gone, 2 * MOST_LOST);
    }
}
