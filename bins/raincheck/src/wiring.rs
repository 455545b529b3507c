//! The composition: which tool set, which store, which surface.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use raincheck::core::ids::LaneId;
use raincheck::core::lane;
use raincheck::mcp::stdio::Stdout;
use raincheck::mcp::{Streams, take_stdout};
use raincheck::process::{CommandTool, Commands, EnvRule};
use raincheck::runtime::{Clock as _, FileLogs, SystemClock};
use raincheck::{Builder, LoopbackConfig, Raincheck};
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::config::{Env, File, Store, Tool};
use raincheck_app::instance::{self, Card, Instance, LaneCard};
use raincheck_app::paths::Paths;
use raincheck_app::placed::{PlacedStore, create_folder_of};
use raincheck_app::{Failure, lifecycle, logging, terminal};
use raincheck_store_sqlite::{Options, SqliteStore};
use tokio::runtime;
use tokio_util::sync::CancellationToken;

use crate::{BINARY, THIS};

/// The threads that answer requests and drive the engine; tools are processes of their own.
const N_THREADS: usize = 2;

/// Serves MCP on standard input and output until the client goes or the process is told to end.
pub(crate) fn serve(shared: &Shared, serving: &Serving) -> Result<(), Failure> {
    lifecycle::unblock_signals();
    let file = shared.load(&THIS, serving)?;
    let (paths, unplaced) = Paths::of_server(BINARY, shared);
    let _logging = logging::start(shared)?;
    lifecycle::log_panics();
    if let Some(failure) = unplaced.clone().or_else(|| paths.create().err()) {
        tracing::error!("{}; {}", failure.message, failure.next);
    }
    for section in file.idle_sections(&THIS) {
        tracing::info!(section, "a section of the configuration has no effect on this binary");
    }
    if file.tools.is_empty() {
        tracing::warn!("{}", without_tools(shared));
    }
    if std::io::stdin().is_terminal() {
        terminal::complain("waiting for an MCP client on standard input; Ctrl-C ends\n");
    }
    let stdout = take_stdout().map_err(|error| failed("take standard output", &error))?;
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(N_THREADS)
        .enable_all()
        .build()
        .map_err(|error| failed("start the runtime", &error))?;
    let served = runtime.block_on(async {
        let server = compose(shared, serving, file, (&paths, unplaced))?;
        serve_until_told(server, stdout).await
    });
    runtime.shutdown_background();
    served
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
    file: File,
    (paths, unplaced): (&Paths, Option<Failure>),
) -> Result<Builder, Failure> {
    let dir = instance::unused(&paths.home);
    let store = shared.store(&file, &paths.home);
    let tasks = match &store {
        Store::Path(path) => beside(path)?,
        Store::Memory => dir.join("tasks"),
    };
    let card = card(shared, &file, &store);
    let tools = file.tools.into_iter().map(|tool| command_tool(tool, &file.folder)).collect();
    let commands = Commands::new(&tasks, tools)
        .map_err(|error| failed("place tasks", &error))?
        .supervised_by(raincheck::supervisor());
    let mut server = Raincheck::builder()
        .server_info(BINARY, env!("CARGO_PKG_VERSION"))
        .scope(&shared.scope)
        .tools(commands)
        .logs(FileLogs::new(tasks));
    let mut listening = LoopbackConfig::new().control_api(paths.endpoints());
    if let Store::Path(path) = store {
        let store = SqliteStore::new(Options::full(&path));
        server = match create_folder_of(&path) {
            Ok(()) => server.store(store),
            Err(_) => server.store(PlacedStore::in_file(store, path, unplaced)),
        };
        listening = listening.persist_in(paths.home.join("http"));
    }
    server = server.listening(listening);
    if serving.structured_content {
        server = server.structured_content();
    }
    for (lane, config) in file.lanes {
        server = server.lane(lane, config);
    }
    for (client, timeout) in &file.clients {
        server = server.client_timeout(client, *timeout);
    }
    let home = paths.home.clone();
    Ok(server.before_start(move || {
        let n_swept = instance::sweep(&home);
        if n_swept > 0 {
            tracing::info!(n_swept, "removed what killed servers left behind");
        }
        Instance::open(&dir, &card)
            .inspect_err(|failure| tracing::error!("{}; {}", failure.message, failure.next))
            .ok()
    }))
}

/// Names the folder beside a store where its tasks have their files.
fn beside(store: &Path) -> Result<PathBuf, Failure> {
    let store = std::path::absolute(store).map_err(|error| failed("find its store", &error))?;
    Ok(store.parent().unwrap_or(Path::new("/")).join("tasks"))
}

async fn serve_until_told(server: Builder, stdout: Stdout) -> Result<(), Failure> {
    let streams = Streams::standard(stdout).map_err(|error| failed("use the streams", &error))?;
    let stop = CancellationToken::new();
    let told = lifecycle::until_told(stop.clone()).map_err(|error| failed("listen", &error))?;
    let session = server.serve(streams, stop.clone());
    tokio::select! {
        (served, ()) = async { tokio::join!(session, told) } => {
            served.map_err(|error| failed("serve", &error))
        }
        () = lifecycle::out_of_time(stop) => {
            tracing::warn!("the end took too long and was cut short");
            Ok(())
        }
    }
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
fn card(shared: &Shared, file: &File, store: &Store) -> Card {
    let lane = |(id, config): &(LaneId, lane::Config)| LaneCard {
        name: id.to_string(),
        concurrency: config.concurrency,
        queue_limit: config.queue_limit,
    };
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
        tools: file.tools.iter().map(|tool| tool.spec.name.to_string()).collect(),
        lanes: file.lanes.iter().map(lane).collect(),
    }
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Failure {
    let next = format!("run: {BINARY} doctor");
    Failure::failed(format!("the server cannot {what}: {error}"), next)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    // [HOST-3]
    #[test]
    fn the_last_calls_and_the_end_of_the_server_fit_into_two_seconds() {
        let most = raincheck::mcp::stdio::DRAIN + raincheck_app::lifecycle::END_BUDGET;
        assert!(most < Duration::from_secs(2), "{most:?}");
    }
}
