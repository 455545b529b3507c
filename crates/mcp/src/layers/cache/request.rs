//! `fetch_cached_response`: what its callers may say.

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;
use raincheck_core::tool::Hints;

use crate::surface::Definition;
use crate::wire::{Fields, Whole, list};

/// The name of the tool.
pub(super) const NAME: &str = "fetch_cached_response";

pub(super) const DEFINITION: Definition = Definition {
    title: "Cached response",
    description: "Reads an answer that was too large to send whole, by its cache_id. outline: structure \
                  and filters to try. get_page: by page, or cursor = next_cursor; path picks a part. \
                  filter: jq. search: where a text stands. sample: spread items. In arguments of other \
                  tools {\"$cache\": cache_id, \"path\": pointer} stands for the stored value.",
    schema: r#"{"type":"object","properties":{"action":{"enum":["get","get_page","filter","info","list","outline","search","sample","delete"]},"cache_id":{"type":"string"},"page":{"type":"integer","minimum":1},"page_size_kb":{"type":"integer","minimum":1,"maximum":480,"default":32},"cursor":{"type":"string"},"path":{"type":"string","description":"JSON Pointer"},"jq_filter":{"type":"string"},"cache_filtered_result":{"type":"boolean","default":true},"query":{"type":"string"},"regex":{"type":"boolean"},"n":{"type":"integer","description":"items of a sample"}},"required":["action"],"additionalProperties":false}"#,
    hints: Hints { read_only: true, destructive: false, idempotent: true, open_world: false },
};

/// Every argument that there is.
const KNOWN: &[&str] = &[
    "action",
    "cache_id",
    "page",
    "page_size_kb",
    "cursor",
    "path",
    "jq_filter",
    "cache_filtered_result",
    "query",
    "regex",
    "n",
];

/// The largest page that anybody may ask for, in KiB.
const MOST_KB: i64 = 480;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The whole.
    Get,
    /// A page.
    Page,
    /// What a filter makes of it.
    Filter,
    /// What is known about it.
    Info,
    /// All entries.
    List,
    /// Its structure.
    Outline,
    /// Where a text stands in it.
    Search,
    /// Items that stand for it.
    Sample,
    /// Its end.
    Delete,
}

/// What each is called, and which arguments it takes beside `action` and `cache_id`.
const ACTIONS: &[(&str, Action, &[&str])] = &[
    ("get", Action::Get, &["path"]),
    ("get_page", Action::Page, &["page", "page_size_kb", "cursor", "path"]),
    ("filter", Action::Filter, &["jq_filter", "cache_filtered_result", "page_size_kb"]),
    ("info", Action::Info, &[]),
    ("list", Action::List, &[]),
    ("outline", Action::Outline, &[]),
    ("search", Action::Search, &["query", "regex", "cursor", "page_size_kb"]),
    ("sample", Action::Sample, &["path", "n", "page_size_kb"]),
    ("delete", Action::Delete, &[]),
];

/// A call, read.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) action: Action,
    /// The handle as it was written; empty for a list.
    pub(super) id: String,
    pub(super) page: Option<u64>,
    pub(super) page_bytes: Option<usize>,
    pub(super) cursor: Option<String>,
    pub(super) path: Option<String>,
    pub(super) filter: Option<String>,
    pub(super) caches_filtered: bool,
    pub(super) query: Option<String>,
    pub(super) is_regex: bool,
    pub(super) n: Option<usize>,
}

impl Request {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// `invalid_params` that names what is wrong.
    pub(super) fn read(arguments: &Json) -> Result<Self, Error> {
        let mut fields = Fields::read(arguments, KNOWN)?;
        let word = fields.required::<String>("action")?;
        let Some((_, action, takes)) = ACTIONS.iter().find(|(known, ..)| *known == word) else {
            let known: Vec<&str> = ACTIONS.iter().map(|(known, ..)| *known).collect();
            let word = text::escape(text::clip(&word, 40)).into_owned();
            let rule = format!("is `{word}`; there are {}", list(&known));
            return Err(fields.wrong("action", &rule));
        };
        let id = match fields.optional::<String>("cache_id")? {
            Some(id) => id,
            None if *action == Action::List => String::new(),
            None => return Err(fields.wrong("cache_id", "is missing; action list shows them")),
        };
        let request = Self {
            action: *action,
            id,
            page: page(&mut fields)?,
            page_bytes: page_bytes(&mut fields)?,
            cursor: fields.optional("cursor")?,
            path: fields.optional("path")?,
            filter: fields.optional("jq_filter")?,
            caches_filtered: fields.optional("cache_filtered_result")?.unwrap_or(true),
            query: fields.optional("query")?,
            is_regex: fields.optional("regex")?.unwrap_or(false),
            n: number(&mut fields)?,
        };
        request.takes(takes)?;
        request.needs(*action, takes)?;
        Ok(request)
    }

