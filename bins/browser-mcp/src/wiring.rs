//! The composition: the bridge, its store, the browser's words.

use std::io::IsTerminal as _;
use std::path::Path;

use raincheck::mcp::stdio::Stdout;
use raincheck::mcp::{Dialect, Streams, take_stdout};
use raincheck::runtime::{Clock as _, SystemClock};
use raincheck::{Builder, Raincheck};
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::config::{File, Store};
use raincheck_app::instance::{self, Card, Instance};
use raincheck_app::paths::{Paths, create_private};
use raincheck_app::{Failure, lifecycle, logging, terminal};
use raincheck_browser::{Browser, Listening, Settings};
use raincheck_store_sqlite::{Options, SqliteStore};
use tokio::runtime;
use tokio_util::sync::CancellationToken;

use crate::{BINARY, places};

/// The threads that answer requests and drive the engine.
const N_THREADS: usize = 2;

/// Serves MCP on standard input and output until the client goes or the process is told to end.
pub(crate) fn serve(shared: &Shared, serving: &Serving, port: u16) -> Result<(), Failure> {
    let file = shared.load(serving)?;
    shared.refuse_unbuilt(&file)?;
    let paths = Paths::resolve(BINARY, shared)?;
    paths.create()?;
    let _logging = logging::start(shared)?;
    lifecycle::log_panics();
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
        let server = compose(shared, serving, &file, &paths, port)?;
        serve_until_told(server, stdout).await
    });
    runtime.shutdown_background();
    served
}

/// Puts the parts together; nothing runs yet.
fn compose(
    shared: &Shared,
    serving: &Serving,
    file: &File,
    paths: &Paths,
    port: u16,
) -> Result<Builder, Failure> {
    let store = shared.store(file, &paths.home);
    let mut settings = Settings::default();
    if let Some(wait) = serving.wait_s {
        settings.wait = wait;
    }
    let bridge = Browser::new(settings);
    let listening = Listening::new(places(paths), port);
    let mut server = Raincheck::builder()
        .server_info(BINARY, env!("CARGO_PKG_VERSION"))
        .dialect(Dialect::Browser)
        .scope(&shared.scope)
        .tools(bridge.clone())
        .beside(move |engine, stop| {
            let lanes = bridge.beside(engine.clone(), stop.clone());
            let listener = listening.serve(bridge, engine, stop);
            async move {
                tokio::join!(lanes, listener);
            }
        });
    if let Store::Path(path) = &store {
        make_folder_of(path)?;
        server = server.store(SqliteStore::new(Options::process(path)));
    }
    if serving.structured_content {
        server = server.structured_content();
    }
    for (client, ceiling) in &file.clients {
        server = server.client_ceiling(client, *ceiling);
    }
    let (dir, card, home) =
        (instance::unused(&paths.home), card(shared, &store), paths.home.clone());
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

fn make_folder_of(store: &Path) -> Result<(), Failure> {
    let store = std::path::absolute(store).map_err(|error| failed("find its store", &error))?;
    let folder = store.parent().unwrap_or(Path::new("/"));
    create_private(folder).map_err(|error| failed("make the folder of its store", &error))
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

/// Describes this server for `status` and `doctor`.
fn card(shared: &Shared, store: &Store) -> Card {
    Card {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_at: SystemClock::new().now(),
        scope: shared.scope.clone(),
        store: match store {
            Store::Path(path) => std::path::absolute(path).ok(),
            Store::Memory | Store::Url(_) => None,
        },
        config: shared.config.as_deref().and_then(|path| std::path::absolute(path).ok()),
        tools: ["interact", "observe", "cancel", "configure"].map(str::to_owned).to_vec(),
        lanes: Vec::new(),
    }
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Failure {
    let next = format!("run: {BINARY} doctor");
    Failure::failed(format!("the server cannot {what}: {error}"), next)
}
