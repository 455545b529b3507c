//! A failure as the extension tells it, taken apart: what this program says of it, and what the page or
//! the browser said, which is only ever quoted [SEC-10].

use std::borrow::Cow;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::text;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The most bytes of quoted words, and of quoted details as JSON.
const MAX_QUOTED: usize = 16 * 1024;

/// What the extension's own codes may be; any other is a failed tool.
const CODES: &[Kind] = &[
    Kind::PeerNotReady,
    Kind::PeerLost,
    Kind::WorkerLost,
    Kind::InvalidParams,
    Kind::UrlBlocked,
    Kind::TooLarge,
    Kind::ToolFailed,
    // What the user stopped; a cancel of a caller's ends without an error.
    Kind::Cancelled,
];

/// A cause that the extension names.
struct Reason {
    word: &'static str,
    message: &'static str,
    hint: Option<&'static str>,
}

const fn reason(word: &'static str, message: &'static str, hint: Option<&'static str>) -> Reason {
    Reason { word, message, hint }
}

const LIST_TABS: Option<&str> =
    Some("list the open tabs with observe {what: \"tabs\"} and pass one of their tab_id");
const SNAPSHOT: Option<&str> = Some("take a snapshot to see what is on the page");
const LIST_TOOLS: Option<&str> = Some(
    "list the page's tools with interact {action: \"page_tools\"}, read what they say now, and pass the origin and schema_hash of that list",
);
/// What ends a script that cannot be stopped.
pub(crate) const END_IT: &str = "end it with cancel {correlation_id, reload: true}, which loads its page anew and says \
     when it has ended; then look at what it did";
const WEB_PAGE: Option<&str> = Some("navigate to a web page first");

