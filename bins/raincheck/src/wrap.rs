//! `raincheck wrap`: another MCP server behind ours.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use raincheck::core::lane;
use raincheck::mcp::gateway::{self, Adjust, BadRemote, Gateway, Remote, Settings};
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::config::TokenFrom;
use raincheck_app::paths::Paths;
use raincheck_app::redact::command_line;
use raincheck_app::wrapped::{Named, home_of, unknown};
use raincheck_app::{Failure, config};
use sha2::{Digest as _, Sha256};

use crate::BINARY;
use crate::wiring::{self, Tools, Wrapped};

/// How much of a name is in the name of a folder.
const MAX_NAME: usize = 40;

/// What is wrapped.
#[derive(Args, Debug)]
pub(crate) struct Wrap {
    /// The command of the server, after `--`: a program and its arguments, as a client would start it
    #[arg(last = true, required_unless_present = "url", value_name = "COMMAND")]
    command: Vec<OsString>,
    /// The URL of the server's MCP endpoint, instead of a command
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// A header for each request to the URL, with the variable that holds its value, such as
    /// `Authorization=SERVER_AUTHORIZATION`
    #[arg(long = "header", value_name = "NAME=VARIABLE", requires = "url")]
    headers: Vec<String>,
}

impl Wrap {
    /// Refuses a program that only this folder knows: a client starts its servers in one of its own.
    pub(crate) fn check_for_client(&self) -> Result<(), Failure> {
        let Some(program) = self.command.first().map(Path::new) else { return Ok(()) };
        let is_of_here = program.is_relative() && program.components().count() > 1;
        if !is_of_here {
            return Ok(());
        }
        let full = std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
        Err(Failure::usage(
            format!(
                "`{}` is a path from this folder, and a client starts its servers in another",
                program.display()
            ),
            format!("write the full path: {}", full.display()),
        ))
    }
}

/// Serves the tools of another server on standard input and output.
pub(crate) fn serve(shared: &Shared, serving: &Serving, wrap: &Wrap) -> Result<(), Failure> {
    let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let (paths, _) = Paths::of_server(BINARY, shared);
    let (key, behind) = match (&wrap.url, wrap.command.as_slice()) {
        (Some(url), _) => {
            let remote = remote(url, &wrap.headers, |name| std::env::var(name).ok())?;
            (key(&["url".into(), url.into()], Path::new("")), Behind::Url(remote))
        }
        (None, [program, arguments @ ..]) => {
            let (program, arguments) = (program.clone(), arguments.to_vec());
            let command = gateway::Command { program, arguments, ..gateway::Command::default() };
            (key(&wrap.command, &folder), Behind::Command(command))
        }
        (None, []) => {
            return Err(Failure::usage(
                "no command is named",
                "name it after two dashes: raincheck wrap -- COMMAND",
            ));
        }
    };
    let shared = Shared { home: Some(home_of(&paths.home, &key)), ..shared.clone() };
    let shown = match &behind {
        Behind::Url(_) => wrap.url.clone().map(|url| vec![url]).unwrap_or_default(),
        Behind::Command(_) => {
            wrap.command.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        }
    };
    wiring::serve(&shared, serving, |host| {
        let settings = settings(&host.file.wrap, serving);
        let config = shared.config.as_deref().and_then(|path| std::path::absolute(path).ok());
        let named = config.map(|config| hears(config, &paths, &host.paths, &host.file.wrap));
        let settings = Settings { named, ..settings };
        let gateway = match behind {
            Behind::Command(command) => {
                Gateway::command(withheld(command, &host.file.http.tokens), settings)
            }
            Behind::Url(remote) => Gateway::remote(remote, settings),
        };
        Ok(Tools::Wrapped(Wrapped { gateway, key, shown: command_line(&shown) }))
    })
}

