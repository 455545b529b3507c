//! The process around a server's session: what every binary does before it serves, and how serving ends.

use std::future::Future;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use raincheck::mcp::Streams;
use raincheck::mcp::stdio::Stdout;
use raincheck::{Builder, HttpConfig};
use tokio::runtime;
use tokio_util::sync::CancellationToken;

use crate::binary::Binary;
use crate::cli::{Serving, Shared};
use crate::config::File;
use crate::failure::Failure;
use crate::instance::{self, Card, Instance};
use crate::logging::{self, Guard};
use crate::paths::Paths;
use crate::standing::Plate;
use crate::{http, lifecycle, terminal};

/// The threads that answer requests and drive the engine; tools are programs or peers of their own.
const N_THREADS: usize = 2;

/// A process that is ready to serve. Logging lasts as long as it.
#[derive(Debug)]
pub struct Host {
    /// What the configuration says.
    pub file: File,
    /// Where things are kept.
    pub paths: Paths,
    /// Why no folder for state could be told, where none could.
    pub unplaced: Option<Failure>,
    /// How it is reached over HTTP, where it is.
    pub http: Option<HttpConfig>,
    _logging: Guard,
}

impl Host {
    /// Reads the configuration, starts logging, and makes the state folder where that can be; where it
    /// cannot, the server says so to its client.
    ///
    /// # Errors
    /// What is wrong with the flags or the configuration.
    pub fn prepare(binary: &Binary, shared: &Shared, serving: &Serving) -> Result<Self, Failure> {
        lifecycle::unblock_signals();
        let file = shared.load(binary, serving)?;
        let (paths, unplaced) = Paths::of_server(binary.name, shared);
        let http = http::read(serving.http, serving.allow_remote, &file, &shared.scope)?;
        let logging = logging::start(shared)?;
        lifecycle::log_panics();
        if let Some(failure) = unplaced.clone().or_else(|| paths.create().err()) {
            tracing::error!("{}; {}", failure.message, failure.next);
        }
        for section in file.idle_sections(binary) {
            tracing::info!(section, "a section of the configuration has no effect on this binary");
        }
        if http.is_none() && std::io::stdin().is_terminal() {
            terminal::complain("waiting for an MCP client on standard input; Ctrl-C ends\n");
        }
        Ok(Self { file, paths, unplaced, http, _logging: logging })
    }
}

/// Serves a server to its client on standard input and output, or over HTTP, until the client goes or
/// `stop` fires.
///
/// # Errors
/// Why it could not be served.
pub async fn serve(
    binary: &Binary,
    host: &Host,
    server: Builder,
    stdout: Stdout,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let served = match host.http.clone() {
        Some(http) => server.serve_http(http, stop).await,
        None => {
            let streams = Streams::standard(stdout);
            let streams = streams.map_err(|error| binary.failed("use the streams", &error))?;
            server.serve(streams, stop).await
        }
    };
    served.map_err(|error| binary.failed("serve", &error))
}

/// Runs a session on threads of its own until it ends. It is given what fires when the process is told
/// to end; one that takes too long after that is cut short.
///
/// # Errors
/// Why the session failed, or could not begin.
pub fn run<F>(
    binary: &Binary,
    host: &Host,
    session: impl FnOnce(CancellationToken) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(N_THREADS)
        .enable_all()
        .build()
        .map_err(|error| binary.failed("start the runtime", &error))?;
    let served = runtime.block_on(until_told(binary, host, session));
    runtime.shutdown_background();
    served
}

async fn until_told<F>(
    binary: &Binary,
    host: &Host,
    session: impl FnOnce(CancellationToken) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    let (stop, is_told) = (CancellationToken::new(), CancellationToken::new());
    // Whoever starts a server on standard input is its client; one that listens outlives who started it.
    let told = lifecycle::until_told((stop.clone(), is_told.clone()), host.http.is_none());
    let told = told.map_err(|error| binary.failed("listen for signals", &error))?;
    let session = async {
        let served = session(stop.clone()).await;
        // Nobody needs to be told any more.
        stop.cancel();
        served
    };
    tokio::select! {
        (served, ()) = async { tokio::join!(session, told) } => served,
        () = lifecycle::out_of_time(stop.clone(), is_told) => {
            tracing::warn!("the end took too long and was cut short");
            Ok(())
        }
    }
}

/// Makes what removes the leftovers of killed servers and opens this server's folder, once it starts.
/// `plate` shows there who owns what the server shares.
pub fn opening(
    home: PathBuf,
    dir: PathBuf,
    card: Card,
    plate: Plate,
) -> impl FnOnce() -> Option<Instance> {
    move || {
        let n_swept = instance::sweep(&home);
        if n_swept > 0 {
            tracing::info!(n_swept, "removed what killed servers left behind");
        }
        Instance::open(&dir, &card)
            .inspect_err(|failure| tracing::error!("{}; {}", failure.message, failure.next))
            .inspect(|instance| plate.hang(instance.dir()))
            .ok()
    }
}
