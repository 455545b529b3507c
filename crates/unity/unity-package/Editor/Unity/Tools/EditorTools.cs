using System;
using System.Collections;
using Raincheck.Core;
using UnityEditor;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>Imports what changed on disk, compiles, and answers with the compiler's diagnostics after the reload.</summary>
    sealed class RefreshTool : Tool
    {
        // How long to wait for a compile that was asked for to begin.
        const int BeginMs = 5000;

        // How long the editor has to be idle: what a reload sets going begins within this.
        const int SettledMs = 250;

        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "refresh_and_compile",
            Description = "Imports changed files and compiles; answers with errors and warnings once the reload is over.",
            Mode = ToolMode.Job,
            ReloadSafe = true,
            Idempotent = true,
            Schema = Arguments.Schema(new string[0], new JsonObject { { "force", Arguments.Type("boolean") } }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            Arguments.Only(context.Params, "force");
            if (EditorApplication.isPlaying) throw new ToolException("playing", "scripts are not reloaded while the game plays; stop it first");
            var force = Arguments.Flag(context.Params, "force", false);
            var before = CompileWatch.Count;
            context.Remember(new JsonObject { { "count", before }, { "began_ms", Words.NowMs() }, { "force", force } });
            context.Report(0, 0, "importing");
            AssetDatabase.Refresh();
            if (force && CompileWatch.Count == before) UnityEditor.Compilation.CompilationPipeline.RequestScriptCompilation();
            return Settle(context, before, force);
        }

        public override IEnumerator Resume(ToolContext context) =>
            Settle(context, context.Memory?.Integer("count") ?? 0, context.Memory?.Flag("force") ?? false);

        // A compile may be followed by a second one, and a reload by another: only an idle editor has the answer.
        static IEnumerator Settle(ToolContext context, long before, bool force)
        {
            var began = context.Memory?.Integer("began_ms") ?? Words.NowMs();
            // Unity begins a compile at the next update at the earliest.
            yield return Wait.NextUpdate;
            var idle = 0;
            var busyMs = Words.NowMs();
            while (idle < 3 || Words.NowMs() - busyMs < SettledMs)
            {
                var expected = force && CompileWatch.Count == before && Words.NowMs() - began < BeginMs;
                var busy = expected || !CompileWatch.Ended || StateTracker.IsCompiling || EditorApplication.isUpdating;
                idle = busy ? 0 : idle + 1;
                if (busy) busyMs = Words.NowMs();
                if (busy) context.Report(0, 0, StateTracker.IsCompiling ? "compiling" : "importing");
                yield return Wait.NextUpdate;
            }
            var compiled = CompileWatch.Count > before;
            var report = CompileWatch.Report();
            // Without a compile the diagnostics are those of the last one, which still hold.
            report["compiled"] = compiled;
            report["succeeded"] = (report.Integer("errors") ?? 0) == 0 && !EditorUtility.scriptCompilationFailed;
            context.Result = report;
        }
    }

    /// <summary>Starts, pauses, stops and steps the game.</summary>
    sealed class PlayModeTool : Tool
    {
        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "control_play_mode",
            Description = "play, pause (again to go on), stop or step; answers when the editor has changed over.",
            ReloadSafe = true,
            DefaultTimeoutMs = 60000,
            MaxTimeoutMs = 300000,
            Schema = Arguments.Schema(new[] { "action" }, new JsonObject { { "action", Arguments.OneOf("play", "pause", "stop", "step") } }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            Arguments.Only(context.Params, "action");
            var action = Arguments.Need(context.Params, "action");
            switch (action)
            {
                case "play":
                    if (EditorUtility.scriptCompilationFailed) throw new ToolException("compile_errors", "the game does not start while scripts have errors; refresh_and_compile names them");
                    EditorApplication.isPlaying = true;
                    break;
                case "stop": EditorApplication.isPlaying = false; break;
                case "pause":
                    NeedGame("pause");
                    EditorApplication.isPaused = !EditorApplication.isPaused;
                    break;
                case "step":
                    NeedGame("step");
                    EditorApplication.Step();
                    break;
                default: throw Arguments.Unknown(action, "play, pause, stop or step");
            }
            return Settle(context, action);
        }

        public override IEnumerator Resume(ToolContext context) => Settle(context, Arguments.Need(context.Params, "action"));

        static IEnumerator Settle(ToolContext context, string action)
        {
            yield return Wait.NextUpdate;
            while ((action == "play" && !EditorApplication.isPlaying) || (action == "stop" && EditorApplication.isPlaying))
            {
                // The person, or the game itself, may have turned it back.
                if (action == "play" && !EditorApplication.isPlayingOrWillChangePlaymode)
                    throw new ToolException("not_started", "the editor did not start the game; read_console may say why");
                yield return Wait.NextUpdate;
            }
            context.Result = new JsonObject { { "playing", EditorApplication.isPlaying }, { "paused", EditorApplication.isPaused } };
        }

        static void NeedGame(string action)
        {
            if (!EditorApplication.isPlaying) throw new ToolException("not_playing", "`" + action + "` needs a game that plays; start it first");
        }
    }

    /// <summary>Runs a command of the menu.</summary>
    sealed class MenuItemTool : Tool
    {
        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "execute_menu_item",
            Description = "Runs a command of the editor's menu by its path, as in Assets/Refresh.",
            DefaultTimeoutMs = 300000,
            MaxTimeoutMs = 1800000,
            Schema = Arguments.Schema(new[] { "path" }, new JsonObject { { "path", Arguments.Type("string") } }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            Arguments.Only(context.Params, "path");
            var path = Arguments.Need(context.Params, "path");
            // These end the editor, or raise a panel that only a person can close.
            foreach (var refused in new[] { "File/Exit", "File/Quit", "File/Open Project...", "File/New Project..." })
                if (string.Equals(path, refused, StringComparison.OrdinalIgnoreCase)) throw new ToolException("refused", "`" + path + "` is not run for a server");
            if (!EditorApplication.ExecuteMenuItem(path)) throw new ToolException("not_found", "there is no menu command `" + Words.Cut(path, 200) + "`, or it is not enabled now");
            context.Result = new JsonObject { { "path", path }, { "executed", true } };
            return null;
        }
    }

    /// <summary>A picture of what a camera sees.</summary>
    sealed class ScreenshotTool : Tool
    {
        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "capture_screenshot",
            Description = "A PNG of the game's main camera, or with source scene of the scene view.",
            ReadOnly = true,
            Schema = Arguments.Schema(new string[0], new JsonObject
            {
                { "source", Arguments.OneOf("game", "scene") },
                { "camera", Arguments.Type("string") },
                { "width", Arguments.Type("integer") },
                { "height", Arguments.Type("integer") },
            }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            var given = context.Params;
            Arguments.Only(given, "source", "camera", "width", "height");
            var width = Arguments.Whole(given, "width", 960, 16, 4096);
            var height = Arguments.Whole(given, "height", 540, 16, 4096);
            var png = Render(CameraFor(given), width, height);
            context.Result = new JsonObject
            {
                { "mime_type", "image/png" },
                { "width", width },
                { "height", height },
                { "data", Convert.ToBase64String(png) },
            };
            return null;
        }

        static Camera CameraFor(JsonObject given)
        {
            var name = Arguments.Id(given, "camera");
            if (name != null)
            {
                var named = Objects.Find(name, null).GetComponent<Camera>();
                return named != null ? named : throw new ToolException("not_found", "`" + name + "` has no camera");
            }
            var source = Arguments.Text(given, "source") ?? (Camera.main != null ? "game" : "scene");
            if (source != "game" && source != "scene") throw Arguments.Invalid("`source` takes game or scene");
            if (source == "game")
                return Camera.main != null ? Camera.main : throw new ToolException("no_camera", "no camera is tagged MainCamera; use source scene, or name a camera");
            var view = SceneView.lastActiveSceneView;
            return view != null && view.camera != null ? view.camera : throw new ToolException("no_camera", "no scene view is open");
        }

        static byte[] Render(Camera camera, int width, int height)
        {
            var target = RenderTexture.GetTemporary(width, height, 24);
            var picture = new Texture2D(width, height, TextureFormat.RGB24, false);
            var before = camera.targetTexture;
            var active = RenderTexture.active;
            try
            {
                camera.targetTexture = target;
                camera.Render();
                RenderTexture.active = target;
                picture.ReadPixels(new Rect(0, 0, width, height), 0, 0);
                picture.Apply();
                return picture.EncodeToPNG();
            }
            finally
            {
                camera.targetTexture = before;
                RenderTexture.active = active;
                RenderTexture.ReleaseTemporary(target);
                UnityEngine.Object.DestroyImmediate(picture);
            }
        }
    }
}
