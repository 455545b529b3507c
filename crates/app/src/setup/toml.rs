//! An entry in TOML.

use toml_edit::{Array, Decor, DocumentMut, Item, RawString, Table, TableLike, value};

use super::{Entry, Refusal, Value};

/// Puts an entry in; what is in it beside the start of the server stays.
pub(super) fn put(text: &str, entry: &Entry) -> Result<String, Refusal> {
    edit(text, |document| {
        let section = document.entry(entry.section).or_insert_with(|| {
            let mut table = Table::new();
            // The tables of the servers are enough.
            table.set_implicit(true);
            Item::Table(table)
        });
        let servers = table(section, entry.section)?;
        let Some(found) = servers.get_mut(&entry.name) else {
            let mut server = Table::new();
            for (key, written) in entry.start.iter().chain(&entry.beside) {
                server.insert(key, item(written));
            }
            servers.insert(&entry.name, Item::Table(server));
            return Ok(());
        };
        let ours = own(found, entry)?;
        for (key, written) in &entry.start {
            match ours.get_mut(key) {
                Some(known) if is(known, written) => {}
                Some(known) => replace(known, written),
                None => drop(ours.insert(key, item(written))),
            }
        }
        Ok(())
    })
}

/// Takes an entry out, and what holds the servers if that is empty then.
pub(super) fn take(text: &str, entry: &Entry) -> Result<String, Refusal> {
    edit(text, |document| {
        let Some(section) = document.get_mut(entry.section) else { return Ok(()) };
        let servers = table(section, entry.section)?;
        let Some(found) = servers.get_mut(&entry.name) else { return Ok(()) };
        own(found, entry)?;
        let above = found.as_table().map(|table| above(table.decor()));
        servers.remove(&entry.name);
        if servers.is_empty() {
            document.remove(entry.section);
        }
        // A comment that stood above it may be of the whole file.
        if let Some(above) = above.filter(|above| above.contains('#')) {
            let end = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing(format!("{above}{end}"));
        }
        Ok(())
    })
}

fn edit(
    text: &str,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), Refusal>,
) -> Result<String, Refusal> {
    let is_of_windows = text.contains("\r\n");
    let plain = text.replace("\r\n", "\n");
    let mut document: DocumentMut =
        plain.parse().map_err(|error| Refusal::Broken(format!("it is no TOML: {error}")))?;
    let before = document.to_string();
    change(&mut document)?;
    let after = document.to_string();
    Ok(if after == before {
        text.to_owned()
    } else if is_of_windows {
        after.replace('\n', "\r\n")
    } else {
        after
    })
}

fn above(decor: &Decor) -> String {
    decor.prefix().and_then(RawString::as_str).unwrap_or_default().to_owned()
}

fn table<'a>(item: &'a mut Item, name: &str) -> Result<&'a mut dyn TableLike, Refusal> {
    item.as_table_like_mut().ok_or_else(|| Refusal::Odd(format!("`{name}` in it is no table")))
}

/// Returns an entry if it starts our program.
fn own<'a>(found: &'a mut Item, entry: &Entry) -> Result<&'a mut dyn TableLike, Refusal> {
    let ours = table(found, &entry.name)?;
    let command = ours.get("command").and_then(Item::as_str).map(str::to_owned);
    match command {
        Some(command) if entry.is_ours(&command) => Ok(ours),
        Some(command) => Err(Refusal::Foreign(command)),
        None => Err(Refusal::Foreign("none that is named".to_owned())),
    }
}

fn is(known: &Item, written: &Value) -> bool {
    match written {
        Value::Text(text) => known.as_str() == Some(text),
        Value::List(list) => known.as_array().is_some_and(|array| {
            let known = array.iter().map(toml_edit::Value::as_str);
            known.eq(list.iter().map(|text| Some(text.as_str())))
        }),
        Value::Flag(flag) => known.as_bool() == Some(*flag),
    }
}

/// Replaces a value; what stands before and after it on its line stays.
fn replace(known: &mut Item, written: &Value) {
    let decor = known.as_value().map(|value| value.decor().clone());
    *known = item(written);
    if let (Some(value), Some(decor)) = (known.as_value_mut(), decor) {
        *value.decor_mut() = decor;
    }
}

fn item(written: &Value) -> Item {
    match written {
        Value::Text(text) => value(text),
        Value::List(list) => value(list.iter().collect::<Array>()),
        Value::Flag(flag) => value(*flag),
    }
}
