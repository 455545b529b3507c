//! Filters that suit a body.

use std::io;

use super::{
    print::{is_identifier, joined},
    shape::{Id, Shape, Shapes},
};
use crate::{
    json::{Kind, Pointer, View, unescape},
    page::PageError,
};

/// Longest path for which a filter is written.
const LONGEST: usize = 120;
/// Members that a projection shows.
const N_SHOWN: usize = 3;

/// Returns up to three jq filters: a projection, a choice, and a part or a walk.
pub(super) fn suggest(view: &View<'_>, shapes: &Shapes) -> io::Result<Vec<String>> {
    let (pointer, node) = match view.main_value() {
        Ok(found) => found,
        Err(PageError::Io(error)) => return Err(error),
        Err(_) => return Ok(Vec::new()),
    };
    let (path, id) = follow(shapes, &pointer);
    if path.len() > LONGEST {
        return Ok(Vec::new());
    }
    let here = if path.is_empty() { ".".to_owned() } else { path.clone() };
    let each = format!("{here}[]");
    let shape = shapes.get(id);
    if node.kind == Kind::Object && !shape.is_map {
        return Ok(of_object(&path, shape));
    }
    if !node.kind.is_container() {
        return Ok(vec!["length".to_owned(), "type".to_owned()]);
    }
    let Some(item) = shape.item else { return Ok(vec![format!("{here} | length")]) };
    let item_shape = shapes.get(item);
    if item_shape.n_of(Kind::Object) == 0 {
        return Ok(vec![
            format!("{here} | length"),
            format!("{here}[0:10]"),
            format!("{here} | unique | length"),
        ]);
    }
    let scalars: Vec<(&String, &Shape)> = item_shape
        .members
        .iter()
        .map(|(name, id)| (name, shapes.get(*id)))
        .filter(|(name, shape)| {
            let is_scalar = shape.n_of(Kind::Object) + shape.n_of(Kind::Array) == 0;
            is_scalar && is_identifier(name) && name.len() < 40
        })
        .collect();
    let first: Vec<&str> = scalars.iter().take(N_SHOWN).map(|(name, _)| name.as_str()).collect();
    let shown =
        if first.is_empty() { "keys".to_owned() } else { format!("{{{}}}", first.join(", ")) };
    let mut filters = vec![format!("[{each} | {shown}]")];
    filters.extend(choice(&each, &scalars));
    filters.push(match first.first() {
        Some(name) if goes_into_itself(shapes, item) => {
            format!("[{here} | .. | objects | .{name}?]")
        }
        _ if node.kind == Kind::Object => format!("{here} | length"),
        _ => format!("{here}[0:5]"),
    });
    Ok(filters)
}

fn follow(shapes: &Shapes, pointer: &Pointer) -> (String, Id) {
    let mut path = String::new();
    let mut id = Shapes::ROOT;
    for step in pointer.steps() {
        let name = unescape(step);
        path = joined(&path, &name);
        let shape = shapes.get(id);
        let member = shape.members.iter().find(|(it, _)| *it == name).map(|(_, id)| *id);
        id = member.or(shape.item).unwrap_or(id);
    }
    (path, id)
}

/// Returns a filter that keeps the items with one of the values that a member has.
fn choice(each: &str, scalars: &[(&String, &Shape)]) -> Option<String> {
    let is_choice = |shape: &Shape| !shape.is_open && (2..=12).contains(&shape.values.len());
    if let Some((name, shape)) = scalars.iter().find(|(_, shape)| is_choice(shape)) {
        let value = shape.values.last()?;
        return Some(format!("[{each} | select(.{name} == {value})] | length"));
    }
    let (name, shape) = scalars.iter().find(|(_, shape)| shape.least.is_some())?;
    let least = &shape.least.as_ref()?.text;
    Some(format!("[{each} | select(.{name} > {least})] | length"))
}

fn of_object(path: &str, shape: &Shape) -> Vec<String> {
    let here = if path.is_empty() { "." } else { path };
    let mut filters = vec![format!("{here} | keys")];
    let members = shape.members.iter().filter(|(name, _)| name.len() < 40).take(2);
    filters.extend(members.map(|(name, _)| joined(path, name)));
    filters
}

/// Returns whether a shape is met again inside itself.
fn goes_into_itself(shapes: &Shapes, id: Id) -> bool {
    let own = shapes.find(id);
    let children = |id: Id| {
        let shape = shapes.get(id);
        shape.members.iter().map(|(_, id)| *id).chain(shape.item).collect::<Vec<_>>()
    };
    let of_members = children(own);
    of_members.iter().any(|child| {
        shapes.find(*child) == own || children(*child).iter().any(|id| shapes.find(*id) == own)
    })
}
