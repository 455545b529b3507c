namespace Raincheck.Core
{
    /// <summary>Whether a request that failed was executed.</summary>
    static class Guarantee
    {
        public const string NotExecuted = "not_executed";
        public const string Executed = "executed";

        /// <summary>It began, and nobody can say how far it came.</summary>
        public const string Unknown = "unknown";
    }

    /// <summary>The messages that more than one place builds.</summary>
    static class Messages
    {
        public static JsonObject Error(string requestId, string code, string message, string guarantee) => new JsonObject
        {
            { "type", "error" },
            { "request_id", requestId },
            {
                "error", new JsonObject
                {
                    { "code", code },
                    { "message", message },
                    { "retryable", guarantee == Guarantee.NotExecuted && code != "ERR_UNKNOWN_COMMAND" && code != "ERR_INVALID_REQUEST" },
                    {
                        "details", new JsonObject
                        {
                            { "execution_guarantee", guarantee },
                            { "recovery_action", guarantee == Guarantee.NotExecuted ? "retry_allowed" : "inspect_state_then_retry_if_needed" },
                        }
                    },
                }
            },
        };

        public static JsonObject Result(Job job, string status, object result, long epoch)
        {
            var message = new JsonObject
            {
                { "type", "result" },
                { "request_id", job.RequestId },
                { "fence", job.Fence },
                { "status", status },
                { "result", result },
                { "domain_epoch", epoch },
            };
            return message.AddIfPresent("job_id", job.JobId);
        }

        public static JsonObject About(string type, Job job) =>
            new JsonObject { { "type", type }, { "request_id", job.RequestId } };
    }
}
