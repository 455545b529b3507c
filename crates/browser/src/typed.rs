//! What commands type, beside the store instead of in it.
//!
//! That a field is one for passwords is known only once the browser has looked. So whatever a command types is
//! kept apart: the inputs of its task name a place here, and the texts of a place go with the end of its command.
//! A place is in memory, and in a file of its own that only the owner can read, so that a command which stands
//! in line outlives the server.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::ids::{Spelling, TaskId};
use raincheck_core::time::Timestamp;
use serde_json::{Value, json};

/// The member that stands in the place of a text.
const PLACE: &str = "typed";

/// What of each action is typed: a member, or the member of each object of a list.
const TYPED: &[(&str, Typing)] = &[
    ("type", Typing::Member("text")),
    ("fill", Typing::Member("text")),
    ("press", Typing::Key("key")),
    ("dialog", Typing::Member("text")),
    ("fill_form", Typing::Each("fields", "value")),
    ("batch", Typing::Steps("steps", "values")),
];

/// How long after it was put down a place is left alone whose command nobody knows: its submit may be under way.
const YOUNG: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug)]
enum Typing {
    Member(&'static str),
    /// A member that is the name of a key, which types nothing, or what is typed.
    Key(&'static str),
    Each(&'static str, &'static str),
    /// The steps of a batch, and the texts that these name.
    Steps(&'static str, &'static str),
}

/// The texts of live commands.
#[derive(Debug, Default)]
pub(crate) struct Typed {
    folder: Option<PathBuf>,
    places: Mutex<BTreeMap<TaskId, Held>>,
}

/// The texts of one command, in the order in which they stand in its inputs.
#[derive(Clone, Debug)]
struct Held {
    since: Timestamp,
    texts: Arc<[String]>,
}

impl Typed {
    /// Holds texts in memory, and in files below `folder`. What an earlier server left there is found again.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        let left = folder.as_deref().and_then(|folder| left_in(folder).ok()).unwrap_or_default();
        Self { folder, places: Mutex::new(left) }
    }

    /// Tells whether an action types anything.
    pub(crate) fn concerns(what: &str) -> bool {
        TYPED.iter().any(|(name, _)| *name == what)
    }

    /// Takes what a command types out of its inputs. `None` when it types nothing. Works with blocking calls.
    pub(crate) fn take(
        &self,
        now: Timestamp,
        id: TaskId,
        what: &str,
        inputs: &Json,
    ) -> Option<Json> {
        if !Self::concerns(what) {
            return None;
        }
        let mut value: Value = inputs.read().ok()?;
        let mut texts = Vec::new();
        each(what, &mut value, &mut |text| {
            if let Value::String(typed) = text {
                texts.push(std::mem::take(typed));
                *text = json!({ PLACE: texts.len() - 1 });
            }
        });
        if texts.is_empty() {
            return None;
        }
        let kept = Json::of(&value).ok()?;
        if let Some(folder) = &self.folder
            && let Err(error) = write(folder, id, &texts)
        {
            tracing::warn!(%error, "what a command types is held in memory only");
        }
        self.places().insert(id, Held { since: now, texts: texts.into() });
        Some(kept)
    }

    /// Puts what a command types back into its inputs.
    ///
    /// # Errors
    /// When it is gone, such as after a loss of power; the command has not begun.
    pub(crate) fn whole(&self, id: TaskId, what: &str, inputs: &Json) -> Result<Json, Error> {
        let mut value: Value = match inputs.read() {
            Ok(value) if Self::concerns(what) => value,
            Ok(_) | Err(_) => return Ok(inputs.clone()),
        };
        let texts = self.places().get(&id).map(|held| Arc::clone(&held.texts));
        let (mut n_put, mut is_whole) = (0, true);
        each(what, &mut value, &mut |text| {
            let Some(n) = text.get(PLACE).and_then(Value::as_u64) else { return };
            let found = usize::try_from(n).ok().and_then(|n| texts.as_ref()?.get(n));
            is_whole &= found.is_some();
            n_put += 1;
            *text = found.cloned().into();
        });
        if !is_whole {
            let words = "the text that it types was not kept, as the computer stopped meanwhile";
            return Err(Error::new(Kind::WorkerLost, words)
                .with_guarantee(Guarantee::NotExecuted)
                .with_hint("give the command again"));
        }
        if n_put == 0 {
            return Ok(inputs.clone());
        }
        Json::of(&value).map_err(|error| Error::new(Kind::InvalidRequest, error.to_string()))
    }

    /// Tells whether a command typed something that is held.
    pub(crate) fn has(&self, id: TaskId) -> bool {
        self.places().contains_key(&id)
    }

    /// Forgets what a command typed. Works with blocking calls.
    pub(crate) fn forget(&self, id: TaskId) {
        if self.places().remove(&id).is_none() {
            return;
        }
        if let Some(folder) = &self.folder {
            wipe(&path_of(folder, id));
        }
    }

    /// Returns the commands whose texts are held, and whether each is old enough to be known to the store.
    pub(crate) fn all(&self, now: Timestamp) -> Vec<(TaskId, bool)> {
        let is_old = |held: &Held| now.since(held.since) >= YOUNG;
        self.places().iter().map(|(id, held)| (*id, is_old(held))).collect()
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<TaskId, Held>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Visits the places of text in the inputs of an action.
fn each(what: &str, inputs: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    let Some((_, typing)) = TYPED.iter().find(|(name, _)| *name == what) else { return };
    match *typing {
        Typing::Member(name) => {
            if let Some(text) = inputs.get_mut(name) {
                visit(text);
            }
        }
        Typing::Key(name) => {
            let key = inputs.get_mut(name);
            if let Some(key) = key.filter(|key| key.as_str().is_none_or(|it| !is_named(it))) {
                visit(key);
            }
        }
        Typing::Each(list, name) => {
            let items = inputs.get_mut(list).and_then(Value::as_array_mut);
            for text in items.into_iter().flatten().filter_map(|item| item.get_mut(name)) {
                visit(text);
            }
        }
        Typing::Steps(list, named) => {
            let named = inputs.get_mut(named).and_then(Value::as_object_mut);
            for text in named.into_iter().flat_map(|named| named.values_mut()) {
                visit(text);
            }
            let steps = inputs.get_mut(list).and_then(Value::as_array_mut);
            for step in steps.into_iter().flatten() {
                let chosen = step.get("action").or_else(|| step.get("what"));
                let Some(what) = chosen.and_then(Value::as_str).map(str::to_owned) else {
                    continue;
                };
                // A batch is no step of a batch.
                if what != "batch" {
                    each(&what, step, visit);
                }
            }
        }
    }
}

/// Keys that write nothing.
const NAMED: &[&str] = &[
    "Enter",
    "Return",
    "Tab",
    "Escape",
    "Esc",
    "Backspace",
    "Delete",
    "Del",
    "Insert",
    "Home",
    "End",
    "PageUp",
    "PageDown",
    "ArrowLeft",
    "ArrowRight",
    "ArrowUp",
    "ArrowDown",
    "Left",
    "Right",
    "Up",
    "Down",
];

/// Keys with which another one is a command.
const COMMANDING: &[&str] = &["Alt", "Control", "Ctrl", "Meta", "Command", "Cmd"];

/// Tells whether a chord is known to write nothing. Whatever else it is may be a secret, or a part of one.
fn is_named(chord: &str) -> bool {
    let (held, key) = match chord.strip_suffix("++") {
        Some(held) => (held, "+"),
        None if chord == "+" => ("", "+"),
        None => chord.rsplit_once('+').unwrap_or(("", chord)),
    };
    let is_known = |it: &str| it == "Shift" || COMMANDING.contains(&it);
    if !held.is_empty() && !held.split('+').all(is_known) {
        return false;
    }
    let is_command = held.split('+').any(|it| COMMANDING.contains(&it));
    let of_row = |key: &str| key.strip_prefix('F')?.parse::<u8>().ok();
    let is_one = key.chars().count() == 1;
    NAMED.contains(&key) || of_row(key).is_some_and(|n| n <= 12) || (is_command && is_one)
}

fn path_of(folder: &Path, id: TaskId) -> PathBuf {
    folder.join(id.spell(Spelling::Correlation))
}

fn write(folder: &Path, id: TaskId, texts: &[String]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    private(folder, &mut options)?;
    let bytes = serde_json::to_vec(texts)?;
    options.open(path_of(folder, id))?.write_all(&bytes)
}

/// Lets nobody but the owner read what is written.
#[cfg(unix)]
fn private(folder: &Path, options: &mut OpenOptions) -> io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    options.mode(0o600);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

/// The folder is one of the user's profile, which nobody else reads.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it may fail elsewhere")]
fn private(_folder: &Path, _options: &mut OpenOptions) -> io::Result<()> {
    Ok(())
}

/// Writes over a file before it is removed.
fn wipe(path: &Path) {
    let over = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or_default();
        file.write_all(&vec![0; length])?;
        file.sync_data()
    };
    // What cannot be written over is removed all the same.
    let _ = over();
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "what a command typed was not removed");
    }
}

