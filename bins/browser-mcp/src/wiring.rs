//! The composition: the bridge, its store, the browser's words.

use std::path::PathBuf;

use raincheck::mcp::surfaces::browser::Browser as Words;
use raincheck::mcp::take_stdout;
use raincheck::runtime::{Clock as _, SystemClock};
use raincheck::{Builder, LoopbackConfig, Raincheck, Sharing};
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::config::{File, Limits, Store};
use raincheck_app::host::{self, Host};
use raincheck_app::instance::{self, Card};
use raincheck_app::paths::Paths;
use raincheck_app::placed::{PlacedStore, create_folder_of};
use raincheck_app::standing::Plate;
use raincheck_app::{Failure, caching};
use raincheck_browser::{BridgeListener, Browser, Settings, Shows};
use raincheck_store_sqlite::{Options, SqliteStore};

use crate::bridge::Bridge;
use crate::{BINARY, THIS, places};

/// Serves MCP on standard input and output, or over HTTP, until the client goes or the process is told
/// to end.
pub(crate) fn serve(
    shared: &Shared,
    serving: &Serving,
    port: u16,
    limits: &Limits,
) -> Result<(), Failure> {
    let host = Host::prepare(&THIS, shared, serving)?;
    let stdout = take_stdout().map_err(|error| THIS.failed("take standard output", &error))?;
    if serving.wait_s.is_some() && limits.span("default_wait_ms").is_some() {
        tracing::warn!("--wait-s has no effect: --default-wait-ms, or its variable, comes first");
    }
    host::run(&THIS, &host, async |stop| {
        let server = compose(shared, serving, &host, (port, limits));
        host::serve(&THIS, &host, server, stdout, stop).await
    })
}

/// Puts the parts together; nothing runs yet.
fn compose(
    shared: &Shared,
    serving: &Serving,
    Host { file, paths, unplaced, http, .. }: &Host,
    (port, limits): (u16, &Limits),
) -> Builder {
    let store = shared.store(file, &paths.home);
    let bridge = Browser::new(Settings {
        files_dir: files_dir(limits, file),
        typed_dir: matches!(store, Store::Path(_)).then(|| paths.home.join("typed")),
        ..settings(serving, limits, &file.browser)
    });
    let listening = BridgeListener::new(places(paths), port);
    let plate = Plate::default();
    let shown = plate.clone();
    let mut server = Raincheck::builder()
        .server_info(BINARY, env!("CARGO_PKG_VERSION"))
        .surface(Words::new(Bridge(bridge.clone())))
        .scope(&shared.scope)
        .sharing(sharing(paths, &bridge).telling(move |standing| shown.show(*standing)))
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
        let store = SqliteStore::new(Options::process(path));
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
    let (dir, card, home) =
        (instance::unused(&paths.home), card(shared, &store), paths.home.clone());
    server.before_start(host::opening(home, dir, card, plate))
}

/// Shares the browser, and the tasks of whoever owns it, with every server of the same state folder.
fn sharing(paths: &Paths, bridge: &Browser) -> Sharing {
    let bridge = bridge.clone();
    Sharing::in_place(paths.home.join("owner")).naming(move |process| bridge.is_called(process))
}

/// Makes the bridge's settings: a limit's own flag comes first, then `--wait-s`, then the file.
fn settings(serving: &Serving, flags: &Limits, file: &Limits) -> Settings {
    let limits = flags.clone().over(file);
    let mut settings = Settings::default();
    let Settings {
        wait,
        accept,
        run_timeout,
        max_run,
        queue_timeout,
        result_ttl,
        queue_limit,
        grace,
        reconnect_grace,
        linger,
        max_body,
        ring,
        ..
    } = &mut settings;
    for (name, place) in [
        ("default_wait_ms", &mut *wait),
        ("accept_ms", accept),
        ("run_ms", &mut *run_timeout),
        ("max_run_ms", &mut *max_run),
        ("queue_timeout_s", queue_timeout),
        ("result_ttl_s", result_ttl),
        ("cancel_grace_s", grace),
        ("reconnect_grace_s", reconnect_grace),
        ("linger_ms", linger),
    ] {
        limits.span(name).into_iter().for_each(|span| *place = span);
    }
    let wait_s = serving.wait_s.filter(|_| flags.span("default_wait_ms").is_none());
    wait_s.into_iter().for_each(|span| *wait = span);
    // What is run without a word may be asked for, too.
    *max_run = (*max_run).max(*run_timeout);
    let whole = |name| limits.whole(name).and_then(|number| usize::try_from(number).ok());
    whole("ring").into_iter().for_each(|most| *ring = most);
    whole("max_body_mb").into_iter().for_each(|mib| *max_body = mib << 20);
    let limit = limits.whole("queue_limit").and_then(|number| u32::try_from(number).ok());
    limit.into_iter().for_each(|most| *queue_limit = most);
    settings.shows = Shows {
        credentials: limits.allows("show_credentials"),
        storage: limits.allows("show_storage"),
        cookies: limits.allows("show_cookies"),
    };
    settings
}

