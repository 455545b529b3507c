//! What the other server names: its tools, and how they are listed here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use raincheck_core::cancel::{OnDisconnect, OnExit};
use raincheck_core::content::Json;
use raincheck_core::text;
use raincheck_core::tool::{Hints, ToolSpec};

use super::link::{Failure, Link};
use super::settings::Settings;

/// How many pages and tools are taken.
const MAX_PAGES: usize = 1000;
const MAX_TOOLS: usize = 10_000;

/// How many bytes of pages are taken.
const MAX_BYTES: usize = 16 << 20;

/// The longest name of a tool, in bytes.
const MAX_NAME: usize = 128;

/// The tools of the other server.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    /// How they are listed, in the order of the other server.
    pub(super) specs: Vec<ToolSpec>,
    /// What the other server calls them, by how they are listed.
    pub(super) names: BTreeMap<String, Arc<str>>,
    /// What the other server calls all of its tools, those that are left out too.
    pub(super) theirs: BTreeSet<String>,
}

impl Listing {
    /// Tells whether two listings say the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let said = |spec: &ToolSpec| {
            let texts = (spec.name.clone(), spec.title.clone(), spec.description.clone());
            (texts, spec.input_schema.clone(), spec.hints, spec.meta.clone())
        };
        let names = |listing: &Self| (listing.names.clone(), listing.theirs.clone());
        names(self) == names(other) && self.specs.iter().map(said).eq(other.specs.iter().map(said))
    }
}

/// One page of a list.
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    tools: Vec<Json>,
    #[serde(default, rename = "nextCursor")]
    next_cursor: Option<String>,
}

/// Asks for a page.
#[derive(Serialize)]
struct Asked<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

/// A tool as the other server describes it. Its output schema is not taken: a call may be answered with a
/// task id, or with a handle of what is too large, and would break it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Described {
    name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    input_schema: Option<Json>,
    #[serde(default)]
    annotations: Option<Annotations>,
    #[serde(default, rename = "_meta")]
    meta: Option<Json>,
}

/// What the other server says of a tool's manner.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Annotations {
    title: Option<String>,
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    open_world_hint: Option<bool>,
}

impl Annotations {
    /// Takes the protocol's own defaults for what is not said.
    fn hints(&self) -> Hints {
        Hints {
            read_only: self.read_only_hint.unwrap_or(false),
            destructive: self.destructive_hint.unwrap_or(true),
            idempotent: self.idempotent_hint.unwrap_or(false),
            open_world: self.open_world_hint.unwrap_or(true),
        }
    }
}

/// Asks for all pages of the list of tools.
pub(super) async fn ask(link: &Arc<Link>, settings: &Settings) -> Result<Listing, Failure> {
    let mut described = Vec::new();
    let mut cursor: Option<String> = None;
    let mut n_bytes = 0;
    for _ in 0..MAX_PAGES {
        let asked = Asked { cursor: cursor.as_deref() };
        let page = link.request("tools/list", asked).await?;
        n_bytes += page.get().len();
        if n_bytes > MAX_BYTES {
            tracing::warn!(
                "the wrapped server names tools in more than 16 MiB: the rest is left out"
            );
            break;
        }
        let Ok(page) = page.read::<Page>() else {
            tracing::warn!(
                "the wrapped server answered tools/list with something else than a list"
            );
            break;
        };
        described.extend(page.tools);
        match page.next_cursor {
            Some(next) if cursor.as_ref() != Some(&next) && described.len() < MAX_TOOLS => {
                cursor = Some(next);
            }
            _ => break,
        }
    }
    Ok(listing(&described, settings))
}

