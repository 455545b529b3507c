//! `setup` and `unset`: a server in the configuration of an MCP client.
//!
//! The file of the client is edited as text: comments, order and everything else in it stay as they are. It
//! is written atomically, with a copy of what it was beside it.

mod client;
mod file;
mod json;
mod toml;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::binary::Binary;
use crate::failure::Failure;

pub use self::client::Client;

use self::client::{Os, Syntax};
use self::file::Kept;

/// The longest name: a tool is `mcp__NAME__TOOL` to some clients, in 64 letters at the most.
const MAX_NAME: usize = 24;

/// Add this server to an MCP client.
#[derive(Args, Clone, Debug)]
pub struct Setup {
    #[command(flatten)]
    at: At,
    /// Print the lines instead of writing them
    #[arg(long)]
    print: bool,
    /// Further arguments of the server
    #[arg(last = true, value_name = "ARGUMENT")]
    more: Vec<String>,
}

/// Take this server out of an MCP client.
#[derive(Args, Clone, Debug)]
pub struct Unset {
    #[command(flatten)]
    at: At,
}

/// Which entry of which file.
#[derive(Args, Clone, Debug)]
struct At {
    /// The client
    client: Client,
    /// What the client calls the server
    #[arg(long, value_parser = name)]
    name: Option<String>,
    /// The client's file, where it is not in its usual place
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let fits = (1..=MAX_NAME).contains(&text.len()) && text.chars().all(is_plain);
    if fits {
        Ok(text.to_owned())
    } else {
        Err(format!("write 1 to {MAX_NAME} of a-z, 0-9, - and _"))
    }
}

/// The server that a client is told of.
#[derive(Clone, Debug)]
pub struct Server<'a> {
    /// Its binary.
    pub binary: &'a Binary,
    /// What clients call it unless they are told otherwise.
    pub name: &'a str,
    /// Its arguments, with full paths: a client starts it in a folder of its own.
    pub args: Vec<String>,
}

/// A value in the entry of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    List(Vec<String>),
    Flag(bool),
}

/// The entry of a server in the file of a client.
#[derive(Clone, Debug)]
struct Entry {
    /// The member of the file that holds the servers.
    section: &'static str,
    name: String,
    /// What starts the server, which is always as it is here.
    start: Vec<(&'static str, Value)>,
    /// What a new entry has beside that; a person may change it.
    beside: Vec<(&'static str, Value)>,
    /// The program whose entries are ours.
    binary: &'static str,
}

/// Why a file was not edited.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// It does not parse.
    Broken(String),
    /// What holds the servers, or the entry, is something else there.
    Odd(String),
    /// The entry starts another program.
    Foreign(String),
}

/// What of the environment says where files are.
type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Setup {
    /// Returns the further arguments of the server, what stands after `--`.
    #[must_use]
    pub fn more(&self) -> &[String] {
        &self.more
    }

    /// Tells whether it was said what the client calls the server.
    #[must_use]
    pub const fn is_named(&self) -> bool {
        self.at.name.is_some()
    }

    /// Writes or prints the entry of a server.
    ///
    /// # Errors
    /// Why the file was not written; it is as it was then.
    pub fn run(&self, server: &Server<'_>) -> Result<(), Failure> {
        let own = std::env::current_exe().map_err(|error| {
            Failure::failed(format!("this program cannot find itself: {error}"), "try again")
        })?;
        let env: Env<'_> = &|name| std::env::var_os(name);
        crate::output::print(&self.told(server, &own, Os::CURRENT, env)?)
    }

    fn told(
        &self,
        server: &Server<'_>,
        own: &Path,
        os: Os,
        env: Env<'_>,
    ) -> Result<String, Failure> {
        let Some(command) = own.to_str() else {
            return Err(Failure::usage(
                format!("the path of this program is no text: {}", own.display()),
                "install it in a folder with a plain name",
            ));
        };
        let at = &self.at;
        let name = at.name.as_deref().unwrap_or(server.name);
        let args = [&server.args[..], &self.more[..]].concat();
        let entry = at.client.entry(server.binary.name, name, command, &args);
        let lines = at.client.syntax().lines(&entry);
        let path = at.path(os, env)?;
        let shown = path.display();
        if self.print {
            return Ok(format!("{shown}:\n\n{lines}"));
        }
        let failed = |error: std::io::Error| unwritten(&path, &error.to_string(), &lines);
        let kept = Kept::open(&path).map_err(failed)?;
        let before = kept.text().map_err(failed)?;
        let after = at.client.syntax().put(before, &entry);
        let after = after.map_err(|refusal| refused(&refusal, &path, at, &lines))?;
        if after == before {
            return Ok(format!("`{name}` in {shown} is up to date\n"));
        }
        let copy = kept.write(&after).map_err(failed)?;
        let mut said = format!("`{name}` is in {shown}\n");
        if let Some(copy) = copy {
            said.push_str(&format!("the file as it was: {}\n", copy.display()));
        }
        for note in at.client.notes() {
            said.push_str(&format!("{note}\n"));
        }
        Ok(said)
    }
}

impl Unset {
    /// Takes the entry of a server out.
    ///
    /// # Errors
    /// Why the file was not written; it is as it was then.
    pub fn run(&self, server: &Server<'_>) -> Result<(), Failure> {
        crate::output::print(&self.told(server, Os::CURRENT, &|name| std::env::var_os(name))?)
    }

