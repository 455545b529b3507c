//! What is around the array that is paged, when its pages show it.

use std::io;

use super::{
    refs::{Parts, cost},
    target::Target,
};
use crate::json::{Pointer, View};

/// What is around the array comes on every page up to this many bytes, else on the first.
const ON_EVERY_PAGE: usize = 1024;

/// JSON before and behind a slice.
#[derive(Debug, Default)]
pub(super) struct Around {
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
    pub(super) cost: usize,
    pub(super) n_refs: usize,
}

/// What is around the array on the first page and on the others.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) first: Around,
    pub(super) rest: Around,
}

impl Frame {
    /// Returns the frame, or `None` if what is around the array leaves too little for it in a page
    /// with `room` bytes for its data.
    pub(super) fn build(
        view: &View<'_>,
        target: &Target,
        room: usize,
        is_escaped: bool,
    ) -> io::Result<Option<Self>> {
        let Some(bare) = wrap(view, target, &[], room / 4, is_escaped)? else { return Ok(None) };
        let limit = (room / 2).saturating_sub(bare.cost);
        let mut parts = Parts::new(view, limit, is_escaped);
        // Which level each of them belongs to, and whether it stands behind the array.
        let mut places = Vec::new();
        let mut path = Pointer::default();
        for (depth, level) in target.levels.iter().enumerate() {
            let mut children = view.children(level.object)?;
            while let Some(child) = children.next_child()? {
                if child.ordinal == level.member.ordinal {
                    continue;
                }
                if !parts.add(&path, child)? {
                    return Ok(None);
                }
                places.push((depth, child.ordinal > level.member.ordinal));
            }
            if let Some(name) = level.member.name {
                path.push_name(&view.text(name)?);
            }
        }
        let is_small = parts.as_they_are() <= ON_EVERY_PAGE.min(room / 4);
        let (n_refs, _) = parts.fit();
        let mut others = Vec::new();
        for (part, (depth, is_after)) in parts.list.iter().zip(places) {
            let mut json = Vec::new();
            parts.write(part, &mut json)?;
            others.push(Other { depth, is_after, json });
        }
        let around = |others: &[Other]| wrap(view, target, others, room, is_escaped);
        let Some(first) = around(&others)? else { return Ok(None) };
        let Some(rest) = (if is_small { around(&others)? } else { Some(bare) }) else {
            return Ok(None);
        };
        Ok(Some(Self { first: Around { n_refs, ..first }, rest }))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let of = |around: &Around| around.before.capacity() + around.after.capacity();
        of(&self.first) + of(&self.rest)
    }
}

struct Other {
    depth: usize,
    is_after: bool,
    json: Vec<u8>,
}

/// Writes the objects around the array, with `others` in their places, if that takes at most
/// `limit` bytes.
fn wrap(
    view: &View<'_>,
    target: &Target,
    others: &[Other],
    limit: usize,
    is_escaped: bool,
) -> io::Result<Option<Around>> {
    let mut around = Around::default();
    let mut tails = Vec::new();
    for (depth, level) in target.levels.iter().enumerate() {
        around.before.push(b'{');
        for other in others.iter().filter(|other| other.depth == depth && !other.is_after) {
            around.before.extend_from_slice(&other.json);
            around.before.push(b',');
        }
        if let Some(name) = level.member.name {
            if name.bytes() > limit || around.before.len() > limit {
                return Ok(None);
            }
            around.before.extend_from_slice(&view.raw(name)?);
            around.before.push(b':');
        }
        let mut tail = Vec::new();
        for other in others.iter().filter(|other| other.depth == depth && other.is_after) {
            tail.push(b',');
            tail.extend_from_slice(&other.json);
        }
        tail.push(b'}');
        tails.push(tail);
    }
    around.after = tails.into_iter().rev().flatten().collect();
    around.cost = cost(&around.before, is_escaped) + cost(&around.after, is_escaped);
    Ok((around.cost <= limit).then_some(around))
}
