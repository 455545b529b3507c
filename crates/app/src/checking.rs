//! `config check` and `config schema`.

use std::path::Path;

use raincheck_core::text::counted;

use crate::binary::Binary;
use crate::cli::{ConfigAction, Serving, Shared, print};
use crate::config::{self, File};
use crate::failure::Failure;
use crate::paths::Paths;
use crate::wrapped::{self, Named};

/// Runs `config check` or `config schema`.
///
/// # Errors
/// What is wrong with the file, or why nothing could be printed.
pub fn config(binary: &Binary, shared: &Shared, action: &ConfigAction) -> Result<(), Failure> {
    match action {
        ConfigAction::Schema => print(&format!("{:#}\n", config::schema())),
        ConfigAction::Check { file } => {
            let config = file.as_ref().or(shared.config.as_ref());
            let Some(path) = config else {
                return Err(Failure::usage(
                    "no configuration file is named",
                    format!("name it: {} config check raincheck.toml", binary.name),
                ));
            };
            print(&checked(binary, &Shared { config: config.cloned(), ..shared.clone() }, path)?)
        }
    }
}

/// Checks the configuration file that the flags name.
pub(crate) fn checked(binary: &Binary, shared: &Shared, path: &Path) -> Result<String, Failure> {
    let checked = shared.load(binary, &Serving::default());
    let file = checked.map_err(|failure| Failure {
        exit: crate::Exit::Failed,
        next: "correct the path or these lines, and check again".into(),
        ..failure
    })?;
    // What `serve` would refuse: tokens that are not there, an address without leave.
    let address = file.http.listen.unwrap_or_else(|| (std::net::Ipv4Addr::LOCALHOST, 0).into());
    crate::http::read(Some(address), false, &file, &shared.scope)
        .map_err(|failure| Failure { exit: crate::Exit::Failed, ..failure })?;
    let shown = path.display();
    let mut text = format!("{shown}: {}no problem\n", content(binary, &file));
    for what in config::clients::refused(&file) {
        text.push_str(&format!("warning: {what}\n"));
    }
    for section in file.idle_sections(binary) {
        text.push_str(&format!(
            "note: [{section}] has no effect on this version of {}\n",
            binary.name
        ));
    }
    let known = match Paths::resolve(binary.name, shared) {
        Ok(paths) if binary.wraps() => Named::of_config(&paths.home, path),
        Ok(_) | Err(_) => Vec::new(),
    };
    for what in wrapped::unknown(&file.wrap, &known) {
        text.push_str(&format!("warning: {what}\n"));
    }
    if !file.wrap.tools.is_empty() && binary.wraps() && known.is_empty() {
        text.push_str(&format!(
            "whether the wrapped server has tools of these names is seen when it runs: {} wrap warns of one \
             that it has not\n",
            binary.name
        ));
    }
    if binary.runs_programs() && !file.tools.is_empty() {
        text.push_str(&format!(
            "whether the programs are there: {} doctor --config {shown}\n",
            binary.name
        ));
    }
    Ok(text)
}

/// Says what is in a file, as the beginning of a sentence.
fn content(binary: &Binary, file: &File) -> String {
    let mut parts = Vec::new();
    let is_of_wrap = file.sections.iter().any(|name| ["wrap", "wrapped"].contains(name));
    if binary.wraps() && is_of_wrap {
        let n = file.wrap.tools.len() as u64;
        parts.push(match n {
            0 => "rules for the tools of a wrapped server".to_owned(),
            n => format!("rules for a wrapped server, and for {} by name", counted(n, "tool")),
        });
    }
    if binary.runs_programs() && (parts.is_empty() || !file.tools.is_empty()) {
        parts.push(counted(file.tools.len() as u64, "tool"));
        parts.push(counted(file.lanes.len() as u64, "lane"));
    }
    parts.iter().map(|part| format!("{part}, ")).collect()
}
