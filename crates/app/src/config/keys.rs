//! The keys of every section: the only list of them.

use std::time::Duration;

use super::MAX_WAIT;
use super::form::Form;

/// A key that a section may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// Its name.
    pub(super) name: &'static str,
    /// What its value must be.
    pub(super) form: Form,
    /// What it means, for the JSON Schema.
    pub(super) about: &'static str,
}

const fn key(name: &'static str, form: Form, about: &'static str) -> Key {
    Key { name, form, about }
}

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
const ZERO: Duration = Duration::ZERO;
const SECOND: Duration = Duration::from_secs(1);
/// The most memory that a key may name, in MiB.
const MOST_MB: u64 = 1 << 20;
const MILLI: Duration = Duration::from_millis(1);

/// `[store]`.
pub(super) const STORE: &[Key] = &[key(
    "path",
    Form::Text,
    "The file that keeps tasks, or memory (default: in the state folder).",
)];

/// `[lanes.NAME]`.
pub(super) const LANE: &[Key] = &[
    key("concurrency", Form::Whole(1, 1024), "How many tasks run at once (default 1)."),
    key("queue_limit", Form::Whole(0, 1_000_000), "How many tasks may wait (default 1000)."),
    key("max_runtime_s", Form::Seconds(MILLI, MONTH), "The longest run a task may ask for."),
    key("cpu", Form::Number(0.001, 4096.0), "The most processors a task may ask for."),
    key("memory_mb", Form::Whole(1, 1 << 30), "The most memory a task may ask for, in MiB."),
    key(
        "scratch_mb",
        Form::Whole(1, 1 << 40),
        "The most scratch space a task may ask for, in MiB.",
    ),
];

/// What only `[tools.NAME]` has.
pub(super) const TOOL: &[Key] = &[
    key("title", Form::Text, "A title for people (default: the name)."),
    key("description", Form::Text, "What the tool does, in under 400 characters."),
    key("command", Form::Argv, "The program and its arguments; relative to this file; no shell."),
    key("input_schema", Form::Schema, "The JSON Schema of the inputs, an object schema."),
    key("read_only", Form::Flag, "Tells clients that the tool changes nothing."),
    key("destructive", Form::Flag, "Tells clients that the tool may destroy something."),
];

/// What both `[tools.NAME]` and `[defaults]` have.
pub(super) const POLICY: &[Key] = &[
    key("lane", Form::Text, "The lane it runs in (default cpu_standard)."),
    key("timeout_s", Form::Seconds(MILLI, MONTH), "How long an attempt may run (default 600)."),
    key("wait_s", Form::Seconds(ZERO, MAX_WAIT), "How long a direct call waits (default 10)."),
    key("supports_cancel", Form::Flag, "Whether it may be stopped by a cancel (default true)."),
    key(
        "cancel_grace_s",
        Form::Seconds(ZERO, DAY),
        "From the polite stop to the kill (default 5).",
    ),
    key("on_exit", Form::OneOf(&["detach", "stop"]), "What becomes of it when the server ends."),
    key(
        "on_disconnect",
        Form::OneOf(&["detach", "cancel"]),
        "What becomes of a call without a task id when its caller goes away.",
    ),
    key(
        "needs_tasks",
        Form::Flag,
        "Whether it refuses clients that could follow native MCP tasks and do not (default false).",
    ),
    key("idempotent", Form::Flag, "Whether it may be run twice without harm (default false)."),
    key("max_attempts", Form::Whole(1, 100), "How many attempts there may be (default 1)."),
    key(
        "retry_backoff_s",
        Form::Seconds(ZERO, HOUR),
        "The pause before the second attempt; it doubles (default 5).",
    ),
    key("retry_on", Form::ErrorKinds, "The kinds of failure that are worth another attempt."),
    key("env", Form::Env, "Variables it inherits, or a table of variables with values."),
    key("sensitive", Form::Pointers, "JSON Pointers of inputs that are redacted everywhere."),
    key("log_quota_mb", Form::Whole(1, 1 << 20), "How much log text it may keep (default 64)."),
];

