//! The index file: one record after another of what happened to entries, each with its checksum.
//!
//! A record counts when it is whole. The first one that is not ends the file: what follows was never
//! acknowledged, or the file is damaged, and either way nothing is guessed.

use std::collections::HashMap;

use uuid::Uuid;

use crate::shelf::checksum;
use crate::shelf::entry::{BodyKind, Metadata, Reason, Rerun};
use crate::shelf::graves::Tombstone;
use crate::shelf::life::Millis;
use crate::shelf::wire::{Reader, Writer, maybe};

/// The first bytes of the file, with the version of its format.
pub(super) const MAGIC: &[u8; 8] = b"RCINDEX1";

/// Length and checksum before a record.
const FRAME: usize = 16;

/// What happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Record {
    /// An entry is held, and its body is in its file.
    Put {
        metadata: Box<Metadata>,
        /// What its index takes in memory.
        index_bytes: u64,
    },
    /// It was read.
    Touch { id: Uuid, at: Millis, access_count: u64 },
    /// It went.
    Gone { id: Uuid, reason: Reason, at: Millis },
    /// There is a tombstone. Of an entry that is held in memory only it is written ahead.
    Grave { id: Uuid, grave: Tombstone },
}

const PUT: u8 = 1;
const TOUCH: u8 = 2;
const GONE: u8 = 3;
const GRAVE: u8 = 4;

/// What the byte of a kind says: the body is a text.
const TEXT: u8 = 1;
/// And it was stored before anybody asked for it.
const AHEAD: u8 = 2;

impl Record {
    /// Appends the record with its frame.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut payload = Writer::default();
        self.write(&mut payload);
        out.extend_from_slice(&(payload.0.len() as u64).to_le_bytes());
        out.extend_from_slice(&checksum::of(&payload.0).to_le_bytes());
        out.extend_from_slice(&payload.0);
    }

    fn write(&self, to: &mut Writer) {
        match self {
            Self::Put { metadata, index_bytes } => {
                to.byte(PUT);
                write_metadata(to, metadata);
                to.number(*index_bytes);
            }
            Self::Touch { id, at, access_count } => {
                to.byte(TOUCH);
                to.id(*id);
                to.number(*at);
                to.number(*access_count);
            }
            Self::Gone { id, reason, at } => {
                to.byte(GONE);
                to.id(*id);
                to.byte(reason_byte(*reason));
                to.number(*at);
            }
            Self::Grave { id, grave } => {
                to.byte(GRAVE);
                to.id(*id);
                to.text(&grave.scope);
                to.byte(reason_byte(grave.reason));
                to.text(&grave.rerun.tool);
                to.maybe(grave.rerun.params.as_deref(), Writer::text);
                to.number(grave.at);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(match from.byte()? {
            PUT => {
                Self::Put { metadata: Box::new(read_metadata(from)?), index_bytes: from.number()? }
            }
            TOUCH => {
                Self::Touch { id: from.id()?, at: from.number()?, access_count: from.number()? }
            }
            GONE => Self::Gone {
                id: from.id()?,
                reason: byte_reason(from.byte()?)?,
                at: from.number()?,
            },
            GRAVE => Self::Grave {
                id: from.id()?,
                grave: Tombstone {
                    scope: from.text()?,
                    reason: byte_reason(from.byte()?)?,
                    rerun: Rerun { tool: from.text()?, params: maybe(from, Reader::text).ok()? },
                    at: from.number()?,
                },
            },
            _ => return None,
        })
    }
}

fn write_metadata(to: &mut Writer, metadata: &Metadata) {
    to.id(metadata.id);
    to.text(&metadata.scope);
    to.text(&metadata.tool);
    to.text(&metadata.params);
    let kind = match metadata.kind {
        BodyKind::Json => 0,
        BodyKind::Text => TEXT,
    };
    to.byte(kind | if metadata.is_ahead { AHEAD } else { 0 });
    to.number(metadata.size_bytes);
    to.number(metadata.created_at);
    to.number(metadata.last_access_at);
    to.number(metadata.access_count);
    to.maybe(metadata.parent, Writer::id);
    to.maybe(metadata.jq_filter.as_deref(), Writer::text);
    to.maybe(metadata.mark.as_deref(), Writer::text);
    to.number(metadata.revision.into());
}

fn read_metadata(from: &mut Reader<'_>) -> Option<Metadata> {
    let (id, scope, tool, params) = (from.id()?, from.text()?, from.text()?, from.text()?);
    let kind = from.byte()?;
    if kind & !(TEXT | AHEAD) != 0 {
        return None;
    }
    Some(Metadata {
        id,
        scope,
        tool,
        params,
        kind: if kind & TEXT == 0 { BodyKind::Json } else { BodyKind::Text },
        size_bytes: from.number()?,
        created_at: from.number()?,
        last_access_at: from.number()?,
        expires_at: 0,
        access_count: from.number()?,
        parent: maybe(from, Reader::id).ok()?,
        jq_filter: maybe(from, Reader::text).ok()?,
        mark: maybe(from, Reader::text).ok()?,
        is_sensitive: false,
        is_ahead: kind & AHEAD != 0,
        revision: from.number()?.try_into().ok()?,
    })
}

fn reason_byte(reason: Reason) -> u8 {
    match reason {
        Reason::Expired => 1,
        Reason::Evicted => 2,
        Reason::Deleted => 3,
        Reason::Lost => 4,
        Reason::Unknown => 5,
    }
}

fn byte_reason(byte: u8) -> Option<Reason> {
    Some(match byte {
        1 => Reason::Expired,
        2 => Reason::Evicted,
        3 => Reason::Deleted,
        4 => Reason::Lost,
        _ => return None,
    })
}

/// Entries with what their indexes take.
pub(super) type Entries = Vec<(Metadata, u64)>;
pub(super) type Graves = Vec<(Uuid, Tombstone)>;

/// What the index file says is there.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    entries: HashMap<Uuid, (u64, Metadata, u64)>,
    graves: HashMap<Uuid, (u64, Tombstone)>,
    turn: u64,
}

