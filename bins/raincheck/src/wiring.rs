//! The composition: which tool set, which store, which surface.

use std::path::{Path, PathBuf};

use raincheck::core::ids::LaneId;
use raincheck::core::lane;
use raincheck::mcp::gateway::Gateway;
use raincheck::mcp::take_stdout;
use raincheck::process::{CommandTool, Commands, EnvRule};
use raincheck::runtime::{Clock as _, FileLogs, SystemClock, ToolSet as _};
use raincheck::{Builder, LoopbackConfig, Raincheck, Sharing};
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::config::{Env, File, Store, Tool};
use raincheck_app::host::{self, Host};
use raincheck_app::instance::{self, Card, LaneCard};
use raincheck_app::placed::{PlacedStore, create_folder_of};
use raincheck_app::standing::Plate;
use raincheck_app::{Failure, caching};
use raincheck_store_sqlite::{Options, SqliteStore, is_alone};

use crate::{BINARY, THIS};

/// Which tools are served.
pub(crate) enum Tools {
    /// The programs that the configuration names.
    Programs,
    /// Those of another MCP server.
    Wrapped(Wrapped),
}

/// Another MCP server.
pub(crate) struct Wrapped {
    /// What reaches it.
    pub(crate) gateway: Gateway,
    /// A text that is the same for the same command in the same folder.
    pub(crate) key: String,
    /// What starts it, as it may be shown.
    pub(crate) shown: String,
}

/// Serves MCP on standard input and output, or over HTTP, until the client goes or the process is told
/// to end.
pub(crate) fn serve(
    shared: &Shared,
    serving: &Serving,
    tools: impl FnOnce(&Host) -> Result<Tools, Failure>,
) -> Result<(), Failure> {
    let host = Host::prepare(&THIS, shared, serving)?;
    let tools = tools(&host)?;
    if matches!(tools, Tools::Programs) && host.file.tools.is_empty() {
        tracing::warn!("{}", without_tools(shared));
    }
    let stdout = take_stdout().map_err(|error| THIS.failed("take standard output", &error))?;
    host::run(&THIS, &host, async |stop| {
        let server = compose(shared, serving, &host, tools)?;
        host::serve(&THIS, &host, server, stdout, stop).await
    })
}

/// Says why a server has no tools of its own, and what to do.
fn without_tools(shared: &Shared) -> String {
    match &shared.config {
        None => {
            "no configuration file is named, so there are no tools but the task tools; name one: \
                 --config raincheck.toml (or RAINCHECK_CONFIG)"
                .to_owned()
        }
        Some(path) => format!(
            "{} has no tools, so there are none but the task tools; add a section [tools.NAME]",
            path.display()
        ),
    }
}

/// Puts the parts together; nothing runs yet.
fn compose(
    shared: &Shared,
    serving: &Serving,
    host: &Host,
    tools: Tools,
) -> Result<Builder, Failure> {
    let Host { file, paths, unplaced, .. } = host;
    let file = file.clone();
    let dir = instance::unused(&paths.home);
    let store = shared.store(&file, &paths.home);
    let tasks = match &store {
        Store::Path(path) => beside(path)?,
        Store::Memory => dir.join("tasks"),
    };
    let card = card(shared, &file, &store, &tools);
    let caching = caching::options(&file, &store);
    let settings = settings(&file, &tools);
    let mut server = Raincheck::builder()
        .server_info(BINARY, env!("CARGO_PKG_VERSION"))
        .scope(&shared.scope)
        .logs(FileLogs::new(&tasks));
    server = match tools {
        Tools::Programs => server.tools(programs(file.tools, &file.folder, &tasks, &store)?),
        Tools::Wrapped(wrapped) => server.gateway(wrapped.gateway),
    };
    let plate = Plate::default();
    let mut listening = LoopbackConfig::new().control_api(paths.endpoints());
    if let Store::Path(path) = store {
        // The name of a store is that of its folder, with links resolved: it has to be there.
        let created = create_folder_of(&path);
        let shown = plate.clone();
        server = server.sharing(
            Sharing::in_place(owner_of(&path))
                .with_settings(settings)
                .telling(move |standing| shown.show(*standing)),
        );
        let store = SqliteStore::new(Options::full(&path));
        server = match created {
            Ok(()) => server.store(store),
            Err(_) => server.store(PlacedStore::in_file(store, path, unplaced.clone())),
        };
        listening = listening.persist_in(paths.home.join("http"));
    }
    server = server.listening(listening);
    if let Some(caching) = caching {
        server = server.cache(caching);
    }
    if serving.structured_content {
        server = server.structured_content();
    }
    for (lane, config) in file.lanes {
        server = server.lane(lane, config);
    }
    for (client, takes) in &file.clients {
        if let Some(timeout) = takes.timeout {
            server = server.client_timeout(client, timeout);
        }
    }
    let home = paths.home.clone();
    Ok(server.before_start(host::opening(home, dir, card, plate)))
}

