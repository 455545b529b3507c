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

/// A message of which pieces have come.
#[derive(Debug)]
enum Message {
    /// It is being put together.
    Parts(Parts),
    /// It was given up; so many of its pieces are still to come, and are dropped.
    GivenUp(u32),
}

/// The messages of one connection that are being put together.
#[derive(Debug)]
pub(crate) struct Assembly {
    messages: BTreeMap<Box<str>, Message>,
    size: usize,
    most: usize,
}

impl Assembly {
    /// Takes in at most `most` bytes at once, of all messages together.
    pub(crate) const fn new(most: usize) -> Self {
        Self { messages: BTreeMap::new(), size: 0, most }
    }

    /// Puts a piece in its place. Of a message that is given up it is said once; what still comes of it
    /// begins no message anew.
    pub(crate) fn put(&mut self, piece: &Piece<'_>) -> Put {
        if let Some(Message::GivenUp(n_missing)) = self.messages.get_mut(piece.request_id) {
            *n_missing = n_missing.saturating_sub(1);
            if *n_missing == 0 {
                self.messages.remove(piece.request_id);
            }
            return Put::Begun;
        }
        let put = self.place(piece);
        match put {
            Put::Begun => {}
            Put::Whole(_) => drop(self.take(piece.request_id)),
            Put::TooLarge | Put::Malformed => self.give_up(piece),
        }
        put
    }

    fn place(&mut self, piece: &Piece<'_>) -> Put {
        let Piece { request_id, index, total, data } = *piece;
        if !is_name(request_id) || index >= total {
            return Put::Malformed;
        }
        if total > MAX_PIECES {
            return Put::TooLarge;
        }
        let Ok(bytes) = STANDARD.decode(data) else { return Put::Malformed };
        if !self.messages.contains_key(request_id) {
            if !self.make_room() {
                return Put::TooLarge;
            }
            let n = usize::try_from(total).unwrap_or_default();
            let parts = Parts { pieces: vec![None; n], n_missing: n, size: 0 };
            self.messages.insert(request_id.into(), Message::Parts(parts));
        }
        let Some(Message::Parts(parts)) = self.messages.get_mut(request_id) else {
            return Put::Malformed;
        };
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

    /// Tells whether there is a place for one more message. One that was given up leaves its place.
    fn make_room(&mut self) -> bool {
        if self.messages.len() < MAX_MESSAGES {
            return true;
        }
        let mut all = self.messages.iter();
        let given_up = all.find(|(_, message)| matches!(message, Message::GivenUp(_)));
        let Some(name) = given_up.map(|(name, _)| name.clone()) else { return false };
        self.messages.remove(&name);
        true
    }

    fn take(&mut self, request_id: &str) -> Option<Parts> {
        match self.messages.remove(request_id) {
            Some(Message::Parts(parts)) => {
                self.size -= parts.size;
                Some(parts)
            }
            Some(Message::GivenUp(_)) | None => None,
        }
    }

    /// Frees what is held of a message, and remembers how much of it is still to come.
    fn give_up(&mut self, piece: &Piece<'_>) {
        let parts = self.take(piece.request_id);
        let n_seen = parts.map_or(0, |parts| parts.pieces.iter().flatten().count());
        // The piece at hand is one more, unless it is the one that made the message whole.
        let n_seen = u32::try_from(n_seen).unwrap_or(u32::MAX).saturating_add(1);
        let n_missing = piece.total.saturating_sub(n_seen);
        if n_missing > 0 && is_name(piece.request_id) && self.make_room() {
            self.messages.insert(piece.request_id.into(), Message::GivenUp(n_missing));
        }
    }
}

fn is_name(request_id: &str) -> bool {
    (1..=128).contains(&request_id.len())
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
        let is_held = |message: &&Message| matches!(message, Message::Parts(_));
        let n_held = assembly.messages.values().filter(is_held).count();
        assert_eq!((assembly.size, n_held), (4, 4));
        let broken = piece("m4", 1, 2, &[0xff], &mut assembly);
        assert_eq!(broken, Put::Malformed, "no UTF-8");
    }

    #[test]
    fn what_still_comes_of_a_message_that_was_given_up_takes_no_room() {
        // [UNITY-6]
        let mut assembly = Assembly::new(10);
        for n in 0..3 * MAX_MESSAGES {
            let name = format!("large{n}");
            assert_eq!(piece(&name, 0, 4, b"0123456", &mut assembly), Put::Begun);
            assert_eq!(piece(&name, 1, 4, b"0123456", &mut assembly), Put::TooLarge);
            assert_eq!(piece(&name, 2, 4, b"0123456", &mut assembly), Put::Begun, "said once");
            assert_eq!(piece(&name, 3, 4, b"0123456", &mut assembly), Put::Begun);
            assert_eq!((assembly.size, assembly.messages.len()), (0, 0), "{n}");
        }
        // The rest of these never comes.
        for n in 0..3 * MAX_MESSAGES {
            assert_eq!(piece(&format!("cut{n}"), 0, 3, &[b'x'; 11], &mut assembly), Put::TooLarge);
        }
        assert!(assembly.messages.len() <= MAX_MESSAGES);
        assert_eq!(piece("small", 0, 2, b"a", &mut assembly), Put::Begun);
        assert_eq!(piece("small", 1, 2, b"b", &mut assembly), Put::Whole("ab".to_owned()));
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
