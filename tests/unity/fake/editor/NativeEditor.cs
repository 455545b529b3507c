using System;
using System.Collections.Generic;
using System.IO;
using UnityEditor;
using UnityEditor.Compilation;

namespace FakeUnity
{
    /// <summary>The editor below C#: compiles, play mode and what is wanted next. Lives over every domain.</summary>
    public static class NativeEditor
    {
        public static string ContentsPath = "";
        public static string AssembliesPath = "";
        public static bool Compiling;
        public static bool Playing;
        public static bool? WantsPlay;
        public static bool WantsReload;
        public static bool UpdateWanted;

        /// <summary>A file was saved; the editor has not noticed yet.</summary>
        public static bool ScriptsEdited;

        /// <summary>The editor has noticed and compiles at the next update.</summary>
        public static bool ScriptsChanged;

        /// <summary>How many compiles follow one another, each with a reload.</summary>
        public static int Passes = 1;
        public static bool HoldCompile;
        public static readonly List<string> CompileErrors = new List<string>();
        public static readonly Dictionary<string, UnityEngine.Object> Assets = new Dictionary<string, UnityEngine.Object>();
        public static readonly HashSet<string> Folders = new HashSet<string> { "Assets" };
        static int _compileTicks;

        /// <summary>One turn of the editor's loop; answers whether the domain is to be reloaded after it.</summary>
        public static bool Tick()
        {
            UpdateWanted = false;
            EditorApplication.update?.Invoke();
            Play();
            if (Compiling && !HoldCompile && --_compileTicks <= 0) return FinishCompile();
            if (WantsReload && !Compiling)
            {
                WantsReload = false;
                return true;
            }
            if (ScriptsChanged && !Compiling) StartCompile();
            return false;
        }

        static void StartCompile()
        {
            ScriptsChanged = false;
            ScriptsEdited = false;
            Compiling = true;
            _compileTicks = 3;
            CompilationPipeline.Started();
        }

        // The end of a compile comes before the reload that it leads to.
        static bool FinishCompile()
        {
            var messages = CompileErrors.ConvertAll(text => new CompilerMessage { type = CompilerMessageType.Error, message = text, file = "Assets/Scripts/Kit.cs", line = 7, column = 13 });
            messages.Add(new CompilerMessage { type = CompilerMessageType.Warning, message = "warning CS0168: never used", file = "Assets/Scripts/Kit.cs", line = 3 });
            CompilationPipeline.Compiled("Library/ScriptAssemblies/Assembly-CSharp.dll", messages.ToArray());
            CompilationPipeline.Finished();
            Compiling = false;
            if (CompileErrors.Count > 0) return false;
            if (--Passes > 0) ScriptsChanged = true;
            else Passes = 1;
            WantsReload = true;
            return false;
        }

        static void Play()
        {
            if (WantsPlay == null || WantsPlay == Playing) { WantsPlay = null; return; }
            var play = WantsPlay.Value;
            EditorApplication.Change(play ? PlayModeStateChange.ExitingEditMode : PlayModeStateChange.ExitingPlayMode);
            Playing = play;
            WantsPlay = null;
            // Entering the game reloads the domain, as it does by default.
            if (play) WantsReload = true;
            EditorApplication.Change(play ? PlayModeStateChange.EnteredPlayMode : PlayModeStateChange.EnteredEditMode);
        }

        public static void BeforeReload() => AssemblyReloadEvents.Before();

        public static void Quit() => EditorApplication.Quit();

        /// <summary>The events that a domain still listens to: in an engine that is not reloaded with it, these keep it from being unloaded.</summary>
        public static string LeftBehind() => string.Join(" ",
            EditorApplication.IsListenedTo ? "EditorApplication" : "", AssemblyReloadEvents.IsListenedTo ? "AssemblyReloadEvents" : "",
            CompilationPipeline.IsListenedTo ? "CompilationPipeline" : "", Native.IsListenedTo ? "Application" : "").Trim();

        /// <summary>Forgets the listeners of a domain that ends.</summary>
        public static void ForgetDomain()
        {
            EditorApplication.Reset();
            AssemblyReloadEvents.Reset();
            CompilationPipeline.Reset();
        }

        public static List<string> Assemblies() => new List<string>(Directory.GetFiles(AssembliesPath, "Raincheck.*.dll"));

        public static string[] References()
        {
            var references = new List<string>(Directory.GetFiles(Path.GetDirectoryName(typeof(object).Assembly.Location), "System*.dll"));
            references.Add(typeof(object).Assembly.Location);
            references.AddRange(Directory.GetFiles(AssembliesPath, "Unity*.dll"));
            return references.ToArray();
        }
    }
}
