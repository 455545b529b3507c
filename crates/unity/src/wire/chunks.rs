//! Messages that are larger than one may be, in pieces.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// How many messages of one connection may be on their way in pieces.
const MAX_MESSAGES: usize = 8;

/// The most pieces of a message.
const MAX_PIECES: u32 = 4096;

/// How much of a message goes into one piece, before it is written as base64.
const PIECE: usize = 512 * 1024;

/// A piece of a message.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) index: u32,
    pub(crate) total: u32,
    pub(crate) data: &'a str,
}

/// What came of a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// More are to come.
    Begun,
    /// The message is whole.
    Whole(String),
    /// The message is larger than is taken, and given up.
    TooLarge,
    /// The piece belongs to no message that could be put together; the message is given up.
    Malformed,
}

/// The pieces of one message.
#[derive(Debug)]
struct Parts {
    pieces: Vec<Option<Box<[u8]>>>,
    n_missing: usize,
    size: usize,
}

/// The messages of one connection that are being put together.
#[derive(Debug)]
pub(crate) struct Assembly {
    messages: BTreeMap<Box<str>, Parts>,
    size: usize,
    most: usize,
}

impl Assembly {
    /// Takes in at most `most` bytes at once, of all messages together.
    pub(crate) const fn new(most: usize) -> Self {
        Self { messages: BTreeMap::new(), size: 0, most }
    }

    /// Puts a piece in its place.
    pub(crate) fn put(&mut self, piece: &Piece<'_>) -> Put {
        let put = self.place(piece);
        if !matches!(put, Put::Begun) {
            self.give_up(piece.request_id);
        }
        put
    }

    fn place(&mut self, piece: &Piece<'_>) -> Put {
        let Piece { request_id, index, total, data } = *piece;
        if request_id.is_empty() || request_id.len() > 128 || index >= total {
            return Put::Malformed;
        }
        if total > MAX_PIECES {
            return Put::TooLarge;
        }
        let Ok(bytes) = STANDARD.decode(data) else { return Put::Malformed };
        if !self.messages.contains_key(request_id) {
            if self.messages.len() >= MAX_MESSAGES {
                return Put::TooLarge;
            }
            let n = usize::try_from(total).unwrap_or_default();
            let parts = Parts { pieces: vec![None; n], n_missing: n, size: 0 };
            self.messages.insert(request_id.into(), parts);
        }
        let Some(parts) = self.messages.get_mut(request_id) else { return Put::Malformed };
        if u32::try_from(parts.pieces.len()) != Ok(total) {
            return Put::Malformed;
        }
        let place = usize::try_from(index).ok().and_then(|at| parts.pieces.get_mut(at));
        let Some(place) = place else { return Put::Malformed };
        if place.is_some() {
            // The same piece again.
            return Put::Begun;
        }
        if self.size + bytes.len() > self.most {
            return Put::TooLarge;
        }
        self.size += bytes.len();
        parts.size += bytes.len();
        *place = Some(bytes.into());
        parts.n_missing -= 1;
        if parts.n_missing > 0 {
            return Put::Begun;
        }
        let whole: Vec<u8> =
            parts.pieces.iter().flatten().flat_map(|it| it.iter().copied()).collect();
        String::from_utf8(whole).map_or(Put::Malformed, Put::Whole)
    }

    fn give_up(&mut self, request_id: &str) {
        if let Some(parts) = self.messages.remove(request_id) {
            self.size -= parts.size;
        }
    }
}

/// Cuts a message into pieces if it is longer than `most`, and writes them; else it is sent as it is.
pub(crate) fn cut(request_id: &str, text: String, most: usize) -> Vec<String> {
    if text.len() <= most {
        return vec![text];
    }
    // A piece grows by a third, and has a head.
    let size = PIECE.min(most.saturating_sub(512) / 4 * 3).max(1);
    let total = text.len().div_ceil(size);
    let write = |(index, piece): (usize, &[u8])| {
        let data = STANDARD.encode(piece);
        format!(
            r#"{{"type":"chunk","request_id":"{request_id}","index":{index},"total":{total},"data":"{data}"}}"#
        )
    };
    text.as_bytes().chunks(size).enumerate().map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(request_id: &str, index: u32, total: u32, data: &[u8], to: &mut Assembly) -> Put {
        to.put(&Piece { request_id, index, total, data: &STANDARD.encode(data) })
    }

    #[test]
    fn pieces_come_together_in_any_order_and_twice() {
        // [UNITY-6]
        let mut assembly = Assembly::new(100);
        assert_eq!(piece("a", 1, 3, b"wor", &mut assembly), Put::Begun);
        assert_eq!(piece("b", 0, 2, b"other", &mut assembly), Put::Begun);
        assert_eq!(piece("a", 1, 3, b"wor", &mut assembly), Put::Begun);
        assert_eq!(piece("a", 0, 3, b"hello ", &mut assembly), Put::Begun);
        assert_eq!(piece("a", 2, 3, b"ld", &mut assembly), Put::Whole("hello world".to_owned()));
        assert_eq!(assembly.size, 5, "only the other is held");
    }

    #[test]
    fn what_is_held_is_bounded_and_what_is_given_up_is_freed() {
        // [UNITY-6]
        let mut assembly = Assembly::new(100);
        for n in 0..9 {
            let put = piece(&format!("m{n}"), 0, 2, b"x", &mut assembly);
            assert_eq!(put, if n < MAX_MESSAGES { Put::Begun } else { Put::TooLarge }, "{n}");
        }
        assert_eq!(piece("m0", 1, 2, &[b'y'; 100], &mut assembly), Put::TooLarge);
        assert_eq!(assembly.size, 7);
        assert_eq!(piece("m1", 1, 3, b"y", &mut assembly), Put::Malformed, "another total");
        assert_eq!(piece("m2", 5, 2, b"y", &mut assembly), Put::Malformed);
        assert_eq!(piece("huge", 0, u32::MAX, b"y", &mut assembly), Put::TooLarge);
        assert_eq!(
            assembly.put(&Piece { request_id: "m3", index: 1, total: 2, data: "!" }),
            Put::Malformed
        );
        assert_eq!((assembly.size, assembly.messages.len()), (4, 4));
        let broken = piece("m4", 1, 2, &[0xff], &mut assembly);
        assert_eq!(broken, Put::Malformed, "no UTF-8");
    }

    #[test]
    fn a_large_message_is_cut_and_every_piece_is_small_enough() {
        // [UNITY-6]
        for n in [10, 999, 1000, 1001, 5000, 2_000_000] {
            let text = "ü".repeat(n / 2);
            let most = if n > 10_000 { 1024 * 1024 } else { 1000 };
            let pieces = cut("r.1", text.clone(), most);
            assert!(pieces.iter().all(|piece| piece.len() <= most), "{n}");
            if pieces.len() == 1 {
                assert_eq!(pieces[0], text);
                continue;
            }
            let mut assembly = Assembly::new(usize::MAX);
            let mut whole = None;
            for piece in pieces {
                let value: serde_json::Value = serde_json::from_str(&piece).expect("JSON");
                let number = |name: &str| u32::try_from(value[name].as_u64().expect("a number"));
                let piece = Piece {
                    request_id: value["request_id"].as_str().expect("a name"),
                    index: number("index").expect("small"),
                    total: number("total").expect("small"),
                    data: value["data"].as_str().expect("data"),
                };
                if let Put::Whole(text) = assembly.put(&piece) {
                    whole = Some(text);
                }
            }
            assert_eq!(whole, Some(text), "{n}");
        }
    }
}
