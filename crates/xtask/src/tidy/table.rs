//! Reads the tables of a Markdown page.

/// Returns the cells of the table below a heading, without its two head rows.
pub(super) fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    page.lines()
        .skip_while(|line| *line != heading)
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// Returns the words that stand in backticks.
pub(super) fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_below_a_heading_is_read_without_its_head() {
        let page = "## A\n| x |\n|---|\n| 1 |\n\n## B\n\nwords\n\n| x | y |\n|---|---|\n| `a` | `b`, `c` |\n\nend\n";
        assert_eq!(rows(page, "## B"), [["`a`", "`b`, `c`"]]);
        assert_eq!(quoted("`b`, `c` and d"), ["b", "c"]);
        assert!(rows(page, "## C").is_empty());
    }
}
