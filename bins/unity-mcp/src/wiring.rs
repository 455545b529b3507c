//! The composition: the bridge, its store, the words of operations.

use raincheck::mcp::surfaces::operations::Operations;
use raincheck::mcp::take_stdout;
use raincheck::runtime::{Clock as _, SystemClock};
use raincheck::{Builder, LoopbackConfig, Raincheck, Sharing};
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::config::{Limits, Store};
use raincheck_app::host::{self, Host};
use raincheck_app::instance::{self, Card};
use raincheck_app::placed::{PlacedStore, create_folder_of};
use raincheck_app::standing::Plate;
use raincheck_app::{Failure, caching};
use raincheck_store_sqlite::{Options, SqliteStore};
use raincheck_unity::{Settings, Unity, UnityListener};

use crate::place::Place;
use crate::words::Words;
use crate::{BINARY, THIS, UnityFlags};

/// Serves MCP on standard input and output, or over HTTP, until the client goes or the process is told
/// to end.
pub(crate) fn serve(
    shared: &Shared,
    serving: &Serving,
    place: &Place,
    unity: &UnityFlags,
    limits: &Limits,
) -> Result<(), Failure> {
    let host = Host::prepare(&THIS, shared, serving)?;
    let stdout = take_stdout().map_err(|error| THIS.failed("take standard output", &error))?;
    if serving.wait_s.is_some() && limits.span("default_timeout_s").is_some() {
        tracing::warn!("--wait-s has no effect: --default-timeout-s, or its variable, comes first");
    }
    host::run(&THIS, &host, async |stop| {
        let server = compose(shared, serving, &host, (place, unity, limits));
        host::serve(&THIS, &host, server, stdout, stop).await
    })
}

/// Puts the parts together; nothing runs yet.
fn compose(
    shared: &Shared,
    serving: &Serving,
    Host { file, paths, unplaced, http, .. }: &Host,
    (place, unity, limits): (&Place, &UnityFlags, &Limits),
) -> Builder {
    let store = shared.store(file, &paths.home);
    let settings = Settings {
        project: place.project.as_ref().map(|project| project.root().to_owned()),
        takes_coplay: unity.coplay.is_some(),
        enable_execute_code: unity.enable_execute_code,
        choices: Some(paths.home.join("owner").join("choices.json")),
        ..settings(serving, limits, &file.unity)
    };
    let tools: Vec<String> = raincheck_unity::tools(&settings)
        .iter()
        .map(|tool| tool.spec.name.as_str().to_owned())
        .collect();
    let plate = Plate::default();
    let shown = plate.clone();
    // The editors, and the tasks of whoever has them. What one server allows the others do not get.
    let sharing = Sharing::in_place(paths.home.join("owner"))
        .with_settings((&settings.project, settings.enable_execute_code, unity.coplay))
        .telling(move |standing| shown.show(*standing));
    let bridge = Unity::new(settings.clone());
    let words = Words::of(bridge.clone(), &settings);
    let mut listening = UnityListener::new(place.places(paths), unity.port);
    if let Some(port) = unity.coplay {
        listening = listening.with_coplay(port);
    }
    let mut server = Raincheck::builder()
        .server_info(BINARY, env!("CARGO_PKG_VERSION"))
        .surface(Operations::new(words))
        .scope(&shared.scope)
        .sharing(sharing)
        .tools(bridge.clone())
        .beside(move |engine, stop| {
            let lanes = bridge.beside(engine.clone(), stop.clone());
            let listener = listening.serve(bridge, engine, stop);
            async move {
                tokio::join!(lanes, listener);
            }
        });
    if http.is_some() {
        server = server.listening(LoopbackConfig::new().announced_in(paths.endpoints()));
    }
    if let Store::Path(path) = &store {
        let store = SqliteStore::new(Options::full(path));
        server = match create_folder_of(path) {
            Ok(()) => server.store(store),
            Err(_) => server.store(PlacedStore::in_file(store, path.clone(), unplaced.clone())),
        };
    }
    if let Some(caching) = caching::options(file, &store) {
        server = server.cache(caching);
    }
    if serving.structured_content {
        server = server.structured_content();
    }
    for (client, takes) in &file.clients {
        if let Some(timeout) = takes.timeout {
            server = server.client_timeout(client, timeout);
        }
    }
    let dir = instance::unused(&paths.home);
    let card = card(shared, &store, tools);
    server.before_start(host::opening(paths.home.clone(), dir, card, plate))
}