/// Makes what hears the names of the other server's tools: it keeps them for `config check`, and tells of rules
/// for tools that there are not.
fn hears(config: PathBuf, of_binary: &Paths, own: &Paths, rules: &config::Wrap) -> gateway::Named {
    let (base, home, rules) = (of_binary.home.clone(), own.home.clone(), rules.clone());
    Arc::new(move |tools| {
        let tools = tools.iter().map(|&tool| tool.to_owned()).collect();
        let named = Named { config: config.clone(), tools };
        let (base, home, rules) = (base.clone(), home.clone(), rules.clone());
        // Files are written beside the gateway, and nobody waits for them.
        drop(tokio::task::spawn_blocking(move || {
            if let Err(error) = named.keep(&home) {
                tracing::debug!(%error, "the names of the wrapped server's tools are not kept");
            }
            let mut known = Named::of_config(&base, &named.config);
            known.push(named);
            for what in unknown(&rules, &known) {
                tracing::warn!("{what}");
            }
        }));
    })
}

/// What is behind the gateway.
enum Behind {
    Command(gateway::Command),
    Url(Remote),
}

/// Withholds the variables that hold tokens: who has one is an owner of this server.
fn withheld(command: gateway::Command, tokens: &[(String, TokenFrom)]) -> gateway::Command {
    let variables = tokens.iter().filter_map(|(_, from)| match from {
        TokenFrom::Variable(name) => Some(name),
        TokenFrom::File(_) => None,
    });
    variables.fold(command, gateway::Command::without)
}

