using System;
using System.Collections.Generic;

namespace Raincheck.Core
{
    /// <summary>The commands of this editor, by name.</summary>
    public sealed class ToolSet
    {
        readonly Dictionary<string, Tool> _tools = new Dictionary<string, Tool>(StringComparer.Ordinal);
        readonly List<Tool> _inOrder = new List<Tool>();

        /// <summary>Every command, in the order in which they were added.</summary>
        public IEnumerable<Tool> All => _inOrder;

        /// <summary>Adds a command; <c>false</c> when its name is taken, and then the first one stays.</summary>
        public bool Add(Tool tool)
        {
            if (_tools.ContainsKey(tool.Info.Name)) return false;
            _tools.Add(tool.Info.Name, tool);
            _inOrder.Add(tool);
            return true;
        }

        /// <summary>Finds a command; <c>null</c> when there is none of that name.</summary>
        public Tool Find(string name) => _tools.TryGetValue(name, out var tool) ? tool : null;

        internal List<object> ToJson()
        {
            var list = new List<object>();
            foreach (var tool in _inOrder) list.Add(tool.Info.ToJson());
            return list;
        }
    }

    /// <summary>Names an editor by its project, the same over restarts.</summary>
    static class EditorInstance
    {
        public static string Id(string projectPath)
        {
            using (var sha = System.Security.Cryptography.SHA256.Create())
            {
                var hash = sha.ComputeHash(System.Text.Encoding.UTF8.GetBytes(projectPath));
                var id = new System.Text.StringBuilder(16);
                for (var at = 0; at < 8; at++) id.Append(hash[at].ToString("x2", System.Globalization.CultureInfo.InvariantCulture));
                return id.ToString();
            }
        }
    }
}
