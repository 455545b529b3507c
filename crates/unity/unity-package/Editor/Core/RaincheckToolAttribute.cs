using System;

namespace Raincheck
{
    /// <summary>Makes a static method of an editor assembly a command that the server can call.</summary>
    /// <remarks>
    /// The method runs on the main thread. It takes its parameters by name, or one <see cref="JsonObject"/> with all of
    /// them, and may take a <see cref="ToolContext"/> to report progress and to notice a cancel. It answers with a value
    /// or a <c>Task</c>, or with an <c>IEnumerator</c> whose steps are taken one by one; between the steps the editor
    /// stays alive, and the answer is <see cref="ToolContext.Result"/>.
    /// <code>
    /// [RaincheckTool("bake_probes", "Bakes the light probes.", Mode = ToolMode.Job, SupportsCancel = true)]
    /// static IEnumerator Bake(ToolContext context, int passes = 1)
    /// {
    ///     for (var pass = 0; pass &lt; passes; pass++)
    ///     {
    ///         context.Report(pass, passes);
    ///         yield return Wait.NextUpdate;
    ///     }
    ///     context.Result = new JsonObject { { "passes", passes } };
    /// }
    /// </code>
    /// </remarks>
    [AttributeUsage(AttributeTargets.Method)]
    public sealed class RaincheckToolAttribute : Attribute
    {
        /// <summary>Names the command, in snake_case.</summary>
        public RaincheckToolAttribute(string name, string description = "")
        {
            Name = name;
            Description = description;
        }

        /// <summary>The command's name.</summary>
        public string Name { get; }

        /// <summary>What it does, for the one who chooses among commands.</summary>
        public string Description { get; }

        /// <summary>Whether it may run for minutes.</summary>
        public ToolMode Mode { get; set; } = ToolMode.Sync;

        /// <summary>Whether a run may be stopped between its steps, or notices <see cref="ToolContext.Cancellation"/>.</summary>
        public bool SupportsCancel { get; set; }

        /// <summary>Whether it changes nothing.</summary>
        public bool ReadOnly { get; set; }

        /// <summary>Whether running it twice does the same as running it once.</summary>
        public bool Idempotent { get; set; }

        /// <summary>
        /// Whether a run goes on after a domain reload: the method is called again, and finds in
        /// <see cref="ToolContext.Memory"/> what it wrote down with <see cref="ToolContext.Remember"/>.
        /// </summary>
        public bool ReloadSafe { get; set; }

        /// <summary>How long it may run before the server gives up, in seconds; 0 for what its mode stands for.</summary>
        public int TimeoutSeconds { get; set; }
    }
}
