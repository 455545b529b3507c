//! The variables that a program is started with.

use std::ffi::OsString;

use raincheck_core::ids::TaskId;
use raincheck_core::trace::TraceContext;
use raincheck_runtime::TaskContext;

use super::folder::Folder;
use crate::tool::{CommandTool, DEFAULT_ENVIRONMENT, EnvRule};

const TASK_ID: &str = "RAINCHECK_TASK_ID";
const ATTEMPT: &str = "RAINCHECK_ATTEMPT";
const RESULT_FILE: &str = "RAINCHECK_RESULT_FILE";
const ARTIFACTS_DIR: &str = "RAINCHECK_ARTIFACTS_DIR";

/// Returns the whole environment of an attempt but for the control descriptor.
pub(super) fn of(
    tool: &CommandTool,
    folder: &Folder,
    context: &TaskContext,
) -> Vec<(OsString, OsString)> {
    let mut all = allowed(&tool.environment, |name| std::env::var_os(name));
    all.extend([
        (TASK_ID.into(), context.id().to_string().into()),
        (ATTEMPT.into(), context.attempt_number().to_string().into()),
        (RESULT_FILE.into(), folder.result().into()),
        (ARTIFACTS_DIR.into(), folder.artifacts().into()),
    ]);
    // As the libraries of traces read them [TRACE-2].
    let trace = context.trace().into_iter().flat_map(TraceContext::fields);
    all.extend(trace.map(|(name, value)| (name.to_ascii_uppercase().into(), value.into())));
    all
}

/// Returns the entry that every process of a task's tree was started with.
pub(super) fn mark(id: TaskId) -> OsString {
    format!("{TASK_ID}={id}").into()
}

/// Returns the `PATH` on which a tool's program is looked for.
pub(super) fn path_for(rule: &EnvRule) -> Option<OsString> {
    match rule {
        EnvRule::Fixed(values) => values.get("PATH").map(OsString::from),
        EnvRule::Default | EnvRule::Inherit(_) => None,
    }
    .or_else(|| std::env::var_os("PATH"))
}

/// Returns what a rule lets through of an environment.
fn allowed(
    rule: &EnvRule,
    environment: impl Fn(&str) -> Option<OsString>,
) -> Vec<(OsString, OsString)> {
    let inherit = |name: &str| environment(name).map(|value| (OsString::from(name), value));
    match rule {
        EnvRule::Default => DEFAULT_ENVIRONMENT.iter().filter_map(|name| inherit(name)).collect(),
        EnvRule::Inherit(names) => names.iter().filter_map(|name| inherit(name)).collect(),
        EnvRule::Fixed(values) => {
            values.iter().map(|(name, value)| (name.into(), value.into())).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(rule: &EnvRule) -> Vec<String> {
        let server = |name: &str| (name != "LANG").then(|| OsString::from("of the server"));
        let text = |(name, value): (OsString, OsString)| {
            format!("{}={}", name.to_string_lossy(), value.to_string_lossy())
        };
        allowed(rule, server).into_iter().map(text).collect()
    }

    #[test]
    fn a_program_gets_the_named_variables_that_exist() {
        let rule = EnvRule::Inherit(vec!["LANG".into(), "TOKEN".into()]);
        assert_eq!(names(&rule), ["TOKEN=of the server"]);
    }

    #[test]
    fn fixed_values_come_as_they_are_and_alone() {
        let values = [("GREETING".to_owned(), "hello $PATH".to_owned())];
        assert_eq!(names(&EnvRule::Fixed(values.into())), ["GREETING=hello $PATH"]);
    }

    #[test]
    fn secrets_of_the_server_are_not_among_the_defaults() {
        let all = names(&EnvRule::Default);
        assert!(all.iter().all(|entry| !entry.starts_with("AWS_")) && all.len() < 10, "{all:?}");
    }
}