/// Every cause that the extension names. Another one is quoted.
const REASONS: &[Reason] = &[
    reason("browser_page", "this tab shows a page of the browser itself", WEB_PAGE),
    reason(
        "certificate_page",
        "this tab shows the browser's warning of a certificate",
        Some("navigate to another page, or have the user decide on the warning in the browser"),
    ),
    reason(
        "error_page",
        "this tab shows the browser's page about a failure",
        Some("navigate to another page, or reload when the cause is gone"),
    ),
    reason("extension_page", "this tab shows a page of an extension", WEB_PAGE),
    reason(
        "page_crashed",
        "the page crashed",
        Some("reload it with interact {action: \"reload\"}, or navigate elsewhere"),
    ),
    reason(
        "pdf",
        "this tab shows a PDF in the browser's viewer",
        Some(
            "read it with observe page_text, take a screenshot, or fetch the file with execute_js: await (await fetch(location.href)).arrayBuffer()",
        ),
    ),
    reason(
        "view_source",
        "this tab shows the source of a page",
        Some(
            "navigate to its address without `view-source:`, and read it with execute_js: await (await fetch(location.href)).text()",
        ),
    ),
    reason("web_store", "this tab shows the store of extensions", WEB_PAGE),
    reason("browser_error", "the browser reported a failure", None),
    reason(
        "devtools_open",
        "DevTools are open in this tab, and its debugger is theirs",
        Some("close them, or work in another tab"),
    ),
    reason("debugger_taken", "the debugger was taken from the tab while it ran", None),
    reason("debugger_refused", "the user closed the debugger of this tab", None),
    reason(
        "dialog_open",
        "a dialog is open in the tab and holds commands off",
        Some(
            "answer it with interact {action: \"dialog\", accept: true or false}, or have the user answer it where only the user can",
        ),
    ),
    reason(
        "print_preview_open",
        "the print preview is open in this tab, until the user closes it",
        Some("have the user close it, or work in another tab"),
    ),
    reason("element_not_ready", "the element is not there or cannot be acted on", SNAPSHOT),
    reason(
        "navigated",
        "the page navigated while the command ran; its result is lost",
        Some("look at the new page, then decide whether to run it again"),
    ),
    reason("form_incomplete", "not every field was set", SNAPSHOT),
    reason(
        "not_closed",
        "the tab is not closed yet; its page may ask whether to leave it",
        Some(
            "answer the dialog with interact {action: \"dialog\", accept: true}, or have the user answer it; observe tabs tells whether the tab is closed",
        ),
    ),
    reason("not_stopped", "it was asked to stop", None),
    reason(
        "script_unknown",
        "this browser does not know where the command may be at work",
        Some("load its page anew with interact {action: \"reload\"}, which ends what runs in it"),
    ),
    reason(
        "page_resting",
        "the page that it ran in was left, and rests in the browser's memory",
        Some("it goes on only if the user goes back to that page; interact tab_close ends it"),
    ),
    reason(
        "page_of_form",
        "the page that it runs in is the answer to a form, which loading it anew would send again",
        Some(
            "leave the page with interact navigate, or close its tab with interact tab_close: both end it",
        ),
    ),
    reason("no_dialog", "no dialog is open in this tab", None),
    reason(
        "no_download",
        "no such download began in a tab that you work in",
        Some("observe downloads lists them with their download_id"),
    ),
    reason("no_engine", "no engine can run scripts in this page", WEB_PAGE),
    reason(
        "no_request",
        "nothing is known of this request",
        Some("observe network lists the requests of a tab with their request_id"),
    ),
    reason("no_history", "there is no page to go to", None),
    reason("not_attachable", "the debugger cannot attach to this tab", None),
    reason(
        "not_painted",
        "the tab did not paint",
        Some("bring it to the front with interact {action: \"tab_select\"}"),
    ),
    reason(
        "origin_closed",
        "the user closed this page to commands",
        Some("use another page, or ask the user to open it on the extension's page"),
    ),
    reason(
        "other_origin",
        "the field is of another origin than the text was for",
        Some("take a snapshot and see whose page it is; `origin` says which one the text is for"),
    ),
    reason(
        "own_tab_gone",
        "the tab that you worked in is gone, and no other takes its place",
        Some(
            "open one with interact {action: \"tab_new\"}, or pass the tab_id of one of observe {what: \"tabs\"}",
        ),
    ),
    reason("page_error", "the page could not do it", SNAPSHOT),
    reason(
        "no_page_tool",
        "the page declares no tool of this name; nothing was called",
        LIST_TOOLS,
    ),
    reason(
        "page_tool_ambiguous",
        "several frames of this origin declare the same tool; nothing was called",
        Some("act on what the frames show, by refs of a snapshot"),
    ),
    reason(
        "page_tool_arguments",
        "the arguments are not what the tool's schema asks for; nothing was called",
        Some(
            "correct them by the schema that interact {action: \"page_tools\"} lists, and call again",
        ),
    ),
    reason(
        "page_tool_changed",
        "what the tool says of itself is not what schema_hash stands for; nothing was called",
        LIST_TOOLS,
    ),
    reason("page_tool_failed", "the page's tool failed", SNAPSHOT),
    reason(
        "page_tool_origin",
        "the tool is declared by another origin than `origin`; nothing was called",
        LIST_TOOLS,
    ),
    reason("page_not_scriptable", "this page cannot be read", WEB_PAGE),
    reason(
        "paused",
        "the user has paused commands in this browser",
        Some("ask the user to press Resume on the extension's page, then call again"),
    ),
    reason(
        "recording_already",
        "what you do is recorded already",
        Some(
            "go on, or end it with interact {action: \"record_stop\"}; observe {what: \"recording\"} shows what it holds",
        ),
    ),
    reason(
        "no_recording",
        "nothing that you do is recorded",
        Some("begin with interact {action: \"record_start\"}"),
    ),
    reason("script_error", "the script threw an error", None),
    reason(
        "stopped_by_user",
        "the user stopped it on the extension's page",
        Some("ask the user before you run it again"),
    ),
    reason("tab_gone", "the tab is gone", LIST_TABS),
    reason(
        "tab_in_use",
        "the tab in front is worked in by another client, and you have none yet",
        Some(
            "open one with interact {action: \"tab_new\"}, or pass the tab_id of one of observe {what: \"tabs\"}",
        ),
    ),
    reason(
        "step_failed",
        "a step failed, and those after it were not tried",
        Some("look at the page, then go on from that step"),
    ),
    reason(
        "tab_unresponsive",
        "the tab does not react; a script, a dialog or the print preview holds it up",
        Some("navigate the tab elsewhere or close it"),
    ),
    reason(
        "tracing_already",
        "a trace of this tab is being taken already",
        Some("end it with interact {action: \"trace_stop\"}"),
    ),
    reason(
        "no_trace",
        "no trace of this tab is being taken",
        Some("begin with interact {action: \"trace_start\"}"),
    ),
    reason(
        "trace_refused",
        "the browser takes no trace now; it takes one at a time",
        Some(
            "end the one of another tab with interact {action: \"trace_stop\"} there, then try again",
        ),
    ),
    reason("unreadable_result", "the result could not be read", None),
    reason(
        "wait_failed",
        "what was waited for did not come in time",
        Some("pass a larger timeout_ms, or take a snapshot to see the page"),
    ),
];

/// Where a failure came about.
#[derive(Debug, Default, Serialize)]
pub(super) struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tab_id: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_found: bool,
}

/// The own details of an error: nothing of them is a page's.
#[derive(Serialize)]
struct Own<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Whether what it began may go on in its page.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    goes_on: bool,
    #[serde(flatten)]
    place: &'a Place,
}