/// Returns the folder for files: that of the flag, or that of the file, relative to where the file is.
fn files_dir(flags: &Limits, file: &File) -> Option<PathBuf> {
    let named = |limits: &Limits| limits.text("files_dir").map(PathBuf::from);
    let folder = named(flags).or_else(|| Some(file.folder.join(named(&file.browser)?)))?;
    // Only a folder that there is no way to has no whole path; it is refused where it is used.
    Some(std::path::absolute(&folder).unwrap_or(folder))
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
            Store::Memory => None,
        },
        config: shared.config.as_deref().and_then(|path| std::path::absolute(path).ok()),
        tools: ["interact", "observe", "cancel", "configure"].map(str::to_owned).to_vec(),
        lanes: Vec::new(),
        wraps: None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use raincheck_app::config::{Overrides, parse};

    use super::*;

    fn limits(section: &str) -> Limits {
        let text = format!("[browser]\n{section}\n");
        let file = parse(&text, PathBuf::from("."), Overrides::default());
        file.unwrap_or_else(|problems| panic!("{}", problems.render("raincheck.toml", &text)))
            .browser
    }

    #[test]
    fn every_limit_of_the_file_reaches_the_bridge() {
        // [TIME-4, BROWSER-4]
        let schema = raincheck_app::config::schema();
        let keys = schema["properties"]["browser"]["properties"].as_object().expect("keys");
        assert_eq!(keys.len(), 16);
        for name in keys.keys().filter(|name| *name != "files_dir") {
            let value = if name.starts_with("show_") { "true" } else { "777" };
            let file = limits(&format!("{name} = {value}"));
            let settings = settings(&Serving::default(), &Limits::default(), &file);
            assert_ne!(settings, Settings::default(), "{name}");
        }
    }

    #[test]
    fn the_folder_for_files_is_the_flag_s_or_begins_where_the_file_is() {
        // [BROWSER-4, BROWSER-40]
        let text = "[browser]\nfiles_dir = \"agent\"\n";
        let folder = std::path::absolute("somewhere").expect("a path");
        let file = parse(text, folder.clone(), Overrides::default());
        let file = file.unwrap_or_else(|problems| panic!("{}", problems.render("f", text)));
        assert_eq!(files_dir(&Limits::default(), &file), Some(folder.join("agent")));
        let flag = limits("files_dir = \"other\"");
        assert_eq!(files_dir(&flag, &file), std::path::absolute("other").ok());
        let none = parse("", folder, Overrides::default()).unwrap_or_else(|_| panic!("no file"));
        assert_eq!(files_dir(&Limits::default(), &none), None);
    }

    #[test]
    fn a_flag_comes_before_the_wait_of_all_tools_and_that_before_the_file() {
        let (none, file) = (Limits::default(), limits("default_wait_ms = 1000"));
        let serving = Serving { wait_s: Some(Duration::from_secs(5)), ..Serving::default() };
        let flag = limits("default_wait_ms = 0");
        let wait = |serving: &Serving, flags: &Limits| settings(serving, flags, &file).wait;
        assert_eq!(wait(&Serving::default(), &none), Duration::from_secs(1));
        assert_eq!(wait(&serving, &none), Duration::from_secs(5));
        assert_eq!(wait(&serving, &flag), Duration::ZERO);
    }

    #[test]
    fn a_long_run_by_default_may_be_asked_for_too() {
        let file = limits("run_ms = 900000");
        let settings = settings(&Serving::default(), &Limits::default(), &file);
        assert_eq!(settings.max_run, Duration::from_secs(900));
    }
}
