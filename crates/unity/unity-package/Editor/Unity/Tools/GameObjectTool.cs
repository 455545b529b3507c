using System.Collections;
using System.Collections.Generic;
using Raincheck.Core;
using UnityEditor;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>Game objects and their components. Every change can be undone by the person.</summary>
    sealed class GameObjectTool : Tool
    {
        const string Actions = "find, get, create, modify, delete or get_components";
        const int MostFound = 200;

        public override ToolInfo Info { get; } = new ToolInfo
        {
            Name = "manage_gameobject",
            Description = "find, get, create, modify, delete, get_components. Ids are text; a number is taken too.",
            Schema = Arguments.Schema(new[] { "action" }, new JsonObject
            {
                { "action", Arguments.OneOf("find", "get", "create", "modify", "delete", "get_components") },
                { "target", Arguments.IdType() },
                { "id", Arguments.IdType() },
                { "search", Arguments.Type("string") },
                { "by", Arguments.OneOf("name", "path", "tag", "component", "id") },
                { "name", Arguments.Type("string") },
                { "parent", Arguments.IdType() },
                { "position", Arguments.Type("array") },
                { "rotation", Arguments.Type("array") },
                { "scale", Arguments.Type("array") },
                { "active", Arguments.Type("boolean") },
                { "tag", Arguments.Type("string") },
                { "layer", Arguments.Type("integer") },
                { "components", Arguments.Type("array") },
                { "properties", Arguments.Type("object") },
            }),
        };

        public override IEnumerator Run(ToolContext context)
        {
            var given = context.Params;
            Arguments.Only(given, "action", "target", "id", "search", "by", "name", "parent", "position", "rotation", "scale", "active", "tag", "layer", "components", "properties");
            var action = Arguments.Need(given, "action");
            switch (action)
            {
                case "find": context.Result = Search(given); break;
                case "get": context.Result = Describe(Target(given)); break;
                case "get_components": context.Result = new JsonObject { { "components", Components(Target(given)) } }; break;
                case "create": context.Result = Create(given); break;
                case "modify": context.Result = Modify(given); break;
                case "delete": context.Result = Delete(Target(given)); break;
                default: throw Arguments.Unknown(action, Actions);
            }
            return null;
        }

        static GameObject Target(JsonObject given)
        {
            var id = Arguments.Id(given, "id");
            return id != null ? Objects.Find(id, "id")
                : Objects.Find(Arguments.Id(given, "target") ?? throw Arguments.Invalid("`target` is needed here: an id, a path or a name"), Arguments.Text(given, "by"));
        }

        static JsonObject Search(JsonObject given)
        {
            var text = Arguments.Text(given, "search") ?? Arguments.Id(given, "target") ?? throw Arguments.Invalid("`search` is needed here");
            var found = Objects.Search(text, Arguments.Text(given, "by") ?? "name", false, MostFound + 1);
            var shown = new List<object>();
            for (var at = 0; at < System.Math.Min(found.Count, MostFound); at++) shown.Add(Objects.Summary(found[at], 0, true));
            return new JsonObject { { "count", shown.Count }, { "more", found.Count > MostFound }, { "objects", shown } };
        }

        static JsonObject Describe(GameObject item)
        {
            var shown = Objects.Summary(item, 0, false);
            shown.Remove("depth");
            var at = item.transform;
            shown["position"] = new object[] { at.position.x, at.position.y, at.position.z };
            shown["rotation"] = new object[] { at.eulerAngles.x, at.eulerAngles.y, at.eulerAngles.z };
            shown["scale"] = new object[] { at.localScale.x, at.localScale.y, at.localScale.z };
            shown["tag"] = item.tag;
            shown["layer"] = item.layer;
            shown["scene"] = item.scene.path;
            shown["components"] = Components(item);
            return shown;
        }

        static List<object> Components(GameObject item)
        {
            var list = new List<object>();
            foreach (var component in item.GetComponents<Component>())
                list.Add(component == null
                    ? new JsonObject { { "type", null }, { "missing_script", true } }
                    : new JsonObject { { "id", Compat.IdOf(component) }, { "type", component.GetType().FullName }, { "properties", Properties.Read(component) } });
            return list;
        }

        static JsonObject Create(JsonObject given)
        {
            var types = Arguments.Texts(given, "components").ConvertAll(Objects.TypeNamed);
            var parent = Arguments.Id(given, "parent");
            var under = parent == null ? null : Objects.Find(parent, null).transform;
            var item = new GameObject(Arguments.Text(given, "name") ?? "GameObject");
            Undo.RegisterCreatedObjectUndo(item, "Create " + item.name);
            try
            {
                if (under != null) item.transform.SetParent(under, false);
                foreach (var type in types) if (item.GetComponent(type) == null) Undo.AddComponent(item, type);
                Apply(item, given);
            }
            catch
            {
                // A call that fails leaves nothing behind.
                Undo.DestroyObjectImmediate(item);
                throw;
            }
            return Describe(item);
        }

        static JsonObject Modify(JsonObject given)
        {
            var item = Target(given);
            var types = Arguments.Texts(given, "components").ConvertAll(Objects.TypeNamed);
            Undo.RegisterCompleteObjectUndo(new Object[] { item, item.transform }, "Modify " + item.name);
            if (given.Has("name")) item.name = Arguments.Need(given, "name");
            if (given.Has("parent"))
            {
                var parent = Arguments.Id(given, "parent");
                Undo.SetTransformParent(item.transform, string.IsNullOrEmpty(parent) ? null : Objects.Find(parent, null).transform, "Move " + item.name);
            }
            foreach (var type in types) if (item.GetComponent(type) == null) Undo.AddComponent(item, type);
            Apply(item, given);
            EditorUtility.SetDirty(item);
            return Describe(item);
        }

        static void Apply(GameObject item, JsonObject given)
        {
            if (Arguments.Vector(given, "position") is Vector3 position) item.transform.position = position;
            if (Arguments.Vector(given, "rotation") is Vector3 rotation) item.transform.eulerAngles = rotation;
            if (Arguments.Vector(given, "scale") is Vector3 scale) item.transform.localScale = scale;
            if (given.Has("active")) item.SetActive(Arguments.Flag(given, "active", true));
            if (given.Has("tag")) item.tag = Arguments.Need(given, "tag");
            if (given.Has("layer")) item.layer = Arguments.Whole(given, "layer", 0, 0, 31);
            var properties = given.Object("properties");
            if (given.Has("properties") && properties == null) throw Arguments.Invalid("`properties` has to be an object: component, then its fields");
            foreach (var entry in properties ?? new JsonObject())
            {
                var component = item.GetComponent(Objects.TypeNamed(entry.Key));
                if (component == null) throw new ToolException("not_found", "`" + item.name + "` has no component `" + entry.Key + "`; name it in `components` to add it");
                Properties.Write(component, entry.Value as JsonObject ?? throw Arguments.Invalid("`properties." + entry.Key + "` has to be an object"));
            }
        }

        static JsonObject Delete(GameObject item)
        {
            var gone = new JsonObject { { "id", Compat.IdOf(item) }, { "path", Objects.PathOf(item.transform) }, { "deleted", true } };
            Undo.DestroyObjectImmediate(item);
            return gone;
        }
    }
}