fn listing(described: &[Json], settings: &Settings) -> Listing {
    let mut listing = Listing::default();
    let described: Vec<Described> =
        described.iter().take(MAX_TOOLS).filter_map(|tool| tool.read().ok()).collect();
    let theirs: BTreeSet<&str> = described.iter().map(|tool| tool.name.as_str()).collect();
    let free = |name: &str| !settings.reserved.contains(name) && !theirs.contains(name);
    for tool in described.iter().filter(|tool| !settings.hidden.contains(&tool.name)) {
        let is_sound = !tool.name.is_empty() && tool.name.len() <= MAX_NAME;
        if !is_sound || listing.names.values().any(|known| **known == *tool.name) {
            tracing::warn!(tool = %text::escape(text::clip(&tool.name, 200)), "a tool of the wrapped server is left out: its name is taken, or none");
            continue;
        }
        let mut name = tool.name.clone();
        if settings.reserved.contains(&name) {
            while !free(&name) || listing.names.contains_key(&name) {
                name.insert_str(0, "inner_");
            }
        }
        listing.names.insert(name.clone(), tool.name.as_str().into());
        listing.specs.push(spec(tool, &name, settings));
    }
    listing.theirs = theirs.into_iter().map(str::to_owned).collect();
    listing
}

fn spec(tool: &Described, name: &str, settings: &Settings) -> ToolSpec {
    let schema = tool.input_schema.clone().unwrap_or_else(Json::empty_object);
    let said = tool.description.as_deref().unwrap_or_default();
    let manner = tool.annotations.as_ref();
    let title = tool.title.as_deref().or(manner.and_then(|manner| manner.title.as_deref()));
    let mut spec = ToolSpec {
        title: text::escape_lines(title.unwrap_or(name)).into(),
        hints: manner.map_or_else(|| Annotations::default().hints(), Annotations::hints),
        has_foreign_hints: true,
        lane: settings.lane.clone(),
        wait: settings.wait,
        run_timeout: settings.run_timeout,
        // As without a gateway: who cancels a call without a task id ends it.
        on_disconnect: OnDisconnect::Cancel,
        on_exit: OnExit::Stop,
        meta: tool.meta.clone(),
        ..ToolSpec::new(name, &text::escape_lines(said), schema)
    };
    if let Some(adjust) = settings.adjust.get(&tool.name).or_else(|| settings.adjust.get(name)) {
        adjust(&mut spec);
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tools: &[&str]) -> Listing {
        let tools: Vec<Json> = tools.iter().map(|tool| Json::parse(*tool).expect("JSON")).collect();
        listing(&tools, &Settings::default())
    }

    #[test]
    fn a_name_of_ours_gets_a_prefix_and_the_other_keeps_its_own() {
        // [GATE-3]
        let listing = of(&[
            r#"{"name":"echo","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}"#,
            r#"{"name":"submit_task"}"#,
            r#"{"name":"inner_submit_task"}"#,
            r#"{"name":"echo","description":"the second"}"#,
            r#"{"name":""}"#,
            r#"{"title":"no name"}"#,
        ]);
        let names: Vec<_> =
            listing.names.iter().map(|(ours, theirs)| (ours.as_str(), &**theirs)).collect();
        assert_eq!(
            names,
            [
                ("echo", "echo"),
                ("inner_inner_submit_task", "submit_task"),
                ("inner_submit_task", "inner_submit_task")
            ]
        );
        assert_eq!(listing.specs.len(), 3);
    }

    #[test]
    fn what_is_not_said_of_a_tool_is_as_the_protocol_says() {
        // [GATE-2]
        let listing = of(&[
            r#"{"name":"a","annotations":{"readOnlyHint":true,"title":"A"},"_meta":{"x":1}}"#,
            r#"{"name":"b","title":"B","description":"b\u001b[31m"}"#,
        ]);
        let [a, b] = listing.specs.as_slice() else { panic!("two tools") };
        assert_eq!((a.hints.read_only, a.hints.destructive, &*a.title), (true, true, "A"));
        assert_eq!(a.meta.as_ref().map(Json::get), Some(r#"{"x":1}"#));
        assert_eq!((b.hints.open_world, &*b.title), (true, "B"));
        assert!(!b.description.contains('\u{1b}'), "{}", b.description);
        // [GATE-11]: they are shown, and decide nothing.
        let trusted = a.trusted_hints();
        assert!(!trusted.read_only && !trusted.idempotent && trusted.destructive);
        assert!(listing.is_like(&listing.clone()));
        assert!(!listing.is_like(&Listing::default()));
    }
}