/// Reads what an earlier server left.
fn left_in(folder: &Path) -> io::Result<BTreeMap<TaskId, Held>> {
    let mut left = BTreeMap::new();
    for file in fs::read_dir(folder)?.flatten() {
        let Some(id) = file.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let texts =
            fs::read(file.path()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // One that cannot be read is held without its texts, so that it goes with its command.
        let texts: Vec<String> = texts.unwrap_or_default();
        left.insert(id, Held { since: Timestamp::from_millis(0), texts: texts.into() });
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "correct horse";

    fn id(n: u8) -> TaskId {
        TaskId::from_parts(1_700_000_000_000, [n; 10])
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn json(value: &Value) -> Json {
        Json::of(value).expect("JSON")
    }

    #[test]
    fn what_each_action_types_is_taken_out_and_comes_back_as_it_was() {
        // [BROWSER-24]
        let typed = Typed::new(None);
        for (n, inputs) in [
            json!({ "action": "fill", "selector": "#pw", "text": SECRET }),
            json!({ "action": "type", "ref": "e1", "text": SECRET, "origin": "https://a" }),
            json!({ "action": "dialog", "accept": true, "text": SECRET }),
            json!({ "action": "fill_form", "fields": [
                { "ref": "e1", "value": "name" }, { "ref": "e2", "value": true },
                { "ref": "e3", "value": SECRET },
            ] }),
            json!({ "action": "batch", "steps": [
                { "action": "click", "ref": "e1" }, { "what": "fill", "ref": "e2", "text": SECRET },
                { "action": "fill_form", "fields": [{ "ref": "e3", "value": SECRET }] },
            ] }),
            json!({ "action": "batch", "values": { "word": SECRET }, "steps": [
                { "action": "fill", "ref": "e1", "text": "{{secret:word}}" },
            ] }),
        ]
        .into_iter()
        .enumerate()
        {
            let id = id(u8::try_from(n).expect("few"));
            let what = inputs["action"].as_str().expect("an action");
            let kept = typed.take(at(0), id, what, &json(&inputs)).expect("it types");
            assert!(!kept.get().contains(SECRET), "{kept:?}");
            let whole: Value = typed.whole(id, what, &kept).expect("there").read().expect("JSON");
            assert_eq!(whole, inputs);
            typed.forget(id);
            let gone = typed.whole(id, what, &kept).expect_err("gone");
            assert_eq!(gone.guarantee(), Some(Guarantee::NotExecuted));
        }
        for key in ["a", "Shift+a", "Space", "+", "Shift++", "é", SECRET, "Wort+geheim"] {
            let inputs = json(&json!({ "action": "press", "key": key }));
            let kept = typed.take(at(0), id(8), "press", &inputs).expect(key);
            assert_eq!(kept.get(), r#"{"action":"press","key":{"typed":0}}"#);
            assert_eq!(typed.whole(id(8), "press", &kept), Ok(inputs));
        }
        for key in
            ["Enter", "Shift+Tab", "Control+a", "Control+Shift+K", "F5", "ArrowDown", "Meta++"]
        {
            let inputs = json(&json!({ "action": "press", "key": key }));
            assert_eq!(typed.take(at(0), id(9), "press", &inputs), None, "{key}");
        }
        let script = json(&json!({ "action": "execute_js", "script": SECRET }));
        assert_eq!(typed.take(at(0), id(9), "execute_js", &script), None);
        assert_eq!(typed.whole(id(9), "execute_js", &script), Ok(script));
    }

    #[test]
    fn another_server_finds_the_texts_and_the_end_of_a_command_removes_them() {
        // [BROWSER-24]
        let dir = tempfile::tempdir().expect("a folder");
        let folder = || Some(dir.path().join("typed"));
        let inputs = json(&json!({ "action": "fill", "ref": "e1", "text": SECRET }));
        let first = Typed::new(folder());
        let kept = first.take(at(0), id(1), "fill", &inputs).expect("it types");
        drop(first);
        let second = Typed::new(folder());
        assert_eq!(second.whole(id(1), "fill", &kept), Ok(inputs));
        assert_eq!(second.all(at(0)).len(), 1);
        second.forget(id(1));
        let left = fs::read_dir(dir.path().join("typed")).expect("a folder").count();
        assert_eq!((left, second.all(at(0)).len()), (0, 0));
    }
}
