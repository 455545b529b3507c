//! An outline as JSON that keeps its size.

use std::{collections::HashMap, fmt::Write as _};

use super::shape::{Id, KINDS, MAX_ENUM, MAX_SAMPLES, Shape, Shapes};
use crate::json::{Kind, text};

/// How much is said of each path, from most to least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    All,
    /// One sample, short enumerations.
    Some,
    /// No values.
    Little,
    /// The type alone.
    Type,
}

struct Line {
    path: String,
    depth: usize,
    what: What,
}

enum What {
    Shape { id: Id, present: Option<usize> },
    Again { path: String },
}

/// Writes outlines.
pub(super) struct Printer<'s> {
    shapes: &'s Shapes,
    lines: Vec<Line>,
}

impl<'s> Printer<'s> {
    pub(super) fn new(shapes: &'s Shapes) -> Self {
        let mut printer = Self { shapes, lines: Vec::new() };
        printer.list();
        printer
    }

    /// Lists all paths, each shape where it comes first.
    fn list(&mut self) {
        let mut paths: HashMap<Id, String> = HashMap::new();
        let mut open = vec![(String::new(), 0, Shapes::ROOT, None)];
        while let Some((path, depth, id, present)) = open.pop() {
            let id = self.shapes.find(id);
            let shown = if path.is_empty() { ".".to_owned() } else { path.clone() };
            if let Some(first) = paths.get(&id) {
                let what = What::Again { path: first.clone() };
                self.lines.push(Line { path: shown, depth, what });
                continue;
            }
            paths.insert(id, shown.clone());
            let shape = self.shapes.get(id);
            self.lines.push(Line { path: shown, depth, what: What::Shape { id, present } });
            let mut children = Vec::new();
            if let Some(item) = shape.item {
                let root = if path.is_empty() { "." } else { "" };
                children.push((format!("{root}{path}[]"), depth + 1, item, None));
            }
            let n_objects = shape.n_of(Kind::Object);
            for (name, member) in &shape.members {
                let n = self.shapes.get(*member).total();
                let present = (n < n_objects).then(|| n * 100 / n_objects.max(1));
                children.push((joined(&path, name), depth + 1, *member, present));
            }
            open.extend(children.into_iter().rev());
        }
    }

    pub(super) fn print(&self, n_bytes: usize, filters: &[String], limit: usize) -> Vec<u8> {
        let all: Vec<usize> = (0..self.lines.len()).collect();
        for detail in [Detail::All, Detail::Some, Detail::Little] {
            let json = self.json(n_bytes, filters, &all, detail);
            if json.len() <= limit {
                return json;
            }
        }
        // The shallowest paths, as many as fit, in the order of the body.
        let mut by_depth = all;
        by_depth.sort_by_key(|line| self.lines.get(*line).map_or(0, |line| line.depth));
        let fits = |n: usize| {
            let mut lines = by_depth.get(..n).unwrap_or(&[]).to_vec();
            lines.sort_unstable();
            let json = self.json(n_bytes, filters, &lines, Detail::Type);
            (json.len() <= limit).then_some(json)
        };
        let (mut low, mut high) = (0, by_depth.len());
        while low < high {
            let middle = (low + high).div_ceil(2);
            if fits(middle).is_some() { low = middle } else { high = middle - 1 }
        }
        fits(low).unwrap_or_else(|| self.json(n_bytes, &[], &[], Detail::Type))
    }

    fn json(&self, n_bytes: usize, filters: &[String], lines: &[usize], detail: Detail) -> Vec<u8> {
        let mut out = format!("{{\"kind\":\"json\",\"bytes\":{n_bytes},\"paths\":[");
        for (position, line) in lines.iter().filter_map(|line| self.lines.get(*line)).enumerate() {
            if position > 0 {
                out.push(',');
            }
            out.push_str("{\"path\":");
            string(&line.path, &mut out);
            match &line.what {
                What::Again { path } => {
                    out.push_str(",\"$rec\":");
                    string(path, &mut out);
                }
                What::Shape { id, present } => {
                    write_shape(self.shapes.get(*id), *present, detail, &mut out);
                }
            }
            out.push('}');
        }
        out.push_str("],\"filters\":[");
        for (position, filter) in filters.iter().enumerate() {
            if position > 0 {
                out.push(',');
            }
            string(filter, &mut out);
        }
        out.push(']');
        let n_more = self.lines.len() - lines.len();
        if n_more > 0 {
            let _ = write!(out, ",\"more\":{n_more}");
        }
        out.push('}');
        out.into_bytes()
    }
}

fn write_shape(shape: &Shape, present: Option<usize>, detail: Detail, out: &mut String) {
    let types: Vec<&str> =
        KINDS.iter().filter(|kind| shape.n_of(**kind) > 0).map(|kind| kind.name()).collect();
    let _ = write!(out, ",\"type\":\"{}\"", types.join("|"));
    if detail == Detail::Type {
        return;
    }
    if shape.total() != 1 {
        let _ = write!(out, ",\"count\":{}", shape.total());
    }
    if let Some(present) = present {
        let _ = write!(out, ",\"present\":{present}");
    }
    if shape.item.is_some() || shape.n_of(Kind::Array) > 0 {
        let _ = write!(out, ",\"items\":{}", shape.n_children);
    }
    let is_container = shape.n_of(Kind::Array) + shape.n_of(Kind::Object) > 0;
    if is_container && detail == Detail::All {
        let _ = write!(out, ",\"bytes\":{}", shape.bytes);
    }
    let most_values = match detail {
        Detail::All => MAX_ENUM,
        Detail::Some => 4,
        Detail::Little | Detail::Type => 0,
    };
    let is_enum = !shape.is_open && shape.values.len() <= most_values;
    if let (Some(least), Some(most)) = (&shape.least, &shape.most)
        && !is_enum
    {
        let _ = write!(out, ",\"min\":{},\"max\":{}", least.text, most.text);
    }
    if shape.values.is_empty() || most_values == 0 {
        return;
    }
    if is_enum {
        let _ = write!(out, ",\"enum\":[{}]", shape.values.join(","));
    } else if shape.least.is_none() {
        let n_shown = if detail == Detail::All { MAX_SAMPLES } else { 1 };
        let shown: Vec<&str> = shape.values.iter().take(n_shown).map(String::as_str).collect();
        let _ = write!(out, ",\"samples\":[{}]", shown.join(","));
    }
}

fn string(text: &str, out: &mut String) {
    let mut json = Vec::new();
    text::encode(text, &mut json);
    out.push_str(&String::from_utf8_lossy(&json));
}

/// Returns the jq path of a member.
pub(super) fn joined(path: &str, name: &str) -> String {
    if is_identifier(name) {
        return format!("{path}.{name}");
    }
    let mut out = if path.is_empty() { ".".to_owned() } else { path.to_owned() };
    out.push('[');
    string(name, &mut out);
    out.push(']');
    out
}

/// Returns whether jq takes a name without quotes.
pub(super) fn is_identifier(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}
