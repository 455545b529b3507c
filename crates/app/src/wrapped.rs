//! What is known of wrapped servers while they do not run: their folders, and the tools that they named last.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::Wrap;
use crate::suggest::nearest;

/// The part of the folder of a binary in which wrapped servers have folders of their own [GATE-8].
const FOLDER: &str = "wrap";

/// The file in the folder of a wrapped server that says which tools it has.
const FILE: &str = "tools.json";

/// What a gateway puts before a name of its own that the wrapped server has as well [GATE-3].
const INNER: &str = "inner_";

/// Names the folder of a wrapped server below that of its binary.
#[must_use]
pub fn home_of(home: &Path, key: &str) -> PathBuf {
    home.join(FOLDER).join(key)
}

/// Lists the folders of wrapped servers, by their names.
#[must_use]
pub fn homes(home: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(home.join(FOLDER)).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect();
    found.sort();
    found
}

/// The tools that a wrapped server named last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The configuration that it was served with.
    pub config: PathBuf,
    /// What it calls its tools.
    pub tools: Vec<String>,
}

impl Named {
    /// Keeps it in the folder of the wrapped server.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn keep(&self, home: &Path) -> io::Result<()> {
        let file = tempfile::NamedTempFile::new_in(home)?;
        serde_json::to_writer(&file, self)?;
        file.persist(home.join(FILE)).map(drop).map_err(|error| error.error)
    }

    /// Reads what is known of all servers that were wrapped with a configuration. `home` is the folder of
    /// their binary.
    #[must_use]
    pub fn of_config(home: &Path, config: &Path) -> Vec<Self> {
        let config = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
        let read = |(_, home): &(String, PathBuf)| {
            let text = std::fs::read(home.join(FILE)).ok()?;
            serde_json::from_slice(&text).ok().filter(|named: &Self| named.config == config)
        };
        homes(home).iter().filter_map(read).collect()
    }
}

/// Says which names under `[wrapped]` no server has, with what may be meant. Nothing is said where the tools of
/// no server are known.
#[must_use]
pub fn unknown(wrap: &Wrap, known: &[Named]) -> Vec<String> {
    if known.is_empty() {
        return Vec::new();
    }
    let tools = || known.iter().flat_map(|named| &named.tools).map(String::as_str);
    let has =
        |name: &str| tools().any(|tool| tool == name || tool == name.trim_start_matches(INNER));
    let names = wrap.tools.iter().map(|(name, _)| name.as_str());
    let told = names.filter(|name| !has(name)).map(|name| {
        let name_shown = raincheck_core::text::escape(name);
        let meant = nearest(name, tools()).map(|meant| {
            format!("; did you mean `{}`?", raincheck_core::text::escape(meant))
        });
        let meant = meant.unwrap_or_default();
        format!("[wrapped.{name_shown}] changes nothing: the wrapped server has no tool of this name{meant}")
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Overrides, parse};

    #[test]
    fn a_name_that_no_server_of_the_file_has_is_told_with_the_nearest() {
        // [GATE-11]
        let dir = tempfile::tempdir().expect("a folder");
        let config = dir.path().join("raincheck.toml");
        let text = "[wrapped.qurey]\nhidden = true\n[wrapped.rm]\nhidden = true\n\
                    [wrapped.inner_submit_task]\nwait_s = 1\n[wrapped.zz]\nwait_s = 1\n";
        let wrap = parse(text, dir.path().into(), Overrides::default()).expect("sound").wrap;
        assert!(unknown(&wrap, &Named::of_config(dir.path(), &config)).is_empty(), "none is known");
        let name = |key: &str, config: &Path, tools: &[&str]| {
            let home = home_of(dir.path(), key);
            std::fs::create_dir_all(&home).expect("made");
            let tools = tools.iter().map(|&tool| tool.to_owned()).collect();
            Named { config: config.to_owned(), tools }.keep(&home).expect("written");
        };
        name("one", &config, &["query", "submit_task"]);
        name("two", &config, &["rm"]);
        name("three", Path::new("/other.toml"), &["qurey", "zz"]);
        let told = unknown(&wrap, &Named::of_config(dir.path(), &config));
        let [first, second] = told.as_slice() else { panic!("two are unknown: {told:?}") };
        assert!(first.starts_with("[wrapped.qurey] changes nothing"), "{first}");
        assert!(first.ends_with("did you mean `query`?"), "{first}");
        assert!(second.contains("zz") && !second.contains("did you mean"), "{second}");
    }
}
