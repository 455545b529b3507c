use super::*;
use crate::{
    json::{scan, scan_text},
    samples,
};

fn search(body: &str, query: &Query, skip: usize, bytes: usize) -> Hits {
    let body = body.as_bytes();
    let index = scan(body).unwrap();
    let budget = Budget { bytes: Some(bytes), overhead: 0, is_escaped: true };
    let found = View::new(&body, &index).search(query, skip, budget).unwrap();
    let blocks = samples::Blocks(body.to_vec());
    assert_eq!(View::new(&blocks, &index).search(query, skip, budget).unwrap(), found);
    let answer = serde_json::to_string(&serde_json::to_string(&found).unwrap()).unwrap();
    assert!(answer.len() <= bytes.max(700), "{}", answer.len());
    found
}

fn paths(hits: &Hits) -> Vec<&str> {
    hits.hits.iter().map(|hit| hit.path.as_str()).collect()
}

const BODY: &str = r#"{"items":[{"name":"Door","id":17},{"name":"a\ndoor\nDOOR","sub":{"door~/x":true}},{"t":"\u0044oor"}],"n":null}"#;

#[test]
fn names_and_values_are_found_whatever_their_case_and_escapes() {
    let found = search(BODY, &Query::literal("door").unwrap(), 0, 4096);
    assert_eq!(
        paths(&found),
        ["/items/0/name", "/items/1/name", "/items/1/name", "/items/1/sub/door~0~1x", "/items/2/t"]
    );
    let lines: Vec<_> = found.hits.iter().map(|hit| (hit.line, hit.index, hit.is_name)).collect();
    assert_eq!(
        lines,
        [
            (1, Some(0), false),
            (2, Some(1), false),
            (3, Some(1), false),
            (1, Some(1), true),
            (1, Some(2), false)
        ]
    );
    assert_eq!(found.next_skip, None);
    assert_eq!(paths(&search(BODY, &Query::literal("17").unwrap(), 0, 4096)), ["/items/0/id"]);
    assert_eq!(paths(&search(BODY, &Query::regex("^null$").unwrap(), 0, 4096)), ["/n"]);
    assert_eq!(paths(&search(BODY, &Query::regex("D[o]+r").unwrap(), 0, 4096)).len(), 2);
    assert!(search(BODY, &Query::literal("window").unwrap(), 0, 4096).hits.is_empty());
}

#[test]
fn hits_come_in_pages_that_keep_their_size_and_lose_none() {
    let items: Vec<String> =
        (0..120).map(|n| format!(r#""needle \"{n}\" {}""#, "x".repeat(n % 90))).collect();
    let body = format!("[{}]", items.join(","));
    let query = Query::literal("needle").unwrap();
    for bytes in [1, 2000, 65_536] {
        let mut seen = Vec::new();
        let mut skip = Some(0);
        while let Some(from) = skip {
            let found = search(&body, &query, from, bytes);
            assert!(!found.hits.is_empty() && found.hits.len() <= MAX_HITS);
            assert!(bytes > 1 || found.hits.len() == 1);
            seen.extend(found.hits.iter().filter_map(|hit| hit.index));
            skip = found.next_skip;
        }
        assert_eq!(seen, (0..120).collect::<Vec<_>>());
    }
}

#[test]
fn a_snippet_ends_between_characters() {
    let family = "👨‍👩‍👧‍👦".repeat(100);
    let body = format!(r#"["{family}here{family}"]"#);
    let found = search(&body, &Query::literal("here").unwrap(), 0, 65_536);
    let snippet = &found.hits[0].snippet;
    assert!(snippet.starts_with("…👨") && snippet.contains("here") && snippet.ends_with('…'));
    let all = search(&body, &Query::regex(".*").unwrap(), 0, 65_536);
    assert!(all.hits[0].snippet.len() < 4000);
}

#[test]
fn a_text_is_searched_line_by_line() {
    let lines: Vec<String> =
        (1..9000).map(|n| format!("line {n} {}", "→".repeat(n % 90))).collect();
    let body = lines.join("\n");
    let body = body.as_bytes();
    let index = scan_text(body).unwrap();
    let query = Query::regex("^line (7|7000|8999) ").unwrap();
    let found = View::new(&body, &index).search(&query, 0, Budget::default()).unwrap();
    assert_eq!(found.hits.iter().map(|hit| hit.line).collect::<Vec<_>>(), [7, 7000, 8999]);
}

#[test]
fn a_query_that_cannot_be_used_says_why() {
    assert_eq!(Query::literal("").unwrap_err(), InvalidQuery::Length);
    assert_eq!(Query::literal(&"x".repeat(1001)).unwrap_err(), InvalidQuery::Length);
    for pattern in ["(", "a{99999999}", "((a{500}){500}){500}", &"(".repeat(900)] {
        assert!(matches!(Query::regex(pattern), Err(InvalidQuery::Regex(_))), "{pattern}");
    }
    let body = format!(r#"["{}"]"#, "a".repeat(50_000));
    assert!(search(&body, &Query::regex("(a+)+$x").unwrap(), 0, 4096).hits.is_empty());
}

#[test]
fn a_long_line_is_looked_at_in_parts_and_nothing_between_them_is_missed() {
    let regex = Query::regex("b+c").expect("an expression");
    for n_before in [WINDOW - 3, WINDOW - 1, WINDOW, 3 * WINDOW - 2] {
        let line = format!("{}bbbc{}", "a".repeat(n_before), "a".repeat(WINDOW));
        let mut found = Found::new(&regex, 0, Budget::default());
        assert_eq!(found.in_line(&line).expect("in time"), Some((n_before, n_before + 4)));
    }
}

#[test]
fn an_expression_that_takes_too_long_is_stopped() {
    let regex = Query::regex("[ab]*a[ab]{9}c").expect("an expression");
    let mut found = Found::new(&regex, 0, Budget::default());
    found.until = Some(now());
    let error = found.in_line(&"ab".repeat(WINDOW)).expect_err("stopped");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let short = (0..WINDOW / LINE).find_map(|_| found.in_line("ab").err()).expect("stopped");
    assert_eq!(short.kind(), io::ErrorKind::TimedOut, "many short lines take their time, too");
    assert!(Query::regex("[ -~]{0,3000}[0-4]").is_err(), "what takes much at each step is refused");
}

#[test]
fn one_hit_fits_however_long_its_name_and_its_characters_are() {
    let long = format!("a{}needle", "\u{301}".repeat(50_000));
    let budget = Budget { bytes: Some(16 << 10), ..Budget::default() };
    for body in
        [format!("{{\"k\":\"{long}\"}}"), format!("{{\"{}\":\"needle\"}}", "k".repeat(90_000))]
    {
        let index = scan(body.as_bytes()).expect("JSON");
        let bytes = body.as_bytes();
        let view = View::new(&bytes, &index);
        let hits = view.search(&Query::literal("needle").expect("text"), 0, budget).expect("found");
        assert_eq!(hits.hits.len(), 1);
        let told = serde_json::to_string(&hits).expect("JSON");
        assert!(told.len() <= 16 << 10, "{} bytes", told.len());
        assert_eq!(hits.hits[0].is_cut, body.starts_with("{\"kk"));
    }
}
