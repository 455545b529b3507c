//! "Did you mean": the nearest known word.

/// Returns the known word that is nearest to what was typed, when it is near enough to be meant.
pub(crate) fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = (typed.chars().count() / 3).max(1);
    known
        .map(|word| (distance(typed, word), word))
        .filter(|(distance, word)| *distance <= far || is_part(typed, word))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Tells whether one of two words of some length is the beginning of the other.
fn is_part(typed: &str, word: &str) -> bool {
    typed.len() >= 4 && (word.starts_with(typed) || typed.starts_with(word))
}

/// Counts the letters to add, drop or change between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let changed = diagonal + usize::from(x != *y);
            diagonal = *cell;
            left = changed.min(left + 1).min(diagonal + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["timeout_s", "wait_s", "command", "concurrency"];

    #[test]
    fn a_slip_of_the_hand_finds_the_word_that_was_meant() {
        let cases = [("timeout", "timeout_s"), ("wiat_s", "wait_s"), ("comand", "command")];
        for (typed, meant) in cases {
            assert_eq!(nearest(typed, KEYS.into_iter()), Some(meant), "{typed}");
        }
    }

    #[test]
    fn another_word_is_not_guessed_at() {
        assert_eq!(nearest("colour", KEYS.into_iter()), None);
        assert_eq!(nearest("x", KEYS.into_iter()), None);
    }
}
