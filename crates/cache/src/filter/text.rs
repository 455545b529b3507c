//! A filter as it was written, checked.

use super::{engine, paths, syntax};

/// How long the text of a filter may be, in bytes.
pub const MAX_FILTER_BYTES: usize = 8 << 10;

/// A filter that is known to be well formed, and to call nothing that is not there.
#[derive(Debug, Clone)]
pub struct Filter {
    text: String,
    plan: Option<paths::Plan>,
}

/// Why a text is not a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid filter at line {line}, column {column}: {hint}")]
pub struct InvalidFilter {
    /// The line of the fault, from 1.
    pub line: usize,
    /// The column of the fault in characters, from 1.
    pub column: usize,
    /// What stands there, cut after some characters; empty at the end of the text.
    pub near: String,
    /// What to write instead.
    pub hint: String,
}

impl Filter {
    /// Checks the text of a filter.
    ///
    /// The language is jq's, without input, output, environment, modules and the end of the program.
    ///
    /// # Errors
    ///
    /// Says where the text is wrong, and what to write instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use raincheck_cache::Filter;
    ///
    /// assert!(Filter::parse(".items | map(select(.flag)) | length").is_ok());
    /// let wrong = Filter::parse(".items | lenght").unwrap_err();
    /// assert_eq!((wrong.line, wrong.column), (1, 10));
    /// assert!(wrong.hint.contains("length"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidFilter> {
        if text.len() > MAX_FILTER_BYTES {
            let hint = format!(
                "a filter has at most {MAX_FILTER_BYTES} bytes, and this has {}: write it shorter",
                text.len()
            );
            return Err(InvalidFilter {
                line: 1,
                column: 1,
                near: text.chars().take(40).collect(),
                hint,
            });
        }
        let lines = syntax::Lines::default();
        let term = syntax::program(text, &lines).map_err(|problem| invalid(text, problem))?;
        let plan = paths::Plan::of(&term);
        if plan.is_none() {
            engine::compile(text, term).map_err(|problem| invalid(text, problem))?;
        }
        Ok(Self { text: text.to_owned(), plan })
    }

    /// Returns the filter as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the filter follows paths only, so that it runs on the bytes.
    #[must_use]
    pub const fn is_path(&self) -> bool {
        self.plan.is_some()
    }

    pub(super) const fn plan(&self) -> Option<&paths::Plan> {
        self.plan.as_ref()
    }
}

fn invalid(text: &str, problem: syntax::Problem) -> InvalidFilter {
    let before = text.get(..problem.at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    InvalidFilter {
        line: 1 + before.matches('\n').count(),
        column: 1 + before.get(line_start..).unwrap_or_default().chars().count(),
        near: problem.near,
        hint: problem.hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> InvalidFilter {
        Filter::parse(text).unwrap_err()
    }

    #[test]
    fn an_invalid_filter_says_where_and_what_to_write() {
        let table = [
            (".items[", 1, 8, "ends too soon"),
            (".items |\n map(select(", 2, 13, "ends too soon"),
            ("}{", 1, 1, "closes nothing"),
            (".a b c", 1, 4, "the end"),
            ("\"unclosed", 1, 1, "close the string"),
            (".é", 1, 2, "[\"key\"]"),
            (".a && .b", 1, 4, "`and`"),
            ("'x'", 1, 1, "double quotes"),
            (".a || .b", 1, 5, "`or`"),
            ("if . then 1", 1, 12, "`end`"),
            ("map(.a, .b; .c)", 1, 1, "takes 1 arguments"),
            ("lenght", 1, 1, "`length`"),
            (". as $x | $y", 1, 11, "bound nowhere"),
            ("break $out", 1, 7, "label"),
            ("{1: 2}", 1, 3, "quotes"),
            ("reduce .[] as $x (0)", 1, 18, "reduce SOURCE"),
            ("\"\\q\"", 1, 2, "backslash"),
            ("{", 1, 2, "key"),
            (".a |", 1, 5, "ends too soon"),
        ];
        for (text, line, column, hint) in table {
            let wrong = wrong(text);
            assert_eq!((wrong.line, wrong.column), (line, column), "{text}: {wrong:?}");
            assert!(wrong.hint.contains(hint), "{text}: {wrong:?}");
        }
    }

    #[test]
    fn nothing_outside_of_the_body_can_be_named() {
        for text in [
            "env",
            "$ENV",
            "env.HOME",
            "$ENV.PATH",
            "[env|keys[]]",
            "input",
            "[inputs]",
            "halt",
            "halt_error",
            "\"x\"|halt_error(3)",
            "import \"a\" as a; .",
            "include \"a\"; .",
            "import \"/etc/passwd\" as $d; $d",
            "input_filename",
            "debug",
            "debug(1)",
            "stderr",
            "get_search_list",
            "input_line_number",
            "\"\\(env)\"",
            "modulemeta",
            "$__prog_args",
            "a::b",
            "error_empty",
            "debug_empty",
        ] {
            assert!(!wrong(text).hint.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_deep_or_long_text_is_refused_without_harm() {
        let deep = [
            "(".repeat(5000),
            "[".repeat(8000),
            "{a:".repeat(2000),
            "-".repeat(8000),
            "\"\\(".repeat(2000),
            "if ".repeat(2000),
            "try ".repeat(2000),
            "def f: ".repeat(1000),
            "reduce ".repeat(1000),
            ". as [".repeat(1000),
            ". as $x | ".repeat(800),
            "1+".repeat(4000),
            "1 // ".repeat(1600),
            "label $x | ".repeat(700),
            ".[".repeat(4000),
            "map(".repeat(2000),
            ". as ".to_owned() + &"[".repeat(5000),
            ".a".repeat(4000),
            "?".repeat(8000),
            "a".repeat(70_000),
            "\"".to_owned() + &"(".repeat(50_000),
            "[".repeat(20_000),
        ];
        for text in deep {
            let closed = format!("{text}.");
            assert!(
                Filter::parse(&text).is_err() && Filter::parse(&closed).is_err(),
                "{}",
                &text[..20]
            );
        }
        let flat = [
            "1,".repeat(4000) + "1",
            ".|".repeat(4000) + ".",
            "[".to_owned() + &"1,".repeat(4000) + "1]",
        ];
        for text in flat {
            assert!(Filter::parse(&text).is_ok(), "{}", &text[..20]);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_does_harm(text in "[a-c.|,()\\[\\]{}:;?$@\"\\\\/=<>+*%#\n -]{0,60}|(def f: | as |reduce |if | then |else | end|try |label |\\.a|[|,()\\[\\]{}$x])*") {
            if let Err(wrong) = Filter::parse(&text) {
                proptest::prop_assert!(wrong.line >= 1 && wrong.column >= 1 && !wrong.hint.is_empty());
                proptest::prop_assert!(wrong.line <= 1 + text.matches('\n').count() && wrong.column <= 1 + text.chars().count());
            }
        }
    }

    #[test]
    fn a_filter_runs_on_the_bytes_if_it_follows_paths() {
        for text in [
            ".",
            ".a.b",
            ".a[].b",
            ".a[1:3]",
            "length",
            ".a|length",
            "keys",
            "map({a, b: .c.d})",
            ".[]|select(.x==1)",
            "[.a[]|select(.b|contains(\"x\"))|.c]|length",
        ] {
            assert!(Filter::parse(text).unwrap().is_path(), "{text}");
        }
        for text in ["..", "map(.a+1)", "def f: .; f", ".a[.b]"] {
            assert!(!Filter::parse(text).unwrap().is_path(), "{text}");
        }
    }
}
