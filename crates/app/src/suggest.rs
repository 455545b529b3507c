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

/// Counts the letters to add, drop or change between two words, and the neighbours to swap (optimal string
/// alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX / 2);
    let (mut before, mut last) = (Vec::new(), (0..=b.len()).collect::<Vec<usize>>());
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let changed = at(&last, j) + usize::from(x != y);
            let mut least = changed.min(at(&row, j) + 1).min(at(&last, j + 1) + 1);
            let is_swapped = |i: usize, j: usize| a.get(i) == Some(y) && b.get(j) == Some(x);
            if i > 0 && j > 0 && is_swapped(i - 1, j - 1) {
                least = least.min(at(&before, j - 1) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    at(&last, b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["timeout_s", "wait_s", "command", "concurrency"];

    #[test]
    fn a_slip_of_the_hand_finds_the_word_that_was_meant() {
        assert_eq!((distance("ehco", "echo"), distance("", "abc"), distance("abc", "")), (1, 3, 3));
        assert_eq!((distance("ca", "abc"), distance("same", "same")), (3, 0));
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
