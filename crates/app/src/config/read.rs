//! From the text of a file to data, collecting every problem on the way.

mod cache;
mod lanes;
mod section;
mod tools;
mod wrap;

use std::collections::BTreeMap;
use std::path::PathBuf;

use raincheck::OAuth;
use raincheck::oauth::BadSetting;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::form::Value;
use super::problem::Problems;
use super::{Client, File, Http, Overrides, Store, keys};
use crate::address::http_address;
use section::{Section, check, entries, unknown};

/// Reads the text of a file.
pub(super) fn read(text: &str, folder: PathBuf, overrides: Overrides) -> Result<File, Problems> {
    let mut problems = Problems::default();
    let (document, errors) = DeTable::parse_recoverable(text);
    // What follows the first break is mostly its consequence.
    if let Some(error) = errors.first() {
        let span = error.span().unwrap_or(text.len()..text.len());
        problems.add(span, error.message(), "correct the TOML here; see https://toml.io");
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let file = sections(document.get_ref(), folder, overrides, &mut problems);
    if problems.is_empty() { Ok(file) } else { Err(problems.sorted()) }
}

fn sections(
    document: &DeTable<'_>,
    folder: PathBuf,
    overrides: Overrides,
    problems: &mut Problems,
) -> File {
    let mut file = File::none(folder);
    let found = sections_of(document, problems);
    if let Some(value) = found.get("lanes") {
        file.lanes = lanes::read(value, problems);
    }
    let defaults = found.get("defaults").map(|value| {
        let section = Section::read(value, "defaults", &[keys::POLICY], problems);
        section.span_of("lane").into_iter().for_each(|span| {
            lanes::check_known(&section, span, &file.lanes, problems);
        });
        section
    });
    if let Some(value) = found.get("tools") {
        let policy = tools::Policy { defaults: defaults.as_ref(), overrides, lanes: &file.lanes };
        file.tools = policy.read(value, problems);
    }
    file.store = found.get("store").and_then(|value| store(value, problems));
    if let Some(value) = found.get("clients") {
        file.clients = clients(value, problems);
    }
    if let Some(value) = found.get("browser") {
        file.browser = Section::read(value, "browser", &[keys::BROWSER], problems).into();
    }
    if let Some(value) = found.get("http") {
        file.http = http(value, problems);
    }
    if let Some(value) = found.get("unity") {
        file.unity = Section::read(value, "unity", &[keys::UNITY], problems).into();
    }
    if let Some(value) = found.get("wrap") {
        file.wrap = wrap::read(value, problems);
    }
    if let Some(value) = found.get("wrapped") {
        file.wrap.tools = wrap::tools(value, &file.lanes, problems);
    }
    if let Some(value) = found.get("cache") {
        file.cache = cache::read(value, &file.tools, problems);
    }
    file.sections = found.into_keys().collect();
    file
}

/// Finds the sections of a document; anything else is a problem.
fn sections_of<'d, 'i>(
    document: &'d DeTable<'i>,
    problems: &mut Problems,
) -> BTreeMap<&'static str, &'d Spanned<DeValue<'i>>> {
    let known = || keys::SECTIONS.iter().map(|(name, _)| *name);
    let mut found = BTreeMap::new();
    for (name, value) in document {
        match known().find(|known| *known == name.get_ref()) {
            Some(known) => {
                found.insert(known, value);
            }
            None if value.get_ref().is_table() => {
                unknown(name, "section", "the file", known(), problems);
            }
            None => unknown(name, "key", "the file", known(), problems),
        }
    }
    found
}

fn store(value: &Spanned<DeValue<'_>>, problems: &mut Problems) -> Option<Store> {
    let section = Section::read(value, "store", &[keys::STORE], problems);
    let store = Store::read(section.text("path")?);
    if store.is_none() {
        let span = section.span_of("path").unwrap_or_else(|| value.span());
        let help = "write a path, or \"memory\": this version keeps tasks in no database";
        problems.add(span, "`store.path` is the address of a database", help);
    }
    store
}

fn http(value: &Spanned<DeValue<'_>>, problems: &mut Problems) -> Http {
    let section = Section::read(value, "http", &[keys::HTTP], problems);
    let listen = section.text("listen").and_then(|text| match http_address(text) {
        Ok(address) => Some(address),
        Err(help) => {
            let span = section.span_of("listen").unwrap_or_else(|| value.span());
            problems.add(span, "`http.listen` is no address", help);
            None
        }
    });
    let list = |key| section.list(key).map(<[String]>::to_vec).unwrap_or_default();
    Http {
        listen,
        allows_remote: section.flag("allow_remote").unwrap_or(false),
        is_anonymous: section.flag("anonymous").unwrap_or(false),
        names: list("names"),
        origins: list("origins"),
        tokens: section.tokens("tokens").map(<[_]>::to_vec).unwrap_or_default(),
        oauth: oauth(&section, value, problems),
    }
}

/// Reads whose access tokens are believed. The keys belong together: one without the others would be a door
/// that looks open or shut and is not.
fn oauth(
    section: &Section,
    value: &Spanned<DeValue<'_>>,
    problems: &mut Problems,
) -> Option<OAuth> {
    let wrong = |key: &str, error: BadSetting, problems: &mut Problems| {
        let span = section.span_of(key).unwrap_or_else(|| value.span());
        problems.add(span, format!("`http.{key}` cannot be used"), error.to_string());
    };
    let (issuer, resource) = (section.text("issuer"), section.text("resource"));
    let (Some(issuer), Some(resource)) = (issuer, resource) else {
        let lone = ["issuer", "resource", "scopes", "keys_url"];
        if let Some(key) = lone.into_iter().find(|key| section.span_of(key).is_some()) {
            let span = section.span_of(key).unwrap_or_else(|| value.span());
            let help = "set both `issuer` and `resource`, or none of these keys";
            problems.add(span, format!("`http.{key}` stands without its companion"), help);
        }
        return None;
    };
    let made = OAuth::new(issuer, resource);
    let mut oauth = made.map_err(|error| wrong("issuer", error, problems)).ok()?;
    for scope in section.list("scopes").unwrap_or_default() {
        oauth = oauth.require(scope).map_err(|error| wrong("scopes", error, problems)).ok()?;
    }
    match section.text("keys_url") {
        None => Some(oauth),
        Some(url) => oauth.keys_at(url).map_err(|error| wrong("keys_url", error, problems)).ok(),
    }
}

fn clients(value: &Spanned<DeValue<'_>>, problems: &mut Problems) -> BTreeMap<String, Client> {
    let mut clients = BTreeMap::new();
    for (name, value) in entries(value, "clients", problems) {
        let path = format!("clients.{}", name.get_ref());
        let client = if value.get_ref().is_table() {
            let section = Section::read(value, &path, &[keys::CLIENT_KEYS], problems);
            let max_chars = section.whole("max_chars").and_then(|n| usize::try_from(n).ok());
            Client { timeout: section.seconds("timeout_s"), max_chars }
        } else {
            match check(keys::CLIENT, value, &path, problems) {
                Some(Value::Span(timeout)) => Client { timeout: Some(timeout), max_chars: None },
                _ => continue,
            }
        };
        clients.insert(name.get_ref().to_string(), client);
    }
    clients
}
