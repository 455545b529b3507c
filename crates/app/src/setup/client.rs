//! The clients: where each keeps its servers, and in which words.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{Entry, Env, Value};

/// An MCP client.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Claude Code, for all projects of the user
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor, for all projects of the user
    Cursor,
    /// Visual Studio Code, in the user's profile
    Vscode,
    /// Codex: its command line, app and extension
    Codex,
    /// Gemini CLI, for all projects of the user
    Gemini,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
    /// Copilot CLI
    Copilot,
}

/// The system that a client runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Os {
    Linux,
    Mac,
    Windows,
}

impl Os {
    /// The one that this program runs on.
    pub(super) const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::Mac
    } else {
        Self::Linux
    };
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// JSON, perhaps with comments.
    Json,
    Toml,
}

impl Client {
    /// Returns what people call it.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::Vscode => "Visual Studio Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Copilot => "Copilot CLI",
        }
    }

    /// Returns the file that it keeps its servers in; `None` where nothing says where a user's files are.
    pub(super) fn file(self, os: Os, env: Env<'_>) -> Option<PathBuf> {
        let set = |name: &str| env(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        let home = || set(if os == Os::Windows { "USERPROFILE" } else { "HOME" });
        // Where applications with a window keep their settings.
        let settings = || match os {
            Os::Linux => set("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config"))),
            Os::Mac => Some(home()?.join("Library").join("Application Support")),
            Os::Windows => set("APPDATA").or_else(|| Some(home()?.join("AppData").join("Roaming"))),
        };
        Some(match self {
            Self::ClaudeCode => home()?.join(".claude.json"),
            Self::ClaudeDesktop => settings()?.join("Claude").join("claude_desktop_config.json"),
            Self::Cursor => home()?.join(".cursor").join("mcp.json"),
            Self::Vscode => settings()?.join("Code").join("User").join("mcp.json"),
            Self::Codex => {
                let folder = set("CODEX_HOME").or_else(|| Some(home()?.join(".codex")));
                folder?.join("config.toml")
            }
            Self::Gemini => home()?.join(".gemini").join("settings.json"),
            Self::Windsurf => home()?.join(".codeium").join("windsurf").join("mcp_config.json"),
            Self::Zed => match os {
                Os::Windows => settings()?.join("Zed").join("settings.json"),
                Os::Mac => home()?.join(".config").join("zed").join("settings.json"),
                Os::Linux => settings()?.join("zed").join("settings.json"),
            },
            Self::Copilot => {
                let folder = set("COPILOT_HOME").or_else(|| Some(home()?.join(".copilot")));
                folder?.join("mcp-config.json")
            }
        })
    }

    pub(super) const fn syntax(self) -> Syntax {
        match self {
            Self::Codex => Syntax::Toml,
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Cursor
            | Self::Vscode
            | Self::Gemini
            | Self::Windsurf
            | Self::Zed
            | Self::Copilot => Syntax::Json,
        }
    }

    /// Makes the entry of a server.
    pub(super) fn entry(
        self,
        binary: &'static str,
        name: &str,
        command: &str,
        args: &[String],
    ) -> Entry {
        let section = match self {
            Self::Vscode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            Self::ClaudeCode
            | Self::ClaudeDesktop
            | Self::Cursor
            | Self::Gemini
            | Self::Windsurf
            | Self::Copilot => "mcpServers",
        };
        let kind = match self {
            Self::ClaudeCode | Self::Vscode => Some("stdio"),
            Self::Copilot => Some("local"),
            Self::ClaudeDesktop
            | Self::Cursor
            | Self::Codex
            | Self::Gemini
            | Self::Windsurf
            | Self::Zed => None,
        };
        let mut start: Vec<_> =
            kind.into_iter().map(|kind| ("type", Value::Text(kind.to_owned()))).collect();
        start.push(("command", Value::Text(command.to_owned())));
        start.push(("args", Value::List(args.to_vec())));
        // Tools that a client defers are found in few sessions.
        let beside = match self {
            Self::ClaudeCode => vec![("alwaysLoad", Value::Flag(true))],
            Self::Copilot => vec![
                ("tools", Value::List(vec!["*".to_owned()])),
                ("deferTools", Value::Text("never".to_owned())),
            ],
            Self::ClaudeDesktop
            | Self::Cursor
            | Self::Vscode
            | Self::Codex
            | Self::Gemini
            | Self::Windsurf
            | Self::Zed => Vec::new(),
        };
        Entry { section, name: name.to_owned(), start, beside, binary }
    }

    /// Says what is to be done in the client.
    pub(super) fn notes(self) -> Vec<String> {
        let again = match self {
            Self::ClaudeCode => {
                "start Claude Code again; one that runs may write the file anew".to_owned()
            }
            Self::ClaudeDesktop => {
                "quit Claude Desktop and start it again; closing its window is not enough"
                    .to_owned()
            }
            Self::Cursor
            | Self::Vscode
            | Self::Codex
            | Self::Gemini
            | Self::Windsurf
            | Self::Zed
            | Self::Copilot => format!("start {} again", self.title()),
        };
        let mut notes = vec![again];
        if self == Self::ClaudeCode {
            notes.push(
                "calls that go on in its background as tasks need MCP_PROTOCOL_NEGOTIATION=auto in its environment"
                    .to_owned(),
            );
        }
        notes
    }
}
