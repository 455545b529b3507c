using System;
using System.Collections.Generic;
using System.IO;
using Raincheck.Core;
using UnityEditor;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>Starts the bridge with every domain and stops it before the domain ends.</summary>
    [InitializeOnLoad]
    public static class Bootstrap
    {
        const double BudgetMs = 8;

        static readonly List<Tool> Waiting = new List<Tool>();
        static readonly List<Action> BeforeReload = new List<Action>();
        static Bridge _bridge;
        static UnityHost _host;
        static bool _starting;

        static Bootstrap()
        {
            if (!ShouldRun()) return;
            Runs = true;
            _starting = true;
            ConsoleFeed.Begin();
            CompileWatch.Begin();
            StateTracker.Begin();
            AssemblyReloadEvents.beforeAssemblyReload += Reloading;
            EditorApplication.quitting += Quitting;
            // Other assemblies of this package add their tools while they are initialised, which may be after this.
            EditorApplication.update += Update;
            // An editor without focus may not update for a long time; what is posted runs sooner.
            System.Threading.SynchronizationContext.Current?.Post(_ => Update(), null);
        }

        /// <summary>Whether this process is an editor that a person looks at, and the bridge is not turned off.</summary>
        public static bool Runs { get; private set; }

        /// <summary>The running bridge; <c>null</c> before the first update and when it does not run.</summary>
        public static Bridge Bridge => _bridge;

        /// <summary>Why the bridge does not run; <c>null</c> when it does.</summary>
        public static string Fault { get; private set; }

        /// <summary>Adds a tool. Call it from a static constructor with <c>[InitializeOnLoad]</c>.</summary>
        public static void Add(Tool tool) => Waiting.Add(tool);

        /// <summary>Has something done before the domain ends.</summary>
        internal static void OnLeave(Action action) => BeforeReload.Add(action);

        /// <summary>Starts the bridge again, for example after the settings changed.</summary>
        internal static void Restart()
        {
            Stop("reload", 1000);
            Begin();
        }

        static void Reloading() => End("reload", 10000);

        static void Quitting() => End("quit", null);

        static void End(string reason, int? expectedBackMs)
        {
            foreach (var action in BeforeReload) action();
            Stop(reason, expectedBackMs);
            Forget();
        }

        // The engine's events may outlive the domain; what they still refer to would keep it from being unloaded.
        static void Forget()
        {
            ConsoleFeed.End();
            CompileWatch.End();
            StateTracker.End();
            AssemblyReloadEvents.beforeAssemblyReload -= Reloading;
            EditorApplication.quitting -= Quitting;
            EditorApplication.update -= Update;
            BeforeReload.Clear();
        }

        // A second process on the project, one without a window, and a play mode clone are not what a person looks at.
        static bool ShouldRun()
        {
            if (AssetDatabase.IsAssetImportWorkerProcess()) return false;
            if (!RaincheckSettings.Enabled) return false;
            return !Application.isBatchMode || Environment.GetEnvironmentVariable("RAINCHECK_BATCH_MODE") == "1";
        }

        static void Update()
        {
            if (_starting)
            {
                _starting = false;
                Begin();
            }
            if (_bridge == null) return;
            StateTracker.Update(_bridge);
            _bridge.Pump(BudgetMs);
        }

        internal static void PumpNow() => _bridge?.Pump(BudgetMs);

        static void Begin()
        {
            _host = new UnityHost();
            try
            {
                var folder = Path.Combine(_host.ProjectPath, "Library", "Raincheck", "editor");
                _bridge = new Bridge(_host, Tools(), folder);
                StateTracker.Update(_bridge);
                _bridge.Start();
                Fault = null;
            }
            catch (Exception fault) when (fault is IOException || fault is UnauthorizedAccessException)
            {
                _bridge = null;
                Fault = "the journal could not be opened: " + fault.Message;
                Debug.LogError("Raincheck: " + Fault);
            }
        }

        static ToolSet Tools()
        {
            var set = new ToolSet();
            set.Add(new EditorStateTool(_host, () => _bridge));
            set.Add(new ReadConsoleTool());
            set.Add(new ListCommandsTool(set));
            set.Add(new SceneTool());
            set.Add(new GameObjectTool());
            set.Add(new AssetTool());
            set.Add(new PrefabTool());
            set.Add(new RefreshTool());
            set.Add(new PlayModeTool());
            set.Add(new MenuItemTool());
            set.Add(new ScreenshotTool());
            set.Add(new ExecuteCodeTool());
            foreach (var tool in Waiting) set.Add(tool);
            foreach (var method in TypeCache.GetMethodsWithAttribute<RaincheckToolAttribute>())
            {
                var tool = MethodTool.From(method, out var fault);
                if (tool != null && !set.Add(tool)) fault = "the name `" + tool.Info.Name + "` is taken";
                if (fault != null) Debug.LogWarning("Raincheck: " + method.DeclaringType + "." + method.Name + " is not a tool: " + fault);
            }
            return set;
        }

        static void Stop(string reason, int? expectedBackMs)
        {
            if (_bridge == null) return;
            if (reason == "reload") _bridge.SetState("reloading");
            else _bridge.SetState("quitting");
            _bridge.Leave(reason, expectedBackMs);
            _bridge = null;
        }
    }
}
