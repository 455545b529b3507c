//! Awkward pages, each driven end to end: one file of `tests/pages` and one row here.

use serde_json::{Value, json};

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
    exhibit(
        "zoo-framework-input.html",
        &[
            (r##"{"action":"fill","selector":"#name","text":"Oolong"}"##, "Oolong"),
            (r#"{"what":"page_text"}"#, "state is Oolong"),
        ],
    ),
    exhibit(
        "zoo-shadow.html",
        &[
            (r#"{"what":"snapshot"}"#, "slotted words"),
            (r##"{"action":"click","selector":"#deep"}"##, "real"),
            (r##"{"action":"type","selector":"#field","text":"typed deep"}"##, "typed deep"),
            (r#"{"action":"wait_for","text":"deep was clicked"}"#, "complete"),
        ],
    ),
    exhibit(
        "zoo-frame-of-another-site.html",
        &[
            (r#"{"action":"wait_for","selector":"[placeholder='card text']"}"#, "complete"),
            (r##"{"action":"type","selector":"[placeholder='card text']","text":"4242"}"##, "4242"),
            (r#"{"action":"click","selector":"button"}"#, "card"),
            (r#"{"what":"page_text"}"#, "card was clicked"),
        ],
    ),
    exhibit(
        "zoo-scaled-frame.html",
        &[
            (r#"{"action":"wait_for","text":"small"}"#, "complete"),
            (r#"{"action":"click","selector":"button"}"#, "small"),
            (r#"{"what":"snapshot"}"#, "small was clicked"),
        ],
    ),
    exhibit(
        "zoo-sticky.html",
        &[
            (r##"{"action":"click","selector":"#low"}"##, "complete"),
            (r#"{"action":"execute_js","script":"document.title"}"#, "low was clicked"),
            (r#"{"what":"screenshot","full_page":true}"#, r#""height":1568"#),
        ],
    ),
    exhibit(
        "zoo-covered.html",
        &[
            (r##"{"action":"click","selector":"#under","timeout_ms":60000}"##, "covered by"),
            (r##"{"action":"click","selector":"#away"}"##, "complete"),
            (r##"{"action":"click","selector":"#under"}"##, "complete"),
        ],
    ),
    exhibit(
        "zoo-editor.html",
        &[
            (r##"{"action":"fill","selector":"#editor","text":"new words"}"##, "new words"),
            (
                r##"{"action":"type","selector":"#editor","text":" and more"}"##,
                "new words and more",
            ),
        ],
    ),
    exhibit(
        "zoo-endless.html",
        &[
            (r#"{"action":"scroll","y":100000}"#, "max_y"),
            (r#"{"action":"wait_for","text":"row 45"}"#, "complete"),
        ],
    ),
    exhibit("zoo-popup.html", &[(r##"{"action":"click","selector":"#open"}"##, "opened_tab_id")]),
    exhibit("zoo-download.html", &[(r##"{"action":"click","selector":"#get"}"##, "complete")]),
    exhibit(
        "zoo-svg.html",
        &[
            (r#"{"what":"snapshot"}"#, "First bar"),
            (r##"{"action":"click","selector":"#bar"}"##, "complete"),
            (r#"{"action":"execute_js","script":"document.title"}"#, "bar was clicked"),
        ],
    ),
    exhibit(
        "zoo-replaced.html",
        &[
            (r#"{"action":"execute_js","script":"[1, { a: [2] }]"}"#, r#""result":[1,{"a":[2]}]"#),
            (r#"{"what":"snapshot"}"#, "Replaced"),
        ],
    ),
    exhibit(
        "zoo-polluted.html",
        &[
            (r#"{"action":"execute_js","script":"({ a: [1] })"}"#, r#""result":{"a":[1]}"#),
            (r#"{"what":"page_text"}"#, "Polluted"),
        ],
    ),
    exhibit(
        "zoo-table.html",
        &[
            (r#"{"what":"snapshot","selector":"tr:nth-child(300)"}"#, "299.19"),
            (r#"{"what":"snapshot","depth":1}"#, "deeper than"),
        ],
    ),
    exhibit(
        "zoo-right-to-left.html",
        &[
            (r##"{"action":"click","selector":"#order"}"##, "اطلب"),
            (r#"{"what":"page_text"}"#, "txet"),
            (r#"{"what":"snapshot"}"#, "تم"),
        ],
    ),
    exhibit(
        "zoo-canvas.html",
        &[
            (r##"{"action":"click","selector":"#board"}"##, "complete"),
            (r#"{"action":"execute_js","script":"document.title"}"#, "hit at 100,50"),
            (r#"{"what":"screenshot"}"#, "image/jpeg"),
            (r##"{"what":"screenshot","selector":"#board"}"##, r#""height":100"#),
        ],
    ),
    exhibit(
        "zoo-never-done.html",
        &[
            (r##"{"action":"click","selector":"#go"}"##, "complete"),
            (r#"{"what":"page_text"}"#, "First words"),
        ],
    ),
    exhibit("zoo-stuck-script.html", &[(r#"{"what":"page_text"}"#, "Above the script")]),
    exhibit(
        "zoo-service-worker.html",
        &[(r#"{"action":"wait_for","text":"words of the worker"}"#, "complete")],
    ),
    exhibit("zoo-print.html", &[(r##"{"action":"click","selector":"#print"}"##, "complete")]),
    exhibit(
        "zoo-clobbered-form.html",
        &[
            (r#"{"what":"snapshot"}"#, r#"textbox \"one\""#),
            (r##"{"action":"fill","selector":"[name=tagName]","text":"tea"}"##, "tea"),
            (
                r##"{"action":"execute_js","script":"document.querySelector('#form')"}"##,
                "<form id=",
            ),
        ],
    ),
    exhibit(
        "zoo-moving.html",
        &[
            (r##"{"action":"click","selector":"#moves"}"##, "complete"),
            (r#"{"action":"execute_js","script":"document.title"}"#, "caught"),
        ],
    ),
    exhibit(
        "zoo-late.html",
        &[
            (r##"{"action":"click","selector":"#late"}"##, "complete"),
            (r#"{"action":"execute_js","script":"document.title"}"#, "late was clicked"),
        ],
    ),
    exhibit(
        "zoo-hidden-checkbox.html",
        &[
            (r##"{"action":"click","selector":"#label"}"##, "complete"),
            (
                r##"{"action":"execute_js","script":"document.querySelector('#box').checked"}"##,
                "true",
            ),
        ],
    ),
    exhibit(
        "zoo-modal.html",
        &[
            (r##"{"action":"click","selector":"#behind","timeout_ms":1500}"##, "covered by"),
            (r##"{"action":"click","selector":"#yes"}"##, "complete"),
            (r#"{"action":"execute_js","script":"document.title"}"#, "said yes"),
        ],
    ),
    exhibit(
        "zoo-fields.html",
        &[
            (r##"{"action":"fill","selector":"#date","text":"2026-11-29"}"##, "2026-11-29"),
            (r##"{"action":"fill","selector":"#date","text":"soon"}"##, "does not take"),
            (r##"{"action":"fill","selector":"#number","text":"4.5"}"##, "4.5"),
            (r##"{"action":"fill","selector":"#color","text":"#00ff00"}"##, "#00ff00"),
            (r##"{"action":"fill","selector":"#range","text":"7"}"##, "7"),
            (r##"{"action":"fill","selector":"#list","text":"two"}"##, "2"),
            (r##"{"action":"select","selector":"#list","value":"one"}"##, "one"),
            (r##"{"action":"fill","selector":"#area","text":"two\nlines"}"##, "two lines"),
            (r#"{"what":"snapshot"}"#, "••••"),
            (r#"{"what":"snapshot"}"#, r#"combobox \"Choice\" ["#),
        ],
    ),
    exhibit(
        "zoo-halves.html",
        &[
            (r#"{"what":"page_text"}"#, "a half \u{fffd} of one"),
            (
                r##"{"action":"execute_js","script":"document.querySelector('#text').textContent"}"##,
                "a half \u{fffd} of one",
            ),
        ],
    ),
    exhibit(
        "zoo-history.html",
        &[
            (r##"{"action":"click","selector":"#next"}"##, "complete"),
            (r#"{"action":"execute_js","script":"location.search"}"#, "page=2"),
            (r##"{"action":"click","selector":"#hash"}"##, "complete"),
            (r#"{"action":"execute_js","script":"location.hash"}"#, "#part"),
            (r#"{"action":"back"}"#, "complete"),
            (r#"{"action":"back"}"#, "zoo-history.html"),
        ],
    ),
    exhibit(
        "zoo-scroll-box.html",
        &[
            (r##"{"action":"click","selector":"#low"}"##, "complete"),
            (r#"{"action":"execute_js","script":"document.title"}"#, "found below"),
        ],
    ),
    exhibit(
        "zoo-many-frames.html",
        &[
            (r#"{"action":"wait_for","text":"frame number 29"}"#, "complete"),
            (r#"{"what":"snapshot"}"#, "frame number 17"),
        ],
    ),
    exhibit("zoo-self-closing.html", &[(r#"{"action":"wait_for","text":"Plain"}"#, "complete")]),
    exhibit(
        "zoo-pointer-div.html",
        &[
            (r#"{"what":"snapshot"}"#, "Open the card"),
            (r##"{"action":"click","selector":"#card"}"##, "complete"),
            (r#"{"action":"execute_js","script":"document.title"}"#, "pressed true"),
        ],
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
        // One of them never loads: its beginning is shown once the limit is near.
        let open = json!({
            "action": "tab_new", "background": false, "url": rig.here(page), "timeout_ms": 30_000,
        });
        let tab_id = rig.done(open).await["tab_id"].take();
        for (call, words) in *calls {
            let mut arguments: Value = serde_json::from_str(call).expect("JSON");
            arguments["tab_id"] = tab_id.clone();
            let answer = rig.end(arguments).await;
            if !answer.to_string().contains(words) {
                complaints.push(format!("{page}: {call} has no `{words}`: {answer}"));
            }
        }
        rig.done(json!({ "action": "tab_close", "tab_id": tab_id })).await;
    }
    rig.close().await;
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