/// Names a server by its URL; values of headers come from variables, so that no list of processes shows them.
fn remote(
    url: &str,
    headers: &[String],
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Remote, Failure> {
    let wrong = |error: BadRemote| {
        Failure::usage(
            error.to_string(),
            "correct it: raincheck wrap --url URL --header NAME=VARIABLE",
        )
    };
    let mut remote = Remote::new(url).map_err(wrong)?;
    for header in headers {
        let Some((name, from)) = header.split_once('=') else {
            return Err(Failure::usage(
                "a header names no variable",
                "write --header NAME=VARIABLE; the value of the variable is sent",
            ));
        };
        let Some(value) = variable(from) else {
            return Err(Failure::usage(
                format!("the variable `{from}` of the header `{name}` is not set"),
                format!("set {from} to the whole value, such as `Bearer …`"),
            ));
        };
        remote = remote.header(name, &value).map_err(wrong)?;
    }
    Ok(remote)
}

/// Puts together how the tools are run: as the command line says, else the file, else the gateway itself. What
/// the file says of a tool wins.
fn settings(wrap: &config::Wrap, serving: &Serving) -> Settings {
    let of = Settings::default();
    let lane = lane::Config {
        concurrency: wrap.concurrency.unwrap_or(of.config.concurrency),
        queue_limit: wrap.queue_limit.unwrap_or(of.config.queue_limit),
        ..of.config
    };
    let hidden = wrap.tools.iter().filter(|(_, said)| said.is_hidden);
    let adjust = |(name, said): &(String, config::Wrapped)| -> (String, Adjust) {
        let said = said.clone();
        (name.clone(), Arc::new(move |spec| said.adjust(spec)))
    };
    Settings {
        config: lane,
        wait: serving.wait_s.or(wrap.wait).unwrap_or(of.wait),
        run_timeout: wrap.run_timeout.or(of.run_timeout),
        ready: wrap.ready.unwrap_or(of.ready),
        start: wrap.start.unwrap_or(of.start),
        restarts: wrap.restarts.unwrap_or(of.restarts),
        hidden: hidden.map(|(name, _)| name.clone()).collect(),
        adjust: wrap.tools.iter().map(adjust).collect(),
        ..of
    }
}

/// Names the part of the state folder that belongs to a command in a folder: the same command keeps its
/// tasks, and two different ones never meet.
fn key(command: &[OsString], folder: &Path) -> String {
    let mut hash = Sha256::new();
    for part in command.iter().map(OsString::as_os_str).chain([folder.as_os_str()]) {
        let bytes = part.as_encoded_bytes();
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    }
    let code: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let program = command.first().map(PathBuf::from).unwrap_or_default();
    let name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = name.chars().filter(plain).take(MAX_NAME).collect();
    format!("{name}-{code}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use raincheck::core::content::Json;
    use raincheck::core::tool::ToolSpec;

    use super::*;

    fn of(command: &[&str], folder: &str) -> String {
        key(&command.iter().map(OsString::from).collect::<Vec<_>>(), Path::new(folder))
    }

    #[test]
    fn the_flag_comes_before_the_file_and_a_tool_of_the_file_before_both() {
        // [GATE-11]
        let text = "[wrap]\nwait_s = 3\nconcurrency = 2\n[wrapped.slow]\nwait_s = 1\ntimeout_s = 5\n\
                    [wrapped.rm]\nhidden = true\n";
        let file = config::parse(text, PathBuf::from("/"), config::Overrides::default());
        let wrap = file.expect("a sound file").wrap;
        let flag = |wait_s| Serving { wait_s, ..Serving::default() };
        assert_eq!(settings(&wrap, &flag(None)).wait, Duration::from_secs(3));
        let settings = settings(&wrap, &flag(Some(Duration::from_secs(7))));
        assert_eq!((settings.wait, settings.config.concurrency), (Duration::from_secs(7), 2));
        assert!(settings.hidden.contains("rm"));
        let mut spec = ToolSpec::new("slow", "", Json::empty_object());
        settings.adjust["slow"](&mut spec);
        assert_eq!(spec.wait, Duration::from_secs(1));
        assert_eq!(spec.run_timeout, Some(Duration::from_secs(5)));
    }

    #[test]
    fn the_server_behind_gets_no_token_of_ours() {
        // [GATE-14] [SEC-8]
        let text = "[http.tokens]\nci = { env = \"CI_TOKEN\" }\nbob = { file = \"t\" }\n";
        let file = config::parse(text, PathBuf::from("/"), config::Overrides::default());
        let tokens = file.expect("a sound file").http.tokens;
        assert_eq!(withheld(gateway::Command::new("x"), &tokens).without, ["CI_TOKEN"]);
    }

    #[test]
    fn the_value_of_a_header_comes_from_a_variable_and_is_never_shown() {
        // [GATE-13] [SEC-11]
        let of = |url: &str, header: &str| {
            let variable = |name: &str| (name == "AUTH").then(|| "Bearer s3cr3t".to_owned());
            remote(url, &[header.to_owned()], variable).map_err(|failure| failure.to_string())
        };
        let remote = of("https://host/mcp", "Authorization=AUTH").expect("sound");
        assert!(!format!("{remote:?}").contains("s3cr3t"), "{remote:?}");
        for (url, header, said) in [
            ("ftp://host", "A=AUTH", "http://"),
            ("https://me:pw@host/", "A=AUTH", "password"),
            ("https://host/", "A=OTHER", "`OTHER`"),
            ("https://host/", "A", "names no variable"),
            ("https://host/", "Mcp-Session-Id=AUTH", "protocol's own"),
        ] {
            let failure = of(url, header).expect_err(url);
            assert!(failure.contains(said) && !failure.contains("pw@"), "{failure}");
        }
    }

    #[test]
    fn the_same_command_in_the_same_folder_has_the_same_place() {
        // [GATE-8]
        let one = of(&["/usr/bin/python3.11", "server.py", "a b"], "/project");
        assert_eq!(one, of(&["/usr/bin/python3.11", "server.py", "a b"], "/project"));
        assert!(one.starts_with("python3-") || one.starts_with("python311-"), "{one}");
        for other in [
            of(&["/usr/bin/python3.11", "server.py", "a", "b"], "/project"),
            of(&["/usr/bin/python3.11", "server.py", "a b"], "/other"),
            of(&["python3.11", "server.py", "a b"], "/project"),
        ] {
            assert_ne!(one, other);
        }
        assert!(!of(&["../é x"], "/").contains(['/', '.', ' ']));
    }
}
