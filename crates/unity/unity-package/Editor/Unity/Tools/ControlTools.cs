using System;
using System.Collections;
using System.Collections.Generic;
using Raincheck.Core;

namespace Raincheck.InEditor
{
    /// <summary>What the editor is doing, from memory.</summary>
    sealed class EditorStateTool : Tool
    {
        readonly IEditorHost _host;
        readonly Func<Bridge> _bridge;

        public EditorStateTool(IEditorHost host, Func<Bridge> bridge)
        {
            _host = host;
            _bridge = bridge;
        }

        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "get_editor_state",
            Description = "What the editor is doing: ready, compiling, playing, running tests, blocked by a dialog.",
            ReadOnly = true,
            Control = true,
            Schema = Arguments.Schema(new string[0], new JsonObject()),
        };

        public override IEnumerator Run(ToolContext context)
        {
            var bridge = _bridge();
            var status = bridge.Status;
            var answer = new JsonObject
            {
                { "state", status.State },
                { "main_thread_lag_ms", status.MainThreadLagMs },
                { "project_name", _host.ProjectName },
                { "project_path", _host.ProjectPath },
                { "unity_version", _host.UnityVersion },
                { "package_version", _host.PackageVersion },
                { "domain_epoch", bridge.DomainEpoch },
                { "running", bridge.RunningCount },
                { "unacknowledged", bridge.UnacknowledgedCount },
                { "execute_code", ExecuteCodeTool.Allowed },
            };
            answer.AddIfPresent("focused", status.Focused);
            context.Result = answer.AddIfPresent("dialog", status.Dialog);
            return null;
        }
    }

    /// <summary>The console, from the ring.</summary>
    sealed class ReadConsoleTool : Tool
    {
        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "read_console",
            Description = "The newest console entries, or with since_cursor what came after it. types: error includes exceptions and asserts.",
            ReadOnly = true,
            Control = true,
            Schema = Arguments.Schema(new string[0], new JsonObject
            {
                { "types", Arguments.Type("array") },
                { "filter", Arguments.Type("string") },
                { "since_cursor", Arguments.IdType() },
                { "limit", Arguments.Type("integer") },
                { "include_stacktrace", Arguments.Type("boolean") },
            }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            Arguments.Only(context.Params, "types", "filter", "since_cursor", "limit", "include_stacktrace");
            context.Result = ConsoleFeed.Ring.Read(context.Params);
            return null;
        }
    }

    /// <summary>Every command of this editor, with its parameters.</summary>
    sealed class ListCommandsTool : Tool
    {
        readonly ToolSet _tools;

        public ListCommandsTool(ToolSet tools) { _tools = tools; }

        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "list_unity_commands",
            Description = "Every command of this editor, those of the project included, with its parameters.",
            ReadOnly = true,
            Control = true,
            Schema = Arguments.Schema(new string[0], new JsonObject { { "filter", Arguments.Type("string") } }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            Arguments.Only(context.Params, "filter");
            var filter = Arguments.Text(context.Params, "filter");
            var commands = new List<object>();
            foreach (var tool in _tools.All)
            {
                var info = tool.Info;
                if (filter != null && info.Name.IndexOf(filter, StringComparison.OrdinalIgnoreCase) < 0) continue;
                commands.Add(info.ToJson());
            }
            context.Result = new JsonObject { { "commands", commands } };
            return null;
        }
    }
}
