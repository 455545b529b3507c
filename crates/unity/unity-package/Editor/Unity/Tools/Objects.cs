using System;
using System.Collections.Generic;
using System.Text;
using Raincheck.Core;
using UnityEditor;
using UnityEngine;
using UnityEngine.SceneManagement;

namespace Raincheck.InEditor
{
    /// <summary>Finds game objects and describes them.</summary>
    static class Objects
    {
        /// <summary>The lines of a list: what one needs to choose an object.</summary>
        public static JsonObject Summary(GameObject item, int depth, bool withComponents)
        {
            var parent = item.transform.parent;
            var shown = new JsonObject
            {
                { "id", Compat.IdOf(item) },
                { "name", item.name },
                { "path", PathOf(item.transform) },
                { "depth", depth },
                { "active", item.activeSelf },
                { "children", item.transform.childCount },
            };
            if (parent != null) shown["parent_id"] = Compat.IdOf(parent.gameObject);
            if (item.tag != "Untagged") shown["tag"] = item.tag;
            if (item.layer != 0) shown["layer"] = item.layer;
            if (withComponents) shown["components"] = ComponentNames(item);
            return shown;
        }

        /// <summary>Names separated by <c>/</c>; a name may hold one itself, so the path is for people, the id for programs.</summary>
        public static string PathOf(Transform item)
        {
            var path = new StringBuilder(item.name);
            for (var up = item.parent; up != null; up = up.parent) path.Insert(0, '/').Insert(0, up.name);
            return path.Insert(0, '/').ToString();
        }

        public static List<object> ComponentNames(GameObject item)
        {
            var names = new List<object>();
            // A component whose script is missing is null.
            foreach (var component in item.GetComponents<Component>()) names.Add(component == null ? "(missing script)" : component.GetType().Name);
            return names;
        }

        /// <summary>Finds one object by id, by path, or by its name when there is exactly one of that name.</summary>
        public static GameObject Find(string target, string by)
        {
            if (by == null || by == "id")
            {
                var found = Compat.Find(target);
                if (found is GameObject item) return item;
                if (found is Component component) return component.gameObject;
                if (by == "id") throw NotFound(target);
            }
            var matches = Search(target, by ?? (target.IndexOf('/') >= 0 ? "path" : "name"), true, 2);
            if (matches.Count == 0) throw NotFound(target);
            if (matches.Count > 1)
                throw new ToolException("ambiguous", "more than one object is called `" + Words.Cut(target, 200) + "`; use an id, for example "
                    + Compat.IdOf(matches[0]) + " or " + Compat.IdOf(matches[1]));
            return matches[0];
        }

        /// <summary>Finds objects of the open scenes, inactive ones included.</summary>
        public static List<GameObject> Search(string text, string by, bool whole, int most)
        {
            var type = by == "component" ? TypeNamed(text) : null;
            var found = new List<GameObject>();
            foreach (var item in All())
            {
                if (!Matches(item, text, by, whole, type)) continue;
                found.Add(item.gameObject);
                if (found.Count >= most) break;
            }
            return found;
        }

        static bool Matches(Transform item, string text, string by, bool whole, Type type)
        {
            switch (by)
            {
                case "name":
                    return whole ? item.name == text : item.name.IndexOf(text, StringComparison.OrdinalIgnoreCase) >= 0;
                case "path":
                    var path = PathOf(item);
                    var wanted = text.StartsWith("/", StringComparison.Ordinal) ? text : "/" + text;
                    return whole ? path == wanted : path.IndexOf(text, StringComparison.OrdinalIgnoreCase) >= 0;
                case "tag": return item.gameObject.tag == text;
                case "component": return item.GetComponent(type) != null;
                case "id": return Compat.IdOf(item.gameObject) == text;
                default: throw Arguments.Invalid("`by` takes name, path, tag, component or id");
            }
        }

        static IEnumerable<Transform> All()
        {
            var open = new Stack<Transform>();
            for (var scene = SceneManager.sceneCount - 1; scene >= 0; scene--)
            {
                var one = SceneManager.GetSceneAt(scene);
                if (!one.isLoaded) continue;
                var roots = one.GetRootGameObjects();
                for (var at = roots.Length - 1; at >= 0; at--) open.Push(roots[at].transform);
            }
            while (open.Count > 0)
            {
                var top = open.Pop();
                for (var child = top.childCount - 1; child >= 0; child--) open.Push(top.GetChild(child));
                yield return top;
            }
        }

        /// <summary>Finds a component type by its name, or by its name with the namespace where the short one is not enough.</summary>
        public static Type TypeNamed(string name)
        {
            Type found = null;
            foreach (var type in TypeCache.GetTypesDerivedFrom<Component>())
            {
                if (type.FullName == name) return type;
                if (type.Name != name || type.IsAbstract) continue;
                if (found != null) throw new ToolException("ambiguous", "`" + name + "` is " + found.FullName + " or " + type.FullName + "; write the whole name");
                found = type;
            }
            return found ?? throw new ToolException("not_found", "there is no component type `" + Words.Cut(name, 200) + "`");
        }

        static ToolException NotFound(string target) =>
            new ToolException("not_found", "no open scene has an object `" + Words.Cut(target, 200) + "`");
    }
}
