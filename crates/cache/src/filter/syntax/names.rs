//! Names that filters of other places use, and what to write instead.

/// What is said to a filter that asks for the environment.
pub(super) const NO_ENVIRONMENT: &str =
    "a filter sees the cached body and nothing else: there is no environment to read";

const KEYWORDS: &[&str] = &[
    "def", "if", "then", "elif", "else", "end", "as", "reduce", "foreach", "try", "catch", "label",
    "import", "include", "module", "and", "or", "__loc__",
];

pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

/// Why a name of jq does not exist here; `None` for any other name.
pub(super) fn removed(name: &str) -> Option<&'static str> {
    Some(match name {
        "env" => NO_ENVIRONMENT,
        "input" | "inputs" => "there is one input, the cached body: write `.`",
        "halt" | "halt_error" => "a filter cannot end the program: use `empty`, or `error(\"…\")`",
        "debug" | "stderr" => {
            "a filter has no place to log to: leave it out, or put the value into the output"
        }
        "input_filename" | "input_line_number" | "get_search_list" => {
            "the body is not read from a file: leave this out"
        }
        "import" | "include" | "module" | "modulemeta" => {
            "modules cannot be loaded: write the `def` into the filter"
        }
        "builtins" => {
            "the filters are those of jq 1.8, without input, output, environment and modules"
        }
        _ => return None,
    })
}

/// What to write instead of a habit of another language.
pub(super) fn habit(text: &str) -> Option<&'static str> {
    Some(match text {
        "==" | "!=" => {
            "a comparison needs a term on both sides, and parentheses around another comparison"
        }
        "|" => "a filter is missing before this `|`; what other languages write `||` is `or`",
        "}" | "]" | ")" => "this bracket closes nothing, or what it closes is not complete",
        "import" | "include" | "module" => {
            "modules cannot be loaded: write the `def` into the filter"
        }
        _ => return None,
    })
}

/// What to say of an undefined filter; the nearest known name if one is near.
pub(in crate::filter) fn hint_for<'n>(
    name: &str,
    arity: usize,
    known: impl Iterator<Item = (&'n str, usize)>,
) -> String {
    if let Some(hint) = removed(name) {
        return hint.to_owned();
    }
    let mut near = None;
    let mut arities = Vec::new();
    for (other, other_arity) in known.filter(|(other, _)| !other.starts_with('_')) {
        if other == name {
            arities.push(other_arity);
        }
        let distance = distance(name, other);
        if near.is_none_or(|(best, _)| distance < best) {
            near = Some((distance, other));
        }
    }
    arities.sort_unstable();
    arities.dedup();
    if let Some(first) = arities.first() {
        let wanted = arities.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        let shown = format!("{name}({})", vec!["…"; (*first).max(1)].join("; "));
        return format!(
            "`{name}` takes {wanted} arguments, not {arity}; arguments are separated by `;`, as in `{shown}`"
        );
    }
    match near {
        Some((distance, other)) if distance <= 2 && distance < name.len() => {
            format!("there is no filter `{name}`: did you mean `{other}`, or the key `.{name}`?")
        }
        _ => format!("there is no filter `{name}`: a key is written `.{name}`"),
    }
}

/// The number of letters to change between two short names.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = i;
        let mut left_cell = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left_cell;
        }
        for (b, cell) in right.iter().zip(row.iter_mut().skip(1)) {
            let cost = diagonal + usize::from(a != *b);
            diagonal = *cell;
            *cell = cost.min(diagonal + 1).min(left_cell + 1);
            left_cell = *cell;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_shown() {
        assert_eq!(distance("lenght", "length"), 2);
        assert_eq!(distance("", "abc"), 3);
        let known = || [("length", 0), ("sub", 2), ("sub", 3)].into_iter();
        assert!(hint_for("lengt", 0, known()).contains("`length`"));
        assert!(hint_for("sub", 1, known()).contains("2 or 3"));
        assert!(hint_for("items", 0, known()).contains("`.items`"));
    }
}