/// Makes tools of the programs that the configuration names.
fn programs(
    tools: Vec<Tool>,
    folder: &Path,
    tasks: &Path,
    store: &Store,
) -> Result<Commands, Failure> {
    let tools = tools.into_iter().map(|tool| command_tool(tool, folder)).collect();
    let commands = Commands::new(tasks, tools)
        .map_err(|error| THIS.failed("place tasks", &error))?
        .supervised_by(raincheck::supervisor());
    Ok(match store {
        Store::Path(path) => {
            let path = path.clone();
            commands.clearing_leftovers(move || is_alone(&path))
        }
        Store::Memory => commands,
    })
}

/// Says what two processes must have in common to share a store [ATTACH-4]: the tools, whose they are, and
/// how they are run.
fn settings(file: &File, tools: &Tools) -> String {
    let File { folder, tools: programs, lanes, cache, wrap, .. } = file;
    let wrapped = match tools {
        Tools::Programs => None,
        Tools::Wrapped(wrapped) => Some((&wrapped.key, wrap)),
    };
    format!("{folder:?} {programs:?} {lanes:?} {cache:?} {wrapped:?}")
}

/// Names the folder beside a store where its tasks have their files.
fn beside(store: &Path) -> Result<PathBuf, Failure> {
    let store =
        std::path::absolute(store).map_err(|error| THIS.failed("find its store", &error))?;
    Ok(store.parent().unwrap_or(Path::new("/")).join("tasks"))
}

/// Names the folder beside a store in which it is decided who owns it.
fn owner_of(store: &Path) -> PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(".owner");
    store.with_file_name(name)
}

fn command_tool(tool: Tool, folder: &Path) -> CommandTool {
    let Tool { spec, command, env, log_quota, grace } = tool;
    let environment = match env {
        None => EnvRule::Default,
        Some(Env::Inherit(names)) => EnvRule::Inherit(names),
        Some(Env::Fixed(values)) => EnvRule::Fixed(values),
    };
    CommandTool { environment, log_quota, grace, ..CommandTool::new(spec, command, folder) }
}

/// Describes this server for `status` and `doctor`.
fn card(shared: &Shared, file: &File, store: &Store, tools: &Tools) -> Card {
    let lane = |(id, config): &(LaneId, lane::Config)| LaneCard {
        name: id.to_string(),
        concurrency: config.concurrency,
        queue_limit: config.queue_limit,
    };
    let wrapped = match tools {
        Tools::Programs => None,
        Tools::Wrapped(wrapped) => Some(wrapped),
    };
    let of_wrapped = wrapped.map(|wrapped| wrapped.gateway.lanes()).unwrap_or_default();
    let own = wrapped.is_none().then_some(&file.tools).into_iter().flatten();
    Card {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_at: SystemClock::new().now(),
        scope: shared.scope.clone(),
        store: match store {
            Store::Path(path) => std::path::absolute(path).ok(),
            Store::Memory => None,
        },
        config: shared.config.as_deref().and_then(|path| std::path::absolute(path).ok()),
        tools: own.map(|tool| tool.spec.name.to_string()).collect(),
        lanes: of_wrapped.iter().chain(&file.lanes).map(lane).collect(),
        wraps: wrapped.map(|wrapped| wrapped.shown.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;
    use std::time::Duration;

    use raincheck::mcp::gateway::{Command, Gateway, Settings};
    use raincheck_app::config;

    use super::{Tools, Wrapped, settings};

    #[test]
    fn only_processes_that_wrap_the_same_command_with_the_same_rules_share() {
        // [ATTACH-4]
        let of = |key: &str, text: &str| {
            let file = config::parse(text, PathBuf::from("/"), config::Overrides::default());
            let (program, arguments) = (OsString::from("server"), Vec::new());
            let command = Command { program, arguments, folder: None, without: Vec::new() };
            let gateway = Gateway::command(command, Settings::default());
            let wrapped = Wrapped { gateway, key: key.to_owned(), shown: String::new() };
            settings(&file.expect("a sound file"), &Tools::Wrapped(wrapped))
        };
        let one = of("a", "[wrap]\nconcurrency = 2\n[wrapped.rm]\nhidden = true\n");
        assert_eq!(one, of("a", "[wrap]\nconcurrency = 2\n[wrapped.rm]\nhidden = true\n"));
        for (key, text) in [
            ("a", ""),
            ("a", "[wrap]\nconcurrency = 2\n"),
            ("a", "[wrap]\nconcurrency = 2\n[wrapped.rm]\nidempotent = true\nhidden = true\n"),
            ("b", "[wrap]\nconcurrency = 2\n[wrapped.rm]\nhidden = true\n"),
        ] {
            assert_ne!(one, of(key, text), "{key} {text}");
        }
    }

    // [HOST-3]
    #[test]
    fn the_last_calls_and_the_end_of_the_server_fit_into_two_seconds() {
        let most = raincheck::mcp::stdio::DRAIN + raincheck_app::lifecycle::END_BUDGET;
        assert!(most < Duration::from_secs(2), "{most:?}");
    }
}