impl Replayed {
    /// Reads a file up to its first record that is not whole.
    pub(super) fn read(file: &[u8]) -> Self {
        let mut replayed = Self::default();
        let mut rest = file.strip_prefix(MAGIC).unwrap_or_default();
        while let Some((record, after)) = next(rest) {
            replayed.apply(record);
            rest = after;
        }
        replayed
    }

    fn apply(&mut self, record: Record) {
        self.turn += 1;
        match record {
            Record::Put { metadata, index_bytes } => {
                self.graves.remove(&metadata.id);
                self.entries.insert(metadata.id, (self.turn, *metadata, index_bytes));
            }
            Record::Touch { id, at, access_count } => {
                if let Some((turn, metadata, _)) = self.entries.get_mut(&id) {
                    *turn = self.turn;
                    metadata.last_access_at = at;
                    metadata.access_count = access_count;
                }
            }
            Record::Gone { id, reason, at } => {
                if let Some((_, metadata, _)) = self.entries.remove(&id) {
                    let (scope, rerun) = (metadata.scope.clone(), metadata.rerun());
                    self.bury(id, Tombstone { scope, reason, rerun, at });
                } else if let Some((_, grave)) = self.graves.remove(&id) {
                    self.bury(id, Tombstone { reason, at, ..grave });
                }
            }
            Record::Grave { id, grave } => {
                self.entries.remove(&id);
                self.bury(id, grave);
            }
        }
    }

    fn bury(&mut self, id: Uuid, grave: Tombstone) {
        self.graves.insert(id, (self.turn, grave));
    }

    /// Returns the entries with what their indexes take, the least recently used first, and the tombstones, the oldest first.
    pub(super) fn into_parts(self) -> (Entries, Graves) {
        let mut entries: Vec<_> = self.entries.into_values().collect();
        entries.sort_by_key(|(turn, ..)| *turn);
        let entries = entries.into_iter().map(|(_, metadata, index_bytes)| (metadata, index_bytes));
        let mut graves: Vec<_> = self.graves.into_iter().collect();
        graves.sort_by_key(|(_, (turn, _))| *turn);
        let graves = graves.into_iter().map(|(id, (_, grave))| (id, grave));
        (entries.collect(), graves.collect())
    }
}

