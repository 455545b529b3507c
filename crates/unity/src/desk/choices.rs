//! Which editor each caller has selected.

use std::collections::BTreeMap;
use std::sync::Arc;

use raincheck_core::ids::TaskId;
use raincheck_core::scope::Scope;
use serde::{Deserialize, Serialize};

use crate::spelling::Key;

/// How many callers may have selected one.
const MAX: usize = 1024;

/// How many calls it is known of which connection they are.
const MAX_CALLS: usize = 4096;

/// Who makes a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) scope: &'a Scope,
    /// The window or session of the client; `None` when it is not known any more.
    pub(crate) connection: Option<&'a str>,
}

/// An editor that was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) key: Key,
    /// Whether an earlier server was told of it, and the editor was not heard of since.
    pub(crate) is_unheard: bool,
}

/// The editors that were selected, and by whom.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    chosen: BTreeMap<(Scope, Arc<str>), (u64, Choice)>,
    n: u64,
    /// Of which connection calls are that may find their editor later.
    calls: BTreeMap<TaskId, Arc<str>>,
}

/// One line of what is kept for the next server.
#[derive(Serialize, Deserialize)]
struct Line {
    scope: String,
    connection: String,
    project: String,
}

impl Choices {
    /// Returns what a caller has selected. Of a call whose connection is not known that is what all of
    /// its scope have selected.
    ///
    /// # Errors
    /// When these have selected several.
    pub(crate) fn of(&self, asker: Asker<'_>) -> Result<Option<&Choice>, Several> {
        let mut of_scope = self.chosen.iter().filter(|((scope, _), _)| scope == asker.scope);
        if let Some(connection) = asker.connection {
            let own = of_scope.find(|((_, name), _)| **name == *connection);
            return Ok(own.map(|(_, (_, choice))| choice));
        }
        let Some((_, (_, first))) = of_scope.next() else { return Ok(None) };
        let is_one = of_scope.all(|(_, (_, other))| other.key == first.key);
        if is_one { Ok(Some(first)) } else { Err(Several) }
    }

    /// Takes down a choice. With too many the oldest is forgotten.
    pub(crate) fn choose(&mut self, scope: &Scope, connection: &str, key: &Key) {
        self.put(scope.clone(), connection, Choice { key: Arc::clone(key), is_unheard: false });
    }

    fn put(&mut self, scope: Scope, connection: &str, choice: Choice) {
        let caller = (scope, connection.into());
        if self.chosen.len() >= MAX && !self.chosen.contains_key(&caller) {
            let oldest = self.chosen.iter().min_by_key(|(_, (n, _))| *n);
            if let Some(oldest) = oldest.map(|(caller, _)| caller.clone()) {
                self.chosen.remove(&oldest);
            }
        }
        self.n += 1;
        self.chosen.insert(caller, (self.n, choice));
    }

    /// Notes that an editor is there.
    pub(crate) fn heard(&mut self, key: &Key) {
        let of_editor = self.chosen.values_mut().filter(|(_, choice)| choice.key == *key);
        of_editor.for_each(|(_, choice)| choice.is_unheard = false);
    }

    /// Notes of which connection a call is.
    pub(crate) fn note_call(&mut self, id: TaskId, connection: &str) {
        self.calls.insert(id, connection.into());
        if self.calls.len() > MAX_CALLS {
            self.calls.pop_first();
        }
    }

    /// Returns of which connection a call is.
    pub(crate) fn connection_of(&self, id: TaskId) -> Option<&str> {
        self.calls.get(&id).map(|name| &**name)
    }

    /// Writes down what the next server has to know, the oldest first.
    pub(crate) fn written(&self) -> Vec<u8> {
        let mut all: Vec<_> = self.chosen.iter().collect();
        all.sort_by_key(|(_, (n, _))| *n);
        let line =
            |((scope, connection), (_, choice)): (&(Scope, Arc<str>), &(u64, Choice))| Line {
                scope: scope.as_str().to_owned(),
                connection: (**connection).to_owned(),
                project: (*choice.key).to_owned(),
            };
        let lines: Vec<Line> = all.into_iter().map(line).collect();
        serde_json::to_vec(&lines).unwrap_or_default()
    }

    /// Takes over what an earlier server wrote down.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<(), serde_json::Error> {
        for Line { scope, connection, project } in serde_json::from_slice::<Vec<Line>>(bytes)? {
            let choice = Choice { key: project.into(), is_unheard: true };
            self.put(Scope::new(scope), &connection, choice);
        }
        Ok(())
    }
}

/// Several editors were selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Several;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_selected_is_known_to_the_next_server_and_bounded() {
        // [UNITY-7]
        let scope = Scope::local();
        let asker = |connection| Asker { scope: &scope, connection };
        let mut choices = Choices::default();
        for n in 0..=MAX {
            choices.choose(&scope, &format!("window {n}"), &"/projects/a".into());
        }
        assert_eq!(choices.of(asker(Some("window 0"))), Ok(None), "the oldest is forgotten");
        let mut next = Choices::default();
        next.restore(&choices.written()).expect("readable");
        let restored = Choice { key: "/projects/a".into(), is_unheard: true };
        assert_eq!(next.of(asker(Some("window 1"))), Ok(Some(&restored)));
        assert_eq!(next.of(asker(None)), Ok(Some(&restored)), "all have selected it");
        next.choose(&scope, "window 2", &"/projects/b".into());
        assert_eq!(next.of(asker(None)), Err(Several));
        next.heard(&"/projects/a".into());
        let heard = Choice { is_unheard: false, ..restored };
        assert_eq!(next.of(asker(Some("window 1"))), Ok(Some(&heard)));
        assert!(next.restore(b"no JSON").is_err());
    }
}
