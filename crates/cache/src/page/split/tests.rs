use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation as _;

use super::*;

/// Cuts all of `raw`; returns what the pieces say and how many end inside a character.
fn pieces(raw: &str, room: usize, writing: Writing, is_escaped: bool) -> (Vec<String>, usize) {
    let raw = raw.as_bytes();
    let mut at = 0;
    let mut n_inside = 0;
    let mut pieces = Vec::new();
    while at < raw.len() {
        let end = raw.len().min(at + room + LOOKAHEAD);
        let cut = cut(&raw[at..end], room, writing, is_escaped).expect("a character fits");
        assert!(cut.bytes > 0);
        let mut json = Vec::new();
        writing.write(&raw[at..at + cut.bytes], &mut json);
        let sent = if is_escaped {
            serde_json::to_string(std::str::from_utf8(&json).unwrap()).unwrap().len() - 2 - 4
        } else {
            json.len() - 2
        };
        assert!(sent <= room, "{sent} in {room}");
        pieces.push(serde_json::from_slice(&json).unwrap());
        n_inside += usize::from(cut.is_inside);
        at += cut.bytes;
    }
    (pieces, n_inside)
}

#[test]
fn a_line_end_in_the_second_half_is_preferred() {
    let text = "first line\\nsecond line\\nthird line which is long";
    let (found, _) = pieces(text, 30, Writing::Json, false);
    assert_eq!(found[0], "first line\nsecond line\n");
    assert_eq!(found.concat(), "first line\nsecond line\nthird line which is long");
}

#[test]
fn a_character_longer_than_a_piece_is_cut_and_that_is_said() {
    let run = format!("e{}x", "\u{301}".repeat(300));
    let (found, n_inside) = pieces(&run, 64, Writing::Json, false);
    assert_eq!(found.concat(), run);
    assert!(n_inside > 5, "{n_inside}");
    let (_, n_inside) = pieces(&"👨‍👩‍👧‍👦".repeat(99), 64, Writing::Json, false);
    assert_eq!(n_inside, 0);
}

#[test]
fn flags_are_counted_from_where_they_begin() {
    let flags = "🇩🇪".repeat(400);
    for room in 64..90 {
        let (found, n_inside) = pieces(&flags, room, Writing::Plain, true);
        assert_eq!(n_inside, 0);
        assert!(found.iter().all(|piece| piece.chars().count() % 2 == 0), "{room}");
    }
}

proptest! {
    #[test]
    fn pieces_give_the_string_back_and_cut_no_character(
        words in prop::collection::vec(
            prop_oneof![
                Just("👨‍👩‍👧‍👦"), Just("e\u{301}"), Just("가"), Just("\u{1100}\u{1161}"), Just("🇩🇪"), Just("\r\n"),
                Just("\n"), Just("\""), Just("\\"), Just("\u{7}"), Just("plain text "), Just("क्षि"), Just("→"),
                Just("\u{0}"), Just("😀"),
            ],
            1..200,
        ),
        room in 80_usize..400,
        is_escaped: bool,
        is_ascii: bool,
    ) {
        let text = words.concat();
        let boundaries: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
        let mut json = serde_json::to_string(&text).unwrap();
        if is_ascii {
            let value = serde_json::Value::from(text.as_str());
            json = String::from_utf8(crate::samples::write(&value, 2)).unwrap();
        }
        for (raw, writing) in [(&json[1..json.len() - 1], Writing::Json), (&text, Writing::Plain)] {
            let (found, n_inside) = pieces(raw, room, writing, is_escaped);
            prop_assert_eq!(found.concat(), text.as_str());
            let mut at = 0;
            for piece in &found {
                prop_assert!(n_inside > 0 || boundaries.contains(&at), "{} of {:?}", at, found);
                at += piece.len();
            }
            let longest = text.graphemes(true).map(str::len).max().unwrap_or(0);
            prop_assert!(n_inside == 0 || longest * 7 > room);
        }
    }
}
