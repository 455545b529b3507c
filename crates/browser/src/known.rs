//! Which browser has which tabs, as the browsers tell it: a tab alone finds its browser.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use raincheck_core::error::{Error, Kind};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The most tabs of one browser that are known; more than anybody has open.
const MAX_TABS: usize = 16_384;

/// The tabs of all browsers.
#[derive(Debug, Default)]
pub(crate) struct KnownTabs(BTreeMap<Arc<str>, Tabs>);

/// The tabs of one start of a browser's extension.
#[derive(Debug)]
struct Tabs {
    session: Arc<str>,
    open: BTreeSet<i64>,
}

/// What is read of an event about a tab.
#[derive(Deserialize)]
struct Told {
    kind: String,
    tab_id: Option<i64>,
    event: Option<String>,
    new_tab_id: Option<i64>,
}

impl KnownTabs {
    /// Hears events of a browser. What an earlier start of its extension told is forgotten: a new one
    /// tells of every tab.
    pub(crate) fn hear(&mut self, browser: &Arc<str>, session: &Arc<str>, items: &[Box<RawValue>]) {
        let tabs = self.0.entry(Arc::clone(browser)).or_insert_with(|| Tabs::new(session));
        if tabs.session != *session {
            *tabs = Tabs::new(session);
        }
        let told = items.iter().filter_map(|item| serde_json::from_str::<Told>(item.get()).ok());
        for told in told.filter(|told| told.kind == "tab") {
            let Some(tab_id) = told.tab_id else { continue };
            let is_gone = matches!(told.event.as_deref(), Some("closed" | "replaced"));
            if is_gone {
                tabs.open.remove(&tab_id);
            }
            let open = told.new_tab_id.or(Some(tab_id).filter(|_| !is_gone));
            if tabs.open.len() < MAX_TABS {
                tabs.open.extend(open);
            }
        }
    }

    /// Forgets browsers that are not among these.
    pub(crate) fn keep_only(&mut self, is_known: impl Fn(&Arc<str>) -> bool) {
        self.0.retain(|browser, _| is_known(browser));
    }

    /// Finds the browser with a tab; `None` when none told of it.
    ///
    /// # Errors
    /// [`Kind::InvalidParams`] when several have a tab of that number: browsers number their tabs
    /// without knowing of each other.
    pub(crate) fn browser_of(&self, tab_id: i64) -> Result<Option<Arc<str>>, Error> {
        let having = || self.0.iter().filter(|(_, tabs)| tabs.open.contains(&tab_id));
        if having().count() <= 1 {
            return Ok(having().next().map(|(browser, _)| Arc::clone(browser)));
        }
        let names: Vec<String> = having().map(|(browser, _)| format!("`{browser}`")).collect();
        let words = format!("tab {tab_id} is open in several browsers: {}", names.join(", "));
        let error = Error::new(Kind::InvalidParams, words);
        Err(error.with_hint("name one of them with `browser_id`"))
    }
}

impl Tabs {
    fn new(session: &Arc<str>) -> Self {
        Self { session: Arc::clone(session), open: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(known: &mut KnownTabs, (browser, session): (&str, &str), events: &[&str]) {
        let item = |event: &&str| RawValue::from_string((*event).to_owned()).expect("JSON");
        let items: Vec<_> = events.iter().map(item).collect();
        known.hear(&browser.into(), &session.into(), &items);
    }

    fn of(known: &KnownTabs, tab_id: i64) -> Option<String> {
        known.browser_of(tab_id).expect("no doubt").map(|browser| browser.to_string())
    }

    #[test]
    fn a_tab_is_known_while_it_is_open() {
        // [BROWSER-7]
        let mut known = KnownTabs::default();
        let events = [
            r#"{"kind":"tab","tab_id":1,"event":"open"}"#,
            r#"{"kind":"console","tab_id":9,"text":"x"}"#,
            r#"{"kind":"tab","tab_id":2,"event":"updated"}"#,
        ];
        hear(&mut known, ("work", "s1"), &events);
        assert_eq!(
            [1, 2, 9].map(|tab| of(&known, tab)),
            [Some("work".into()), Some("work".into()), None]
        );
        let gone = [
            r#"{"kind":"tab","tab_id":1,"event":"closed"}"#,
            r#"{"kind":"tab","tab_id":2,"event":"replaced","new_tab_id":3}"#,
        ];
        hear(&mut known, ("work", "s1"), &gone);
        assert_eq!([1, 2, 3].map(|tab| of(&known, tab)), [None, None, Some("work".into())]);
        hear(&mut known, ("work", "s2"), &[]);
        assert_eq!(of(&known, 3), None, "a new start tells anew");
    }

    #[test]
    fn a_number_that_several_browsers_use_is_no_answer() {
        // [BROWSER-7]
        let mut known = KnownTabs::default();
        for browser in ["home", "work"] {
            hear(&mut known, (browser, "s"), &[r#"{"kind":"tab","tab_id":7,"event":"open"}"#]);
        }
        let error = known.browser_of(7).expect_err("two have it");
        assert_eq!(error.kind, Kind::InvalidParams);
        assert!(error.message.contains("`home`, `work`"), "{error:?}");
        known.keep_only(|browser| &**browser == "home");
        assert_eq!(of(&known, 7), Some("home".into()));
    }
}