    fn told(&self, server: &Server<'_>, os: Os, env: Env<'_>) -> Result<String, Failure> {
        let at = &self.at;
        let name = at.name.as_deref().unwrap_or(server.name);
        let entry = at.client.entry(server.binary.name, name, "", &[]);
        let path = at.path(os, env)?;
        let shown = path.display();
        let failed = |error: std::io::Error| {
            Failure::failed(format!("{shown}: {error}"), "check its access rights, and try again")
        };
        let kept = Kept::open(&path).map_err(failed)?;
        let before = kept.text().map_err(failed)?;
        let after = at.client.syntax().take(before, &entry);
        let after = after.map_err(|refusal| refused(&refusal, &path, at, ""))?;
        if after == before {
            return Ok(format!("there is no `{name}` in {shown}\n"));
        }
        let take = |text: &str| at.client.syntax().take(text, &entry).ok();
        if kept.is_of_setup(&after, take) {
            kept.remove().map_err(failed)?;
            return Ok(format!("`{name}` is gone, and {shown} with it: nothing else was in it\n"));
        }
        let copy = kept.write(&after).map_err(failed)?;
        let mut said = format!("`{name}` is gone from {shown}\n");
        if let Some(copy) = copy {
            said.push_str(&format!("the file as it was: {}\n", copy.display()));
        }
        Ok(said)
    }
}

impl At {
    fn path(&self, os: Os, env: Env<'_>) -> Result<PathBuf, Failure> {
        if let Some(file) = &self.file {
            return Ok(std::path::absolute(file).unwrap_or_else(|_| file.clone()));
        }
        self.client.file(os, env).ok_or_else(|| {
            Failure::usage(
                format!(
                    "the file of {} cannot be found: no home folder is set",
                    self.client.title()
                ),
                "name it: --file FILE",
            )
        })
    }
}

/// Says that a file could not be written, with the lines for whoever does it by hand.
fn unwritten(path: &Path, why: &str, lines: &str) -> Failure {
    let next = format!("mend that and try again, or paste these lines yourself:\n\n{lines}");
    Failure::failed(format!("{}: {why}; nothing was changed", path.display()), next)
}

fn refused(refusal: &Refusal, path: &Path, at: &At, lines: &str) -> Failure {
    match refusal {
        Refusal::Broken(why) | Refusal::Odd(why) if lines.is_empty() => Failure::failed(
            format!("{}: {why}; nothing was changed", path.display()),
            "mend that and try again, or take the lines out yourself",
        ),
        Refusal::Broken(why) | Refusal::Odd(why) => unwritten(path, why, lines),
        Refusal::Foreign(command) => Failure::failed(
            format!(
                "an entry of this name in {} starts another program: {command}; nothing was changed",
                path.display()
            ),
            format!("take another name: --name NAME, or edit the file of {}", at.client.title()),
        ),
    }
}

impl Syntax {
    /// Returns the lines of an entry in a file that has nothing else.
    fn lines(self, entry: &Entry) -> String {
        // An empty file takes every entry.
        self.put("", entry).unwrap_or_default()
    }

    /// Puts an entry into a text.
    fn put(self, text: &str, entry: &Entry) -> Result<String, Refusal> {
        match self {
            Self::Json => json::put(text, entry),
            Self::Toml => toml::put(text, entry),
        }
    }

    /// Takes an entry out of a text; a text without it stays as it is.
    fn take(self, text: &str, entry: &Entry) -> Result<String, Refusal> {
        match self {
            Self::Json => json::take(text, entry),
            Self::Toml => toml::take(text, entry),
        }
    }
}

impl Entry {
    /// Tells whether a command is of our program, wherever it lies.
    fn is_ours(&self, command: &str) -> bool {
        let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
        name.strip_suffix(".exe").unwrap_or(name) == self.binary
    }
}