/// Makes the bridge's settings: a limit's own flag comes first, then `--wait-s`, then the file.
fn settings(serving: &Serving, flags: &Limits, file: &Limits) -> Settings {
    let limits = flags.clone().over(file);
    let mut settings = Settings::default();
    for (name, place) in [
        ("default_timeout_s", &mut settings.wait),
        ("accept_s", &mut settings.accept),
        ("ready_s", &mut settings.ready),
        ("ready_compiling_s", &mut settings.ready_compiling),
        ("reconnect_grace_s", &mut settings.reconnect_grace),
        ("reconnect_grace_compiling_s", &mut settings.reconnect_grace_compiling),
        ("silence_s", &mut settings.silence),
        ("queue_timeout_s", &mut settings.queue_timeout),
        ("retention_s", &mut settings.retention),
        ("sync_timeout_s", &mut settings.sync_timeout),
        ("job_timeout_s", &mut settings.job_timeout),
    ] {
        limits.span(name).into_iter().for_each(|span| *place = span);
    }
    let wait_s = serving.wait_s.filter(|_| flags.span("default_timeout_s").is_none());
    wait_s.into_iter().for_each(|span| settings.wait = span);
    // What is run without a word is never more than the most.
    settings.max_sync_timeout = settings.max_sync_timeout.max(settings.sync_timeout);
    settings.max_job_timeout = settings.max_job_timeout.max(settings.job_timeout);
    let limit = limits.whole("queue_limit").and_then(|number| u32::try_from(number).ok());
    limit.into_iter().for_each(|most| settings.queue_limit = most);
    let most = limits.whole("max_result_mb").and_then(|number| usize::try_from(number).ok());
    most.into_iter().for_each(|mib| settings.max_chunked = mib << 20);
    settings
}

/// Describes this server for `status` and `doctor`.
fn card(shared: &Shared, store: &Store, tools: Vec<String>) -> Card {
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
        tools,
        lanes: Vec::new(),
        wraps: None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use raincheck_app::config::{Overrides, parse};

    use super::*;

    fn limits(section: &str) -> Limits {
        let text = format!("[unity]\n{section}\n");
        let file = parse(&text, PathBuf::from("."), Overrides::default());
        file.unwrap_or_else(|problems| panic!("{}", problems.render("raincheck.toml", &text))).unity
    }

    #[test]
    fn every_limit_of_the_file_reaches_the_bridge() {
        // [OPS-9]
        let schema = raincheck_app::config::schema();
        let keys = schema["properties"]["unity"]["properties"].as_object().expect("keys");
        assert_eq!(keys.len(), 13);
        for name in keys.keys() {
            let file = limits(&format!("{name} = 17"));
            let settings = settings(&Serving::default(), &Limits::default(), &file);
            assert_ne!(settings, Settings::default(), "{name}");
        }
    }

    #[test]
    fn a_flag_comes_before_the_wait_of_all_tools_and_that_before_the_file() {
        let (none, file) = (Limits::default(), limits("default_timeout_s = 2"));
        let serving = Serving { wait_s: Some(Duration::from_secs(5)), ..Serving::default() };
        let flag = limits("default_timeout_s = 0");
        let wait = |serving: &Serving, flags: &Limits| settings(serving, flags, &file).wait;
        assert_eq!(wait(&Serving::default(), &none), Duration::from_secs(2));
        assert_eq!(wait(&serving, &none), Duration::from_secs(5));
        assert_eq!(wait(&serving, &flag), Duration::ZERO);
    }
}
