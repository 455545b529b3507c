using Raincheck.Core;
using UnityEditor;
using UnityEditor.Compilation;
using UnityEditorInternal;

namespace Raincheck.InEditor
{
    /// <summary>Follows what the editor is doing.</summary>
    /// <remarks>
    /// The end of a compile comes before the reload that it leads to, so <c>ready</c> is said only by an update that
    /// finds the editor idle. While the game plays, <c>isCompiling</c> can stay true for the whole session when the
    /// person chose to recompile afterwards; then only the events count.
    /// </remarks>
    static class StateTracker
    {
        static bool _compiling;
        static bool _testing;
        static string _transition;

        public static void Begin()
        {
            CompilationPipeline.compilationStarted += Started;
            CompilationPipeline.compilationFinished += Finished;
            EditorApplication.playModeStateChanged += Changed;
        }

        public static void End()
        {
            CompilationPipeline.compilationStarted -= Started;
            CompilationPipeline.compilationFinished -= Finished;
            EditorApplication.playModeStateChanged -= Changed;
        }

        /// <summary>Whether tests run; told by whoever runs them.</summary>
        public static bool Testing { set { _testing = value; Now(); } }

        public static void Update(Bridge bridge)
        {
            bridge.HoldsBack = IsCompiling;
            bridge.SetState(State(), InternalEditorUtility.isApplicationActive);
        }

        /// <summary>Whether scripts are being compiled or a reload is about to come.</summary>
        public static bool IsCompiling => _compiling || (EditorApplication.isCompiling && !EditorApplication.isPlaying);

        static void Now()
        {
            if (Bootstrap.Bridge != null) Update(Bootstrap.Bridge);
        }

        static void Started(object compile)
        {
            _compiling = true;
            Now();
        }

        static void Finished(object compile) => _compiling = false;

        static void Changed(PlayModeStateChange change)
        {
            _transition = change == PlayModeStateChange.ExitingEditMode ? "entering_play_mode"
                : change == PlayModeStateChange.ExitingPlayMode ? "exiting_play_mode" : null;
            Now();
        }

        static string State()
        {
            if (IsCompiling) return "compiling";
            if (BuildPipeline.isBuildingPlayer) return "building";
            if (_transition != null) return _transition;
            if (_testing) return "running_tests";
            if (EditorApplication.isUpdating) return "importing";
            if (EditorApplication.isPlaying) return EditorApplication.isPaused ? "paused" : "playing";
            return "ready";
        }
    }
}