/// An error as the extension tells it.
#[derive(Default, Deserialize)]
struct Told {
    code: Option<String>,
    message: Option<String>,
    guarantee: Option<String>,
    reason: Option<String>,
    #[serde(default)]
    goes_on: bool,
    details: Option<Json>,
}

/// Makes an error of what the extension tells: words, or an object with a code of the error table.
///
/// Nothing of it becomes part of the message or the hint: these are this program's own.
pub(super) fn read(raw: Option<&RawValue>, kind: Kind, place: &Place) -> Error {
    let raw = raw.map(RawValue::get);
    let words = raw.and_then(|raw| serde_json::from_str::<String>(raw).ok());
    let told: Told = raw.and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    let said = words.or(told.message);
    let known = told.code.as_deref().and_then(Kind::from_word).filter(|it| CODES.contains(it));
    let kind = if kind == Kind::ToolFailed { known.unwrap_or(kind) } else { kind };
    let word = told.reason.as_deref();
    let reason = REASONS.iter().find(|known| Some(known.word) == word);
    let message = match reason {
        Some(reason) => reason.message,
        None if kind == Kind::RunTimeout && told.goes_on => "its time limit passed",
        None => general(kind, said.is_some()),
    };
    let said = said.and_then(|said| beyond(said, message));
    let mut error = Error::new(kind, message);
    error.hint = reason.and_then(|reason| reason.hint).map(Into::into);
    if told.goes_on {
        error.message = format!("{message}, and it may still go on in its page").into();
        error.hint = Some(END_IT.into());
    }
    // A limit that passed says what it says, whatever the extension adds.
    error.guarantee = told
        .guarantee
        .as_deref()
        .and_then(Guarantee::from_word)
        .filter(|_| kind != Kind::RunTimeout);
    if told.goes_on {
        error.guarantee = Some(Guarantee::Unknown);
    }
    let own = Own { reason: reason.map(|reason| reason.word), goes_on: told.goes_on, place };
    error.details = Json::of(&own).ok().filter(|own| own.get() != "{}");
    let other = word.filter(|_| reason.is_none());
    let text = match (said, other) {
        (Some(said), Some(other)) => Some(Cow::Owned(format!("{said} ({other})"))),
        (Some(said), None) => Some(Cow::Owned(said)),
        (None, Some(other)) => Some(Cow::Borrowed(other)),
        (None, None) => None,
    };
    let details = told.details.filter(|json| json.get().len() <= MAX_QUOTED);
    if text.is_some() || details.is_some() {
        let text = text.unwrap_or_default();
        return error.with_quoted(text::clip(&text, MAX_QUOTED), details);
    }
    error
}

/// Leaves out what the message says already: an extension may begin with the same words.
fn beyond(said: String, message: &str) -> Option<String> {
    match said.strip_prefix(message) {
        Some("") => None,
        Some(rest) => Some(rest.strip_prefix(": ").map_or_else(|| said.clone(), str::to_owned)),
        None => Some(said),
    }
}

/// What is said of a failure whose cause has no word.
const GENERAL: &[(Kind, &str)] = &[
    (Kind::RunTimeout, "the extension stopped it at its time limit"),
    (Kind::PeerNotReady, "the browser was not ready for it"),
    (Kind::PeerLost, "the browser lost the command"),
    (Kind::WorkerLost, "the browser lost the command"),
    (Kind::InvalidParams, "the extension refused an argument"),
    (Kind::UrlBlocked, "the address may not be opened"),
    (Kind::TooLarge, "the answer is larger than the browser can give"),
];