/// `[browser]`. Each is a flag of `browser-mcp`, too.
pub(super) const BROWSER: &[Key] = &[
    key("default_wait_ms", Form::Millis(ZERO, MAX_WAIT), "How long a call waits (default 2000)."),
    key(
        "accept_ms",
        Form::Millis(MILLI, Duration::from_secs(600)),
        "How long the extension has to take a command, connected or not (default 3000).",
    ),
    key("run_ms", Form::Millis(MILLI, DAY), "How long a command may run (default 10000)."),
    key(
        "max_run_ms",
        Form::Millis(MILLI, DAY),
        "The longest run a call may ask for; never less than run_ms (default 600000).",
    ),
    key("queue_limit", Form::Whole(1, 10_000), "How many commands of a tab may wait (default 32)."),
    key(
        "queue_timeout_s",
        Form::Seconds(SECOND, DAY),
        "How long a command may wait (default 600).",
    ),
    key("result_ttl_s", Form::Seconds(SECOND, DAY), "How long a result is kept (default 600)."),
    key(
        "cancel_grace_s",
        Form::Seconds(ZERO, HOUR),
        "How long a cancelled command has to end (default 5).",
    ),
    key(
        "reconnect_grace_s",
        Form::Seconds(SECOND, HOUR),
        "How long a browser that runs a command may be silent (default 35).",
    ),
    key(
        "linger_ms",
        Form::Millis(Duration::from_millis(100), MAX_WAIT),
        "How long a browser counts as connected after its last request (default 3000).",
    ),
    key(
        "max_body_mb",
        Form::Whole(1, 1024),
        "The largest answer of a browser, in MiB (default 16).",
    ),
    key("ring", Form::Whole(1, 100_000), "How many events of a kind are kept (default 1000)."),
    key(
        "files_dir",
        Form::Text,
        "The folder that files are uploaded from and output is saved in; without it neither is done.",
    ),
    key(
        "show_credentials",
        Form::Flag,
        "Whether observe request shows Authorization, Cookie and the like (default false).",
    ),
    key("show_storage", Form::Flag, "Whether observe storage is answered (default false)."),
    key("show_cookies", Form::Flag, "Whether observe cookies is answered (default false)."),
];

/// `[unity]`. Each is a flag of `unity-mcp`, too.
pub(super) const UNITY: &[Key] = &[
    key(
        "default_timeout_s",
        Form::Seconds(ZERO, MAX_WAIT),
        "How long a call waits for its end before it answers with a log_id (default 1).",
    ),
    key(
        "accept_s",
        Form::Seconds(MILLI, HOUR),
        "How long an editor that was sent a call has to say that it has it (default 5).",
    ),
    key(
        "ready_s",
        Form::Seconds(ZERO, DAY),
        "How long a call may wait for an editor to come, in all (default 45).",
    ),
    key(
        "ready_compiling_s",
        Form::Seconds(ZERO, DAY),
        "The same for a call that is made while the editor compiles (default 90).",
    ),
    key(
        "reconnect_grace_s",
        Form::Seconds(ZERO, DAY),
        "How long an editor that went away with a call has to come back (default 45).",
    ),
    key(
        "reconnect_grace_compiling_s",
        Form::Seconds(ZERO, DAY),
        "The same for an editor that compiled when it went (default 90).",
    ),
    key(
        "silence_s",
        Form::Seconds(SECOND, HOUR),
        "After how long a silent connection is closed (default 15).",
    ),
    key(
        "queue_limit",
        Form::Whole(1, 10_000),
        "How many calls of an editor may wait (default 32).",
    ),
    key(
        "queue_timeout_s",
        Form::Seconds(SECOND, DAY),
        "How long a call may stand in line behind others (default 600).",
    ),
    key("retention_s", Form::Seconds(SECOND, MONTH), "How long a result is kept (default 86400)."),
    key(
        "sync_timeout_s",
        Form::Seconds(MILLI, DAY),
        "How long a tool that is done in a moment may run (default 30).",
    ),
    key("job_timeout_s", Form::Seconds(MILLI, DAY), "How long a job may run (default 300)."),
    key("max_result_mb", Form::Whole(1, 1024), "The largest result, in MiB (default 64)."),
];

/// `[wrap]`.
pub(super) const WRAP: &[Key] = &[
    key("wait_s", Form::Seconds(ZERO, MAX_WAIT), "How long a direct call waits (default 10)."),
    key("timeout_s", Form::Seconds(MILLI, MONTH), "How long a call may run (default 3600)."),
    key("concurrency", Form::Whole(1, 256), "How many calls run at once (default 8)."),
    key("queue_limit", Form::Whole(0, 100_000), "How many calls may wait (default 256)."),
    key(
        "ready_s",
        Form::Seconds(ZERO, HOUR),
        "How long a call waits for the wrapped server to be there (default 30).",
    ),
    key(
        "start_s",
        Form::Seconds(SECOND, HOUR),
        "How long the wrapped server has to start and to name its tools (default 60).",
    ),
    key(
        "restarts",
        Form::Whole(0, 1000),
        "How often in a row it is started again when it ends (default 5).",
    ),
];

