//! What a model is told about the task tools when it connects.

use raincheck_core::store::Durability;

/// Returns the practices, and what a restart leaves of a task.
pub(super) fn text(durability: Durability) -> String {
    let kept = match durability {
        Durability::None => "9. Tasks are kept in memory: they end with this server.",
        Durability::Process | Durability::Full => {
            "9. Tasks outlive this server: after a restart the same task_id still reads its task."
        }
    };
    format!("{PRACTICES}\n{kept}")
}

/// The practices, in under 2 KiB: some clients cut the rest.
const PRACTICES: &str = "\
Every tool call here is a task: its work goes on after the call has stopped waiting for it.

1. Call a tool by its name. If it ends in time, the answer is its result. If not, the answer has \
status \"running\" with a task_id and the next call to make: that is no error, the work goes on.
2. For work that takes minutes, use submit_task instead: it returns a task_id at once. Give an \
idempotency_key so that a repeated call finds the first task instead of doing the work twice.
3. Keep the task_id and tell it to the user. Go on with other work meanwhile.
4. Read later: get_task_result with wait_s (up to 60, less if your client would not wait as long) sleeps until the task ends and returns its \
result or error; reading again gives the same answer. One waiting call is better than many quick \
polls; when you do poll, wait poll_after_ms between calls.
5. To see what a task is doing: get_task_status (progress, partial_result), tail_task_logs (pass \
next_cursor back as cursor; wait_s waits for new lines), list_tasks to find ids again.
6. A task that is input_required asks something: ask the user, answer with give_task_input. \
cancel_task ends a task early. A tool that cannot be cancelled runs on and keeps its result.
7. Errors carry code, retryable, guarantee (not_executed, unknown, executed) and recovery. Do not \
repeat work whose guarantee is unknown before you have looked at its effects.
8. Tell the user when a task ended, and how.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_practices_fit_where_clients_cut_them_and_promise_what_the_store_keeps() {
        for (durability, word) in [
            (Durability::None, "memory"),
            (Durability::Process, "outlive"),
            (Durability::Full, "outlive"),
        ] {
            let text = text(durability);
            assert!(text.len() < 2048, "{} bytes", text.len());
            assert!(text.lines().last().is_some_and(|line| line.contains(word)), "{text}");
        }
    }
}
