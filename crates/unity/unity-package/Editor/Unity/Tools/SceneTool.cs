using System.Collections;
using System.Collections.Generic;
using Raincheck.Core;
using UnityEditor;
using UnityEditor.SceneManagement;
using UnityEngine;
using UnityEngine.SceneManagement;

namespace Raincheck.InEditor
{
    /// <summary>Scenes: what is in them, which are open, opening and saving.</summary>
    sealed class SceneTool : Tool
    {
        const string Actions = "get_hierarchy, get_active, list, load or save";
        const int PageOfProgress = 100;

        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "manage_scene",
            Description = "get_hierarchy lists game objects flat, parents before children; get_active, list, load, save.",
            SupportsCancel = true,
            DefaultTimeoutMs = 60000,
            MaxTimeoutMs = 300000,
            Schema = Arguments.Schema(new[] { "action" }, new JsonObject
            {
                { "action", Arguments.OneOf("get_hierarchy", "get_active", "list", "load", "save") },
                { "path", Arguments.Type("string") },
                { "root", Arguments.Type("string") },
                { "max_depth", Arguments.Type("integer") },
                { "include_components", Arguments.Type("boolean") },
                { "limit", Arguments.Type("integer") },
                { "after", Arguments.Type("string") },
            }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            var given = context.Params;
            Arguments.Only(given, "action", "path", "root", "max_depth", "include_components", "limit", "after");
            var action = Arguments.Need(given, "action");
            switch (action)
            {
                case "get_hierarchy": return Hierarchy(context);
                case "get_active": context.Result = Describe(SceneManager.GetActiveScene()); return null;
                case "list": context.Result = List(); return null;
                case "load": context.Result = Load(given); return null;
                case "save": context.Result = Save(given); return null;
                default: throw Arguments.Unknown(action, Actions);
            }
        }

        // Depth first without recursion, as long as the time allows, so that no scene is too deep or too large.
        static IEnumerator Hierarchy(ToolContext context)
        {
            var given = context.Params;
            var maxDepth = Arguments.Whole(given, "max_depth", int.MaxValue, 0, int.MaxValue);
            var withComponents = Arguments.Flag(given, "include_components", false);
            var limit = Arguments.Whole(given, "limit", int.MaxValue, 1, int.MaxValue);
            var after = Arguments.Id(given, "after");
            var open = new Stack<KeyValuePair<Transform, int>>();
            Begin(open, Arguments.Id(given, "root"));
            var found = new List<object>();
            var visited = 0;
            string next = null;
            while (open.Count > 0)
            {
                var top = open.Pop();
                // Something else may have destroyed it between two steps.
                if (top.Key == null) continue;
                if (top.Value < maxDepth)
                    for (var child = top.Key.childCount - 1; child >= 0; child--)
                        open.Push(new KeyValuePair<Transform, int>(top.Key.GetChild(child), top.Value + 1));
                visited++;
                if (after != null)
                {
                    if (Compat.IdOf(top.Key.gameObject) == after) after = null;
                }
                else
                {
                    found.Add(Objects.Summary(top.Key.gameObject, top.Value, withComponents));
                    if (found.Count == limit && open.Count > 0)
                    {
                        next = Compat.IdOf(top.Key.gameObject);
                        break;
                    }
                }
                if (visited % PageOfProgress == 0)
                    context.Report(visited, 0, visited + " objects", new JsonObject
                    {
                        { "count", found.Count },
                        { "newest", found.GetRange(System.Math.Max(0, found.Count - PageOfProgress), System.Math.Min(PageOfProgress, found.Count)) },
                    });
                yield return null;
            }
            if (after != null) throw Arguments.Invalid("`after` names no object of this hierarchy");
            var answer = new JsonObject { { "scene", Describe(SceneManager.GetActiveScene()) }, { "count", found.Count }, { "objects", found } };
            context.Result = answer.AddIfPresent("next_after", next);
        }

        static void Begin(Stack<KeyValuePair<Transform, int>> open, string root)
        {
            if (root != null)
            {
                open.Push(new KeyValuePair<Transform, int>(Objects.Find(root, null).transform, 0));
                return;
            }
            for (var scene = SceneManager.sceneCount - 1; scene >= 0; scene--)
            {
                var one = SceneManager.GetSceneAt(scene);
                if (!one.isLoaded) continue;
                var roots = one.GetRootGameObjects();
                for (var at = roots.Length - 1; at >= 0; at--) open.Push(new KeyValuePair<Transform, int>(roots[at].transform, 0));
            }
        }

        static JsonObject Describe(Scene scene) => new JsonObject
        {
            { "name", scene.name },
            { "path", scene.path },
            { "is_loaded", scene.isLoaded },
            { "is_dirty", scene.isDirty },
            { "root_count", scene.isLoaded ? scene.rootCount : 0 },
        };

        static JsonObject List()
        {
            var open = new List<object>();
            for (var at = 0; at < SceneManager.sceneCount; at++) open.Add(Describe(SceneManager.GetSceneAt(at)));
            var assets = new List<object>();
            foreach (var guid in AssetDatabase.FindAssets("t:Scene")) assets.Add(AssetDatabase.GUIDToAssetPath(guid));
            return new JsonObject { { "open", open }, { "assets", assets } };
        }

        static JsonObject Load(JsonObject given)
        {
            var path = Arguments.AssetPath(given, "path");
            if (EditorApplication.isPlaying) throw new ToolException("playing", "a scene cannot be opened while the game plays; stop it first");
            for (var at = 0; at < SceneManager.sceneCount; at++)
                if (SceneManager.GetSceneAt(at).isDirty)
                    throw new ToolException("unsaved_changes", "`" + SceneManager.GetSceneAt(at).name + "` has changes that are not saved; save it first");
            if (AssetDatabase.LoadMainAssetAtPath(path) == null) throw new ToolException("not_found", "there is no scene `" + path + "`");
            return Describe(EditorSceneManager.OpenScene(path, OpenSceneMode.Single));
        }

        // A scene without a path would raise a file panel, which holds the main thread until a person comes.
        static JsonObject Save(JsonObject given)
        {
            var scene = SceneManager.GetActiveScene();
            var path = given.Has("path") ? Arguments.AssetPath(given, "path") : scene.path;
            if (EditorApplication.isPlaying) throw new ToolException("playing", "a scene cannot be saved while the game plays; stop it first");
            if (string.IsNullOrEmpty(path)) throw new ToolException("scene_has_no_path", "give `path` to save a scene that was never saved");
            if (!path.EndsWith(".unity", System.StringComparison.Ordinal)) throw Arguments.Invalid("`path` has to end in .unity");
            if (!EditorSceneManager.SaveScene(scene, path)) throw new ToolException("not_saved", "`" + path + "` could not be written");
            return Describe(SceneManager.GetActiveScene());
        }
    }
}