/// `[wrapped.NAME]`.
pub(super) const WRAPPED: &[Key] = &[
    key("wait_s", Form::Seconds(ZERO, MAX_WAIT), "How long a direct call waits."),
    key("timeout_s", Form::Seconds(MILLI, MONTH), "How long a call may run."),
    key("lane", Form::Text, "The lane it runs in (default the one of the wrapped server)."),
    key("supports_cancel", Form::Flag, "Whether it may be stopped by a cancel (default true)."),
    key(
        "on_disconnect",
        Form::OneOf(&["detach", "cancel"]),
        "What becomes of a call without a task id when its caller goes away (default cancel).",
    ),
    key(
        "needs_tasks",
        Form::Flag,
        "Whether it refuses clients that could follow native MCP tasks and do not (default false).",
    ),
    key("idempotent", Form::Flag, "Whether it may be run twice without harm (default false)."),
    key("max_attempts", Form::Whole(1, 100), "How many attempts there may be (default 1)."),
    key(
        "retry_backoff_s",
        Form::Seconds(ZERO, HOUR),
        "The pause before the second attempt; it doubles (default 5).",
    ),
    key("retry_on", Form::ErrorKinds, "The kinds of failure that are worth another attempt."),
    key("sensitive", Form::Pointers, "JSON Pointers of inputs that are redacted everywhere."),
    key("hidden", Form::Flag, "Leaves the tool out (default false)."),
];

/// `[cache]`.
pub(super) const CACHE: &[Key] = &[
    key("enabled", Form::Flag, "Whether large answers are kept under a handle (default true)."),
    key(
        "threshold_chars",
        Form::Whole(4000, 500_000),
        "Above how many characters an answer is kept and a handle given out (default 48000).",
    ),
    key("total_mb", Form::Whole(1, MOST_MB), "The most it holds, in MiB (default 256)."),
    key("scope_mb", Form::Whole(1, MOST_MB), "The most it holds for one owner (default 128)."),
    key("entry_mb", Form::Whole(1, 1024), "The largest answer that is kept (default 64)."),
    key(
        "ttl_s",
        Form::Seconds(SECOND, DAY),
        "How long an answer is kept after it was read last (default 1800).",
    ),
    key(
        "absolute_ttl_s",
        Form::Seconds(SECOND, MONTH),
        "How long an answer is kept however often it is read (default 14400).",
    ),
    key("warm", Form::Tables, "Calls whose answers are kept ahead: [[cache.warm]]."),
];

/// `[[cache.warm]]`.
pub(super) const WARM: &[Key] = &[
    key("tool", Form::Text, "A tool that changes nothing, or may be run twice."),
    key("inputs", Form::Inputs, "Its arguments (default none)."),
    key(
        "every_s",
        Form::Seconds(Duration::from_secs(10), DAY),
        "How often it is called again (default once, at the start).",
    ),
];

/// What a key of `[clients]` is when it is a number.
pub(super) const CLIENT: Form = Form::Seconds(MILLI, DAY);

/// What a key of `[clients]` may say when it is a table.
pub(super) const CLIENT_KEYS: &[Key] = &[
    key("timeout_s", CLIENT, "The longest call."),
    key(
        "max_chars",
        Form::Whole(4000, 500_000),
        "The longest answer, in characters; a longer one is kept under a handle.",
    ),
];

/// `[http]`.
pub(super) const HTTP: &[Key] = &[
    key("listen", Form::Text, "The address of --http: a port, or HOST:PORT."),
    key("allow_remote", Form::Flag, "Whether other machines may reach it (default false)."),
    key(
        "anonymous",
        Form::Flag,
        "Whether callers of this machine need no token, all as one owner (default false).",
    ),
    key("names", Form::Texts, "Names that a proxy or a remote client calls the server by."),
    key("origins", Form::Texts, "Origins that a request may carry; pages of other sites stay out."),
    key("tokens", Form::Tokens, "The token of each owner: [http.tokens]."),
    key(
        "issuer",
        Form::Text,
        "The URL of an authorization server whose access tokens are believed.",
    ),
    key("resource", Form::Text, "What the tokens must be for: the URL of /mcp as clients call it."),
    key("scopes", Form::Texts, "Scopes that a token of the issuer must have."),
    key("keys_url", Form::Text, "Where the issuer's keys are (default: as its metadata says)."),
];

/// The sections of a file, with what they are for.
pub(super) const SECTIONS: &[(&str, &str)] = &[
    ("store", "Where tasks are kept."),
    ("lanes", "Named queues: [lanes.NAME]."),
    ("defaults", "Keys for every tool that does not set them itself."),
    ("tools", "Programs that are tools: [tools.NAME]."),
    ("wrap", "How raincheck wrap runs the tools of the server behind it."),
    ("wrapped", "Tools of the server behind raincheck wrap: [wrapped.NAME]."),
    ("clients", "The longest call of clients by their name, in seconds; or a table."),
    ("cache", "Large answers that are kept under a handle."),
    ("http", "MCP over HTTP: where, and for whom."),
    ("browser", "Settings of browser-mcp."),
    ("unity", "Settings of unity-mcp."),
];
