//! `raincheck cache`: the cached responses of a server for a person at a terminal, or a script.
//!
//! While a server runs it has the folder to itself and is asked; otherwise the folder is opened here, and
//! the same code answers.

use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use raincheck::Raincheck;
use raincheck::core::time::Timestamp;
use raincheck::mcp::Control;
use raincheck::mcp::layers::cache::CacheLayer;
use raincheck_app::cli::{Serving, Shared};
use raincheck_app::config::Store;
use raincheck_app::paths::Paths;
use raincheck_app::terminal::Palette;
use raincheck_app::{Failure, caching, cli};
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::servers::{self, Kept};
use crate::tasks::owner::{Owner, told};
use crate::tasks::place::Place;
use crate::tasks::wait_for;
use crate::tasks::words::{self, Cell, Table};
use crate::{BINARY, THIS};

/// The tool that reads cached responses.
const TOOL: &str = "fetch_cached_response";

/// How often a server is looked for that has the folder and cannot be reached yet.
const N_ATTEMPTS: u32 = 30;

/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// What to do with cached responses.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum Action {
    /// List cached responses, the one used last first
    List {
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Show one cached response: what is known about it, its outline, or a page of it
    Show {
        /// Its handle
        cache_id: String,
        /// Show this page instead, from 1
        #[arg(long, value_name = "N")]
        page: Option<u64>,
        /// Show this part, a JSON Pointer such as /items/3
        #[arg(long, value_name = "POINTER")]
        path: Option<String>,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Delete cached responses: those that are named, or all
    Clear {
        /// Their handles
        cache_ids: Vec<String>,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Runs one of them.
pub(crate) fn run(
    shared: &Shared,
    serving: &Serving,
    now: Timestamp,
    action: &Action,
) -> Result<(), Failure> {
    wait_for(async {
        let mut keepers = Keeper::all(shared, serving, now).await?;
        match action {
            Action::List { json } => list(&mut keepers, now, *json).await,
            Action::Show { cache_id, page, path, json } => {
                let part = (page.is_some() || path.is_some()).then_some((*page, path.as_deref()));
                show(&mut keepers, cache_id, part, *json).await
            }
            Action::Clear { cache_ids, json } => clear(&mut keepers, cache_ids, *json).await,
        }
    })
}

/// Who answers for the cached responses.
enum Keeper {
    /// The server that runs.
    Server(Owner),
    /// This process, which has the folder for a moment.
    Here { control: Control, scope: String },
}

impl Keeper {
    /// Finds who answers, for each server that flags and configuration lead to; there is one at least.
    async fn all(
        shared: &Shared,
        serving: &Serving,
        now: Timestamp,
    ) -> Result<Vec<(String, Self)>, Failure> {
        let mut keepers = Vec::new();
        for kept in servers::all(shared, serving)? {
            if let Some(keeper) = Self::find(&kept, serving, now).await? {
                keepers.push((kept.name().to_owned(), keeper));
            }
        }
        // Nothing is made where nothing was.
        if keepers.is_empty() {
            return Err(Failure::failed(
                "no server has cached a response here yet",
                "start a server and call a tool with a large answer; if one has run with another state \
                 folder, name it: --state-dir DIR",
            ));
        }
        Ok(keepers)
    }

    async fn find(kept: &Kept, serving: &Serving, now: Timestamp) -> Result<Option<Self>, Failure> {
        let shared = &kept.shared;
        let file = shared.load(&THIS, serving)?;
        let paths = Paths::resolve(BINARY, shared)?;
        let store = shared.store(&file, &paths.home);
        if store == Store::Memory {
            return Err(Failure::usage(
                "responses in the memory of a server are seen by its client only",
                "ask the client to call fetch_cached_response, or serve without --store memory",
            ));
        }
        let options = caching::options(&file, &store).ok_or_else(|| {
            let next = "remove `enabled = false` from [cache]";
            Failure::usage("the configuration turns the cache off", next)
        })?;
        let reach = async || match Place::open(kept, serving, now) {
            Ok(Some(place)) => Owner::reach(&place).await,
            Ok(None) | Err(_) => None,
        };
        if let Some(owner) = reach().await {
            return Ok(Some(Self::Server(owner)));
        }
        if options.folder.as_deref().is_none_or(|folder| !folder.is_dir()) {
            return Ok(None);
        }
        let (engine, _service) = Raincheck::builder().engine();
        let mut left = N_ATTEMPTS;
        let cache = loop {
            let cache = CacheLayer::new(options.clone());
            let Some(why) = cache.open(&engine) else { break cache };
            if left == 0 {
                let message = format!("the cached responses cannot be read here: {why}");
                let next = "end the server that has them, or ask its client";
                return Err(Failure::failed(message, next));
            }
            left -= 1;
            // A server that has just begun listens in a moment.
            sleep(PAUSE).await;
            if let Some(owner) = reach().await {
                return Ok(Some(Self::Server(owner)));
            }
        };
        let control = Control::new(engine, None).with_layers(vec![Arc::new(cache)]);
        Ok(Some(Self::Here { control, scope: shared.scope.clone() }))
    }

    async fn ask(&mut self, arguments: Value) -> Result<Value, Failure> {
        let answer: Value = match self {
            Self::Server(owner) => owner.call(TOOL, arguments).await.map_err(for_a_terminal)?,
            Self::Here { control, scope } => {
                let call = json!({"scope": scope, "tool": TOOL, "arguments": arguments});
                let reply =
                    control.call(call.to_string().as_bytes(), CancellationToken::new()).await;
                if reply.status != 200 {
                    let (message, next) = told(reply.status, reply.body.as_bytes());
                    return Err(for_a_terminal(Failure::failed(message, next)));
                }
                serde_json::from_str(&reply.body).unwrap_or_default()
            }
        };
        Ok(answer.get("data").cloned().unwrap_or_default())
    }

    async fn items(&mut self) -> Result<Vec<Value>, Failure> {
        let list = self.ask(json!({"action": "list"})).await?;
        Ok(list.get("items").and_then(Value::as_array).cloned().unwrap_or_default())
    }

    /// Deletes everything, and returns how much there was.
    async fn clear(&mut self) -> Result<usize, Failure> {
        let mut n_deleted = 0;
        loop {
            // A long list comes in parts.
            let items = self.items().await?;
            let ids = items.iter().filter_map(|item| item.get("cache_id")?.as_str());
            let n_before = n_deleted;
            for id in ids {
                self.ask(json!({"action": "delete", "cache_id": id})).await?;
                n_deleted += 1;
            }
            if n_deleted == n_before {
                return Ok(n_deleted);
            }
        }
    }
}

/// Puts what to do next into words for a terminal: those of the tool are for its callers.
fn for_a_terminal(failure: Failure) -> Failure {
    let is_for_callers = failure.next.contains(TOOL) || failure.next.contains("details.rerun");
    if is_for_callers {
        Failure { next: "list what there is: raincheck cache list".into(), ..failure }
    } else {
        failure
    }
}

async fn list(
    keepers: &mut [(String, Keeper)],
    now: Timestamp,
    is_json: bool,
) -> Result<(), Failure> {
    if let ([(_, keeper)], true) = (&mut *keepers, is_json) {
        return words::json(&keeper.ask(json!({"action": "list"})).await?);
    }
    let is_of_several = keepers.len() > 1;
    let mut all = Vec::new();
    for (server, keeper) in keepers {
        for mut item in keeper.items().await? {
            if let Some(item) = item.as_object_mut().filter(|_| is_of_several) {
                item.insert("server".to_owned(), server.as_str().into());
            }
            all.push(item);
        }
    }
    if is_json {
        return words::json(&json!({ "items": all }));
    }
    if all.is_empty() {
        return cli::print("no cached response\n");
    }
    let headings = ["CACHE ID", "TOOL", "KIB", "AGE", "LEFT", "READS", "SERVER"];
    let n_headings = if is_of_several { headings.len() } else { headings.len() - 1 };
    let mut table = Table::new(headings.get(..n_headings).unwrap_or(&headings));
    for item in &all {
        let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        let at = |name: &str| Timestamp::parse(text(name)).unwrap_or(now);
        let number = |name: &str| item.get(name).map(Value::to_string).unwrap_or_default();
        table.row(vec![
            Cell::plain(words::safe(text("cache_id"))),
            Cell::plain(words::safe(text("tool"))),
            Cell::plain(number("size_kb")),
            Cell::plain(words::span(now.since(at("created_at")))),
            Cell::plain(words::span(at("expires_at").since(now))),
            Cell::plain(number("access_count")),
            Cell::plain(words::safe(text("server"))),
        ]);
    }
    cli::print(&table.text(Palette::detect()))
}

async fn show(
    keepers: &mut [(String, Keeper)],
    id: &str,
    part: Option<(Option<u64>, Option<&str>)>,
    is_json: bool,
) -> Result<(), Failure> {
    let info = json!({"action": "info", "cache_id": id});
    let (keeper, info) = asked(keepers, info).await?;
    let shown = match part {
        Some((page, path)) => {
            let arguments =
                json!({"action": "get_page", "cache_id": id, "page": page, "path": path});
            keeper.ask(arguments).await?
        }
        None => {
            let outline = keeper.ask(json!({"action": "outline", "cache_id": id})).await?;
            json!({"metadata": info.get("metadata"), "outline": outline.get("outline")})
        }
    };
    if is_json {
        return words::json(&shown);
    }
    let text = serde_json::to_string_pretty(&shown).unwrap_or_default();
    cli::print(&(raincheck::core::text::escape_lines(&text).into_owned() + "\n"))
}

/// Asks one after the other until one knows the response, and returns that one with what it said; else what
/// the first one said.
async fn asked(
    keepers: &mut [(String, Keeper)],
    arguments: Value,
) -> Result<(&mut Keeper, Value), Failure> {
    let mut first = None;
    for (_, keeper) in keepers {
        match keeper.ask(arguments.clone()).await {
            Ok(said) => return Ok((keeper, said)),
            Err(failure) => first = first.or(Some(failure)),
        }
    }
    Err(first.unwrap_or_else(|| Failure::failed("there is no cache", "run: raincheck status")))
}

async fn clear(
    keepers: &mut [(String, Keeper)],
    ids: &[String],
    is_json: bool,
) -> Result<(), Failure> {
    let mut n_deleted = 0;
    for id in ids {
        asked(keepers, json!({"action": "delete", "cache_id": id})).await?;
        n_deleted += 1;
    }
    if ids.is_empty() {
        for (_, keeper) in keepers {
            n_deleted += keeper.clear().await?;
        }
    }
    if is_json {
        return words::json(&json!({ "deleted": n_deleted }));
    }
    let noun = if n_deleted == 1 { "response" } else { "responses" };
    cli::print(&format!("{n_deleted} cached {noun} deleted\n"))
}
