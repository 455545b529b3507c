//! Awkward pages, each driven end to end: one file of `tests/pages` and one row here.

use serde_json::Value;

use super::{Rig, pages};

/// A page, and what is done on it: calls as JSON, each with words that its answer has to hold. A call
/// begins with `action` for `interact` and with `what` for `observe`; the tab is filled in.
struct Exhibit {
    page: &'static str,
    calls: &'static [(&'static str, &'static str)],
}

const fn exhibit(page: &'static str, calls: &'static [(&'static str, &'static str)]) -> Exhibit {
    Exhibit { page, calls }
}

/// Every page whose name begins with `zoo-`.
const ZOO: &[Exhibit] = &[
    exhibit(
        "zoo-strict-policy.html",
        &[
            (r#"{"what":"page_text"}"#, "Nothing runs here"),
            (r#"{"action":"execute_js","script":"(() => document.title)()"}"#, "strict policy"),
            (r##"{"action":"fill","selector":"#name","text":"Assam"}"##, "Assam"),
        ],
    ),
    exhibit(
        "zoo-dialogs.html",
        &[
            (r##"{"action":"click","selector":"#alert"}"##, "dismissed"),
            (r#"{"action":"execute_js","script":"window.went_on"}"#, "true"),
            (r#"{"action":"execute_js","script":"confirm('sure?') === false"}"#, "true"),
            (r#"{"action":"execute_js","script":"prompt('name?', 'x') === null"}"#, "true"),
        ],
    ),
    exhibit(
        "zoo-leave-me-not.html",
        &[
            (r##"{"action":"click","selector":"body"}"##, "complete"),
            (r#"{"action":"navigate","url":"about:blank"}"#, "about:blank"),
        ],
    ),
    exhibit(
        "zoo-debugger.html",
        &[(r#"{"action":"execute_js","script":"window.stop_here()"}"#, "went past")],
    ),
];

#[tokio::test]
async fn every_page_of_the_zoo_does_what_its_row_says() {
    let listed: Vec<&str> = ZOO.iter().map(|exhibit| exhibit.page).collect();
    let unlisted = pages::names().into_iter().filter(|name| name.starts_with("zoo-"));
    let unlisted: Vec<String> = unlisted.filter(|name| !listed.contains(&&**name)).collect();
    assert_eq!(unlisted, Vec::<String>::new(), "pages without a row");
    let rig = Rig::start().await;
    let mut complaints = Vec::new();
    for Exhibit { page, calls } in ZOO {
        let tab_id = rig.open(&rig.here(page)).await;
        for (call, words) in *calls {
            let mut arguments: Value = serde_json::from_str(call).expect("JSON");
            arguments["tab_id"] = tab_id.clone();
            let answer = rig.end(arguments).await;
            if !answer.to_string().contains(words) {
                complaints.push(format!("{page}: {call} has no `{words}`: {answer}"));
            }
        }
        rig.done(serde_json::json!({ "action": "tab_close", "tab_id": tab_id })).await;
    }
    rig.close().await;
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