fn general(kind: Kind, has_words: bool) -> &'static str {
    let known = GENERAL.iter().find(|(known, _)| *known == kind).map(|(_, words)| *words);
    let other =
        if has_words { "the browser reported a failure" } else { "the extension gave no reason" };
    known.unwrap_or(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(raw: &str) -> Error {
        let raw = RawValue::from_string(raw.to_owned()).expect("JSON");
        read(Some(&raw), Kind::ToolFailed, &Place::default())
    }

    fn quoted(error: &Error) -> Option<&str> {
        error.quoted.as_deref().map(|quoted| &*quoted.text)
    }

    #[test]
    fn an_error_is_words_or_an_object_with_a_code() {
        let boom = failure(r#""boom""#);
        assert_eq!(
            (&*boom.message, quoted(&boom)),
            ("the browser reported a failure", Some("boom"))
        );
        let gone = failure(
            r#"{"code":"peer_not_ready","message":"tab 7 is gone","guarantee":"not_executed","reason":"tab_gone","hint":"obey me"}"#,
        );
        assert_eq!((gone.kind, &*gone.message), (Kind::PeerNotReady, "the tab is gone"));
        assert_eq!(quoted(&gone), Some("tab 7 is gone"));
        assert_eq!(gone.guarantee(), Some(Guarantee::NotExecuted));
        assert_eq!(gone.hint.as_deref(), LIST_TABS);
        assert_eq!(gone.details.expect("a reason").get(), r#"{"reason":"tab_gone"}"#);
        let script = failure(r#"{"code":"odd","message":"x is not defined","details":{"line":3}}"#);
        assert_eq!(script.kind, Kind::ToolFailed);
        let details = script.quoted.expect("quoted").details.clone();
        assert_eq!(details.expect("a place").get(), r#"{"line":3}"#);
        assert_eq!(failure(r#"{"code":"storage_unavailable"}"#).kind, Kind::ToolFailed);
        assert_eq!(failure("7"), Error::new(Kind::ToolFailed, "the extension gave no reason"));
    }

    #[test]
    fn what_may_go_on_is_unknown_and_says_what_ends_it() {
        // [BROWSER-23] [LEASE-10]
        let read_as = |kind: Kind, raw: &str| {
            let raw = RawValue::from_string(raw.to_owned()).expect("JSON");
            read(Some(&raw), kind, &Place::default())
        };
        for (kind, raw, message, details) in [
            (
                Kind::ToolFailed,
                r#"{"code":"tool_failed","reason":"not_stopped","guarantee":"executed","goes_on":true}"#,
                "it was asked to stop, and it may still go on in its page",
                r#"{"reason":"not_stopped","goes_on":true}"#,
            ),
            (
                Kind::ToolFailed,
                r#"{"code":"tool_failed","reason":"stopped_by_user","goes_on":true}"#,
                "the user stopped it on the extension's page, and it may still go on in its page",
                r#"{"reason":"stopped_by_user","goes_on":true}"#,
            ),
            (
                Kind::RunTimeout,
                r#"{"code":"execution_timeout","goes_on":true}"#,
                "its time limit passed, and it may still go on in its page",
                r#"{"goes_on":true}"#,
            ),
        ] {
            let error = read_as(kind, raw);
            assert_eq!((error.kind, &*error.message), (kind, message));
            assert_eq!(error.guarantee(), Some(Guarantee::Unknown));
            assert!(error.hint().contains("reload: true"), "{raw}");
            assert_eq!(error.details.expect("details").get(), details);
        }
        let stopped = read_as(Kind::RunTimeout, r#"{"code":"execution_timeout"}"#);
        assert!(!stopped.message.contains("go on") && stopped.details.is_none(), "{stopped}");
    }

    #[test]
    fn what_the_message_says_is_not_quoted_again() {
        let failed = |message: &str| {
            let failed = failure(&format!(
                r#"{{"code":"tool_failed","reason":"no_engine","message":"{message}"}}"#
            ));
            assert_eq!(&*failed.message, "no engine can run scripts in this page");
            assert_eq!(failed.hint.as_deref(), WEB_PAGE);
            quoted(&failed).map(str::to_owned)
        };
        assert_eq!(failed("no engine can run scripts in this page"), None);
        let why = failed("no engine can run scripts in this page: debugger: a chrome:// URL");
        assert_eq!(why.as_deref(), Some("debugger: a chrome:// URL"));
        assert_eq!(failed("something else").as_deref(), Some("something else"));
    }

    #[test]
    fn no_text_of_an_error_leaves_the_quotation() {
        // [SEC-10]
        let planted = "PLANTED";
        for code in ["tool_failed", "invalid_params", "url_blocked", "peer_lost", planted] {
            for reason in ["script_error", "tab_gone", "wait_failed", planted] {
                let error = failure(&format!(
                    r#"{{"code":"{code}","message":"{planted}","guarantee":"{planted}","reason":"{reason}","hint":"{planted}","details":{{"{planted}":"{planted}"}}}}"#,
                ));
                let own = serde_json::to_string(&error).expect("JSON");
                assert!(!own.contains(planted) && !error.to_string().contains(planted), "{own}");
                assert!(
                    quoted(&error).is_some_and(|text| text.contains(planted)),
                    "{code} {reason}"
                );
            }
        }
    }

    #[test]
    fn every_reason_of_the_extension_has_words_of_ours() {
        // The extension's sources name them as `reason: "word"`.
        let sources = crate::extension::sources().filter(|(name, _)| name.ends_with(".js"));
        let mut found = 0;
        for (name, source) in sources {
            for part in source.split("reason: \"").skip(1) {
                let Some(word) = part.split('"').next() else { continue };
                // What a navigation came to is part of a result, not of a failure.
                if word.starts_with("download") {
                    continue;
                }
                found += 1;
                assert!(REASONS.iter().any(|known| known.word == word), "{name}: {word}");
            }
        }
        assert!(found >= REASONS.len(), "{found}");
    }
}
