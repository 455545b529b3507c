using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using Raincheck.Core;
using UnityEditor;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>The assets of the project.</summary>
    sealed class AssetTool : Tool
    {
        const string Actions = "find, get, create_folder, move, copy, delete or import";

        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "manage_asset",
            Description = "find (Unity's search words, as in t:Material wood), get, create_folder, move, copy, delete (to the trash), import.",
            Schema = Arguments.Schema(new[] { "action" }, new JsonObject
            {
                { "action", Arguments.OneOf("find", "get", "create_folder", "move", "copy", "delete", "import") },
                { "path", Arguments.Type("string") },
                { "to", Arguments.Type("string") },
                { "search", Arguments.Type("string") },
                { "limit", Arguments.Type("integer") },
                { "properties", Arguments.Type("boolean") },
            }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            var given = context.Params;
            Arguments.Only(given, "action", "path", "to", "search", "limit", "properties");
            var action = Arguments.Need(given, "action");
            switch (action)
            {
                case "find": context.Result = Find(given); break;
                case "get": context.Result = Get(Existing(given), Arguments.Flag(given, "properties", false)); break;
                case "create_folder": context.Result = CreateFolder(Arguments.AssetPath(given, "path")); break;
                case "move": context.Result = Move(Existing(given), Arguments.AssetPath(given, "to")); break;
                case "copy": context.Result = Copy(Existing(given), Arguments.AssetPath(given, "to")); break;
                case "delete": context.Result = Delete(Existing(given)); break;
                case "import":
                    var path = Arguments.AssetPath(given, "path");
                    AssetDatabase.ImportAsset(path, ImportAssetOptions.ForceUpdate);
                    context.Result = Get(path, false);
                    break;
                default: throw Arguments.Unknown(action, Actions);
            }
            return null;
        }

        static string Existing(JsonObject given)
        {
            var path = Arguments.AssetPath(given, "path");
            if (string.IsNullOrEmpty(AssetDatabase.AssetPathToGUID(path)) || (AssetDatabase.LoadMainAssetAtPath(path) == null && !AssetDatabase.IsValidFolder(path)))
                throw new ToolException("not_found", "there is no asset `" + path + "`");
            return path;
        }

        static JsonObject Find(JsonObject given)
        {
            var limit = Arguments.Whole(given, "limit", 200, 1, 5000);
            var folders = given.Has("path") ? new[] { Arguments.AssetPath(given, "path") } : null;
            var search = Arguments.Text(given, "search") ?? "";
            var guids = folders == null ? AssetDatabase.FindAssets(search) : AssetDatabase.FindAssets(search, folders);
            var assets = new List<object>();
            for (var at = 0; at < Math.Min(limit, guids.Length); at++)
            {
                var path = AssetDatabase.GUIDToAssetPath(guids[at]);
                var type = AssetDatabase.GetMainAssetTypeAtPath(path);
                assets.Add(new JsonObject { { "path", path }, { "guid", guids[at] }, { "type", type == null ? null : type.Name } });
            }
            return new JsonObject { { "total", guids.Length }, { "assets", assets } };
        }

        internal static JsonObject Get(string path, bool withProperties)
        {
            var asset = AssetDatabase.LoadMainAssetAtPath(path);
            var type = AssetDatabase.GetMainAssetTypeAtPath(path);
            var shown = new JsonObject { { "path", path }, { "guid", AssetDatabase.AssetPathToGUID(path) }, { "type", type == null ? null : type.FullName } };
            if (asset != null) shown["id"] = Compat.IdOf(asset);
            shown["depends_on"] = AssetDatabase.GetDependencies(path, false);
            if (withProperties && asset != null) shown["properties"] = Properties.Read(asset);
            return shown;
        }

        static JsonObject CreateFolder(string path)
        {
            if (AssetDatabase.IsValidFolder(path)) throw new ToolException("exists", "`" + path + "` is there already");
            var at = path.LastIndexOf('/');
            if (at < 0 || !AssetDatabase.IsValidFolder(path.Substring(0, at))) throw new ToolException("not_found", "the folder above `" + path + "` is not there");
            if (string.IsNullOrEmpty(AssetDatabase.CreateFolder(path.Substring(0, at), path.Substring(at + 1))))
                throw new ToolException("not_created", "`" + path + "` could not be created");
            return Get(path, false);
        }

        static JsonObject Move(string from, string to)
        {
            var fault = AssetDatabase.MoveAsset(from, to);
            if (!string.IsNullOrEmpty(fault)) throw new ToolException("not_moved", fault);
            return Get(to, false);
        }

        static JsonObject Copy(string from, string to)
        {
            if (!string.IsNullOrEmpty(AssetDatabase.AssetPathToGUID(to)) && AssetDatabase.LoadMainAssetAtPath(to) != null)
                throw new ToolException("exists", "`" + to + "` is there already");
            if (!AssetDatabase.CopyAsset(from, to)) throw new ToolException("not_copied", "`" + from + "` could not be copied to `" + to + "`");
            return Get(to, false);
        }

        static JsonObject Delete(string path)
        {
            if (!AssetDatabase.MoveAssetToTrash(path)) throw new ToolException("not_deleted", "`" + path + "` could not be moved to the trash");
            return new JsonObject { { "path", path }, { "deleted", true } };
        }
    }

    /// <summary>Prefabs: from a game object, into a scene, and back.</summary>
    sealed class PrefabTool : Tool
    {
        const string Actions = "create, instantiate, apply, revert or get";

        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "manage_prefab",
            Description = "create a prefab from target, instantiate path into the scene, apply or revert target's overrides, get.",
            Schema = Arguments.Schema(new[] { "action" }, new JsonObject
            {
                { "action", Arguments.OneOf("create", "instantiate", "apply", "revert", "get") },
                { "path", Arguments.Type("string") },
                { "target", Arguments.IdType() },
                { "parent", Arguments.IdType() },
                { "position", Arguments.Type("array") },
            }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            var given = context.Params;
            Arguments.Only(given, "action", "path", "target", "parent", "position");
            var action = Arguments.Need(given, "action");
            switch (action)
            {
                case "create": context.Result = Create(given); break;
                case "instantiate": context.Result = Instantiate(given); break;
                case "apply":
                    var applied = Instance(given);
                    PrefabUtility.ApplyPrefabInstance(applied, InteractionMode.AutomatedAction);
                    context.Result = Objects.Summary(applied, 0, true);
                    break;
                case "revert":
                    var reverted = Instance(given);
                    PrefabUtility.RevertPrefabInstance(reverted, InteractionMode.AutomatedAction);
                    context.Result = Objects.Summary(reverted, 0, true);
                    break;
                case "get": context.Result = AssetTool.Get(Prefab(given, out _), true); break;
                default: throw Arguments.Unknown(action, Actions);
            }
            return null;
        }

        static string Prefab(JsonObject given, out GameObject prefab)
        {
            var path = Arguments.AssetPath(given, "path");
            prefab = AssetDatabase.LoadMainAssetAtPath(path) as GameObject;
            if (prefab == null) throw new ToolException("not_found", "there is no prefab `" + path + "`");
            return path;
        }

        static GameObject Instance(JsonObject given)
        {
            var item = Objects.Find(Arguments.Id(given, "target") ?? throw Arguments.Invalid("`target` is needed here"), null);
            var root = PrefabUtility.GetOutermostPrefabInstanceRoot(item);
            return root != null ? root : throw new ToolException("not_a_prefab", "`" + item.name + "` is not part of a prefab instance");
        }

        static JsonObject Create(JsonObject given)
        {
            var path = Arguments.AssetPath(given, "path");
            if (Path.GetExtension(path) != ".prefab") throw Arguments.Invalid("`path` has to end in .prefab");
            if (AssetDatabase.LoadMainAssetAtPath(path) != null) throw new ToolException("exists", "`" + path + "` is there already");
            var item = Objects.Find(Arguments.Id(given, "target") ?? throw Arguments.Invalid("`target` is needed here"), null);
            PrefabUtility.SaveAsPrefabAssetAndConnect(item, path, InteractionMode.AutomatedAction, out var done);
            if (!done) throw new ToolException("not_created", "`" + path + "` could not be written");
            return AssetTool.Get(path, false);
        }

        static JsonObject Instantiate(JsonObject given)
        {
            Prefab(given, out var prefab);
            var parent = Arguments.Id(given, "parent");
            var under = parent == null ? null : Objects.Find(parent, null).transform;
            var item = (GameObject)PrefabUtility.InstantiatePrefab(prefab);
            Undo.RegisterCreatedObjectUndo(item, "Instantiate " + item.name);
            if (under != null) item.transform.SetParent(under, false);
            if (Arguments.Vector(given, "position") is Vector3 position) item.transform.position = position;
            return Objects.Summary(item, 0, true);
        }
    }
}