    /// Refuses what would mean something else than its caller thinks. What has a default is let pass: some
    /// clients fill in every default of a schema.
    fn takes(&self, takes: &[&str]) -> Result<(), Error> {
        for (name, value) in [
            ("path", &self.path),
            ("cursor", &self.cursor),
            ("jq_filter", &self.filter),
            ("query", &self.query),
        ] {
            if value.is_some() && !takes.contains(&name) {
                let message = format!(
                    "`{name}` is not taken by this action, which takes {}",
                    if takes.is_empty() { "no more".to_owned() } else { list(takes) }
                );
                return Err(Error::new(Kind::InvalidParams, message));
            }
        }
        Ok(())
    }

    /// Refuses a call without what its action cannot do without.
    fn needs(&self, action: Action, takes: &[&str]) -> Result<(), Error> {
        if action == Action::Page && self.page.is_some() && self.cursor.is_some() {
            let message = "`page` and `cursor` name one place each; give one of them";
            return Err(Error::new(Kind::InvalidParams, message));
        }
        let missing = if action == Action::Filter && self.filter.is_none() {
            "jq_filter"
        } else if action == Action::Search && self.query.is_none() {
            "query"
        } else {
            return Ok(());
        };
        let message = format!("`{missing}` is missing; this action takes {}", list(takes));
        Err(Error::new(Kind::InvalidParams, message))
    }
}

fn page(fields: &mut Fields) -> Result<Option<u64>, Error> {
    let Some(Whole(page)) = fields.optional::<Whole>("page")? else { return Ok(None) };
    let page = u64::try_from(page).ok().filter(|page| *page > 0);
    page.map(Some).ok_or_else(|| fields.wrong("page", "must be 1 or more: pages count from 1"))
}

fn page_bytes(fields: &mut Fields) -> Result<Option<usize>, Error> {
    let Some(Whole(kb)) = fields.optional::<Whole>("page_size_kb")? else { return Ok(None) };
    let bytes = usize::try_from(kb).ok().filter(|_| (1..=MOST_KB).contains(&kb));
    bytes
        .map(|kb| Some(kb << 10))
        .ok_or_else(|| fields.wrong("page_size_kb", &format!("must be between 1 and {MOST_KB}")))
}

fn number(fields: &mut Fields) -> Result<Option<usize>, Error> {
    let Some(Whole(n)) = fields.optional::<Whole>("n")? else { return Ok(None) };
    let n = usize::try_from(n).ok().filter(|n| (1..=100).contains(n));
    n.map(Some).ok_or_else(|| fields.wrong("n", "must be between 1 and 100"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Request, String> {
        let arguments = Json::parse(text).expect("JSON");
        Request::read(&arguments).map_err(|error| error.message.to_string())
    }

    #[test]
    fn what_is_wrong_is_refused_by_its_name() {
        // [CACHE-4]
        for (text, says) in [
            ("{}", "`action` is missing"),
            (r#"{"action":"fly"}"#, "`action` is `fly`; there are `get`, `get_page`"),
            (r#"{"action":"get"}"#, "`cache_id` is missing"),
            (r#"{"action":"get","cache_id":7}"#, "`cache_id` must be a string"),
            (r#"{"action":"filter","cache_id":"x"}"#, "`jq_filter` is missing"),
            (r#"{"action":"search","cache_id":"x"}"#, "`query` is missing"),
            (r#"{"action":"get_page","cache_id":"x","page":0}"#, "pages count from 1"),
            (r#"{"action":"get_page","cache_id":"x","page":1.5}"#, "`page` must be an integer"),
            (r#"{"action":"get_page","cache_id":"x","page":1,"cursor":"c"}"#, "one of them"),
            (r#"{"action":"get_page","cache_id":"x","page_size_kb":481}"#, "between 1 and 480"),
            (r#"{"action":"get_page","cache_id":"x","page_size_kb":-1}"#, "between 1 and 480"),
            (r#"{"action":"list","colour":"red"}"#, "`colour` is unknown"),
            (r#"{"action":"info","cache_id":"x","path":"/a"}"#, "`path` is not taken"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn the_schema_names_what_is_read_and_the_description_is_short() {
        let schema: serde_json::Value = serde_json::from_str(DEFINITION.schema).expect("JSON");
        let properties = schema["properties"].as_object().expect("properties");
        assert_eq!(properties.len(), KNOWN.len());
        assert!(KNOWN.iter().all(|name| properties.contains_key(*name)));
        let words = schema["properties"]["action"]["enum"].as_array().expect("words");
        assert!(ACTIONS.iter().zip(words).all(|((word, ..), known)| known == word));
        assert!(DEFINITION.description.len() < 400, "{}", DEFINITION.description.len());
        for (_, _, takes) in ACTIONS {
            assert!(takes.iter().all(|name| KNOWN.contains(name)));
        }
    }
}
