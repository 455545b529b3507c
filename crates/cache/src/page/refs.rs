//! References that stand for what does not fit, and the choice of what they stand for.

use std::io;

use crate::json::{Child, Kind, Node, Pointer, View, text};

/// Returns the size of some JSON on its way out.
pub(crate) fn cost(json: &[u8], is_escaped: bool) -> usize {
    json.len() + if is_escaped { text::n_escapes(json) } else { 0 }
}

/// Returns `{"$ref": path, "bytes": …, "items": …}`; `items` for containers only.
pub(super) fn reference(view: &View<'_>, path: &Pointer, node: Node) -> io::Result<Vec<u8>> {
    let mut json = b"{\"$ref\":".to_vec();
    text::encode(path.as_str(), &mut json);
    json.extend_from_slice(format!(",\"bytes\":{}", node.bytes()).as_bytes());
    if node.kind.is_container() {
        json.extend_from_slice(format!(",\"items\":{}", view.len(node)?).as_bytes());
    }
    json.push(b'}');
    Ok(json)
}

/// A member that is shown as it is, or by reference.
pub(super) struct Part {
    pub(super) name: Vec<u8>,
    pub(super) value: Node,
    pub(super) reference: Option<Vec<u8>>,
    /// Bytes of the name, the value as it is, the colon and a comma.
    as_it_is: usize,
    /// The same by reference, unless that saves nothing.
    by_reference: Option<usize>,
}

/// Members out of which those that take most are left to references, until the rest fits.
pub(super) struct Parts<'v, 'a> {
    view: &'v View<'a>,
    is_escaped: bool,
    limit: usize,
    least: usize,
    pub(super) list: Vec<Part>,
}

impl<'v, 'a> Parts<'v, 'a> {
    pub(super) const fn new(view: &'v View<'a>, limit: usize, is_escaped: bool) -> Self {
        Self { view, is_escaped, limit, least: 0, list: Vec::new() }
    }

    /// Adds a member of the object at `path`; `false` when all of them cannot fit any more.
    pub(super) fn add(&mut self, path: &Pointer, child: Child) -> io::Result<bool> {
        let Some(name) = child.name.filter(|name| name.bytes() <= self.limit) else {
            return Ok(false);
        };
        let raw_name = self.view.raw(name)?.into_owned();
        let of_name = cost(&raw_name, self.is_escaped) + 2;
        let as_it_is = of_name
            + if child.value.bytes() > self.limit {
                child.value.bytes()
            } else {
                cost(&self.view.raw(child.value)?, self.is_escaped)
            };
        let mut reference_made = None;
        let mut by_reference = None;
        if as_it_is > of_name + 40 {
            let mut path = path.clone();
            path.push_name(&text::decode(raw_name.get(1..raw_name.len() - 1).unwrap_or(&[])));
            let json = reference(self.view, &path, child.value)?;
            by_reference = Some(of_name + cost(&json, self.is_escaped)).filter(|it| *it < as_it_is);
            reference_made = Some(json);
        }
        self.least += by_reference.unwrap_or(as_it_is);
        self.list.push(Part {
            name: raw_name,
            value: child.value,
            reference: reference_made,
            as_it_is,
            by_reference,
        });
        Ok(self.least <= self.limit)
    }

    /// Returns the bytes that all members take as they are.
    pub(super) fn as_they_are(&self) -> usize {
        self.list.iter().map(|part| part.as_it_is).sum()
    }

    /// Leaves to references what takes most; returns how many references stay and what all takes.
    pub(super) fn fit(&mut self) -> (usize, usize) {
        let mut total = self.as_they_are();
        let mut by_size: Vec<&mut Part> = self.list.iter_mut().collect();
        by_size.sort_by_key(|part| std::cmp::Reverse(part.as_it_is));
        let mut n_refs = 0;
        for part in by_size {
            let Some(by_reference) = part.by_reference.filter(|_| total > self.limit) else {
                part.reference = None;
                continue;
            };
            total -= part.as_it_is - by_reference;
            n_refs += 1;
        }
        (n_refs, total)
    }

    /// Appends `"name":value`.
    pub(super) fn write(&self, part: &Part, out: &mut Vec<u8>) -> io::Result<()> {
        out.extend_from_slice(&part.name);
        out.push(b':');
        match &part.reference {
            Some(json) => out.extend_from_slice(json),
            None => out.extend_from_slice(&self.view.raw(part.value)?),
        }
        Ok(())
    }
}

/// Shows an item that is larger than a page: an object with its large members left to references,
/// anything else as one reference. Returns the JSON and the number of references.
pub(crate) fn skeleton(
    view: &View<'_>,
    path: &Pointer,
    node: Node,
    limit: usize,
    is_escaped: bool,
) -> io::Result<(Vec<u8>, usize)> {
    if node.kind == Kind::Object {
        let mut parts = Parts::new(view, limit.saturating_sub(2), is_escaped);
        let mut children = view.children(node)?;
        let mut is_fitting = true;
        while is_fitting && let Some(child) = children.next_child()? {
            is_fitting = parts.add(path, child)?;
        }
        if is_fitting {
            let (n_refs, _) = parts.fit();
            let mut json = vec![b'{'];
            for (position, part) in parts.list.iter().enumerate() {
                if position > 0 {
                    json.push(b',');
                }
                parts.write(part, &mut json)?;
            }
            json.push(b'}');
            return Ok((json, n_refs));
        }
    }
    Ok((reference(view, path, node)?, 1))
}