fn next(file: &[u8]) -> Option<(Record, &[u8])> {
    let (frame, rest) = file.split_first_chunk::<FRAME>()?;
    let mut frame = Reader(frame);
    let (len, sum) = (frame.number()?, frame.number()?);
    let (payload, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    if checksum::of(payload) != sum {
        return None;
    }
    let mut payload = Reader(payload);
    let record = Record::read(&mut payload)?;
    payload.0.is_empty().then_some((record, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn records() -> Vec<Record> {
        let metadata = |n: u32| Metadata {
            id: Uuid::from_u128(n.into()),
            scope: "me".into(),
            tool: "tool".into(),
            params: r#"{"n":1}"#.into(),
            kind: BodyKind::Text,
            size_bytes: 70,
            created_at: 1,
            last_access_at: n.into(),
            expires_at: 0,
            access_count: 3,
            parent: (n == 2).then(|| Uuid::from_u128(1)),
            jq_filter: (n == 2).then(|| ".x".into()),
            mark: Some("page".into()),
            is_sensitive: false,
            is_ahead: n == 2,
            revision: 2,
        };
        let put = |n| Record::Put { metadata: Box::new(metadata(n)), index_bytes: 5 };
        let id = Uuid::from_u128;
        let rerun = Rerun { tool: "secret".into(), params: None };
        let grave = Tombstone { scope: "me".into(), reason: Reason::Lost, rerun, at: 9 };
        vec![
            put(1),
            put(2),
            Record::Touch { id: id(1), at: 50, access_count: 4 },
            Record::Grave { id: id(3), grave },
            Record::Gone { id: id(2), reason: Reason::Evicted, at: 60 },
            Record::Gone { id: id(3), reason: Reason::Deleted, at: 61 },
            Record::Gone { id: id(4), reason: Reason::Deleted, at: 62 },
            put(2),
        ]
    }

    fn file(records: &[Record]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        records.iter().for_each(|record| record.encode(&mut file));
        file
    }

    fn parts(file: &[u8]) -> (Entries, Graves) {
        Replayed::read(file).into_parts()
    }

    #[test]
    fn what_happened_is_read_in_order() {
        let (entries, graves) = parts(&file(&records()));
        let entries: Vec<_> = entries
            .iter()
            .map(|(one, index)| (one.id.as_u128(), one.last_access_at, *index, one.is_ahead))
            .collect();
        assert_eq!(entries, [(1, 50, 5, false), (2, 2, 5, true)]);
        let graves: Vec<_> =
            graves.iter().map(|(id, grave)| (id.as_u128(), grave.reason, grave.at)).collect();
        assert_eq!(graves, [(3, Reason::Deleted, 61)]);
    }

    #[test]
    fn a_file_cut_anywhere_reads_as_its_whole_records() {
        let records = records();
        let whole = file(&records);
        let ends: Vec<usize> = (0..=records.len()).map(|n| file(&records[..n]).len()).collect();
        for cut in 0..=whole.len() {
            let n = ends.iter().filter(|end| **end <= cut).count().saturating_sub(1);
            assert_eq!(parts(&whole[..cut]), parts(&file(&records[..n])), "cut at {cut}");
        }
    }

    #[test]
    fn a_changed_byte_ends_the_file_there() {
        let records = records();
        let whole = file(&records);
        let ends: Vec<usize> = (0..=records.len()).map(|n| file(&records[..n]).len()).collect();
        for at in MAGIC.len()..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            let n = ends.iter().filter(|end| **end <= at).count() - 1;
            assert_eq!(parts(&damaged), parts(&file(&records[..n])), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            parts(&[MAGIC.as_slice(), &bytes].concat());
            if let Some(record) = Record::read(&mut Reader(&bytes)) {
                let mut again = Writer::default();
                record.write(&mut again);
                prop_assert!(bytes.starts_with(&again.0));
            }
        }
    }
}
