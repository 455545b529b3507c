using System;
using System.Collections.Generic;
using System.Globalization;
using Raincheck.Core;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>Reads parameters, and refuses what does not fit by its name.</summary>
    static class Arguments
    {
        public static string Need(JsonObject given, string name) =>
            Text(given, name) ?? throw Invalid("`" + name + "` is needed here");

        public static string Text(JsonObject given, string name)
        {
            var value = given[name];
            if (value == null) return null;
            return value as string ?? throw Invalid("`" + name + "` has to be a string");
        }

        /// <summary>An object's id: text, or a whole number of any size.</summary>
        public static string Id(JsonObject given, string name)
        {
            switch (given[name])
            {
                case null: return null;
                case string text: return text;
                case long number: return number.ToString(CultureInfo.InvariantCulture);
                case ulong number: return number.ToString(CultureInfo.InvariantCulture);
                default: throw Invalid("`" + name + "` has to be an id: text or a whole number");
            }
        }

        public static bool Flag(JsonObject given, string name, bool otherwise)
        {
            if (given[name] == null) return otherwise;
            return given.Flag(name) ?? throw Invalid("`" + name + "` has to be true or false");
        }

        public static int Whole(JsonObject given, string name, int otherwise, int least, int most)
        {
            if (given[name] == null) return otherwise;
            var value = given.Integer(name) ?? throw Invalid("`" + name + "` has to be a whole number");
            if (value < least || value > most) throw Invalid("`" + name + "` has to be between " + least + " and " + most);
            return (int)value;
        }

        public static Vector3? Vector(JsonObject given, string name)
        {
            var value = given[name];
            if (value == null) return null;
            var parts = value as List<object>;
            if (value is JsonObject named) parts = new List<object> { named["x"], named["y"], named["z"] };
            if (parts == null || parts.Count != 3) throw Invalid("`" + name + "` has to be [x, y, z]");
            var numbers = new float[3];
            for (var at = 0; at < 3; at++) numbers[at] = (float)(Json.AsDouble(parts[at]) ?? throw Invalid("`" + name + "` has to be [x, y, z]"));
            return new Vector3(numbers[0], numbers[1], numbers[2]);
        }

        public static List<string> Texts(JsonObject given, string name)
        {
            var value = given[name];
            if (value == null) return new List<string>();
            if (value is string one) return new List<string> { one };
            if (!(value is List<object> items)) throw Invalid("`" + name + "` has to be a list of strings");
            return items.ConvertAll(item => item as string ?? throw Invalid("`" + name + "` has to be a list of strings"));
        }

        /// <summary>A path below <c>Assets</c> or <c>Packages</c>; nothing outside of the project is ever touched.</summary>
        public static string AssetPath(JsonObject given, string name)
        {
            var path = Need(given, name).Replace('\\', '/');
            if (!path.StartsWith("Assets/", StringComparison.Ordinal) && path != "Assets" && !path.StartsWith("Packages/", StringComparison.Ordinal))
                throw Invalid("`" + name + "` has to begin with Assets/ or Packages/");
            if (Array.IndexOf(path.Split('/'), "..") >= 0) throw Invalid("`" + name + "` may not contain ..");
            return path;
        }

        public static void Only(JsonObject given, params string[] known)
        {
            foreach (var member in given)
                if (Array.IndexOf(known, member.Key) < 0)
                    throw Invalid("there is no parameter `" + Words.Cut(member.Key, 64) + "`; there are " + string.Join(", ", known));
        }

        public static ToolException Unknown(string action, string known) =>
            Invalid("`action` takes " + known + ", not `" + Words.Cut(action ?? "", 40) + "`");

        public static ToolException Invalid(string message) => new ToolException("invalid_params", message);

        public static JsonObject Schema(string[] required, JsonObject properties)
        {
            var schema = new JsonObject { { "type", "object" }, { "properties", properties }, { "additionalProperties", false } };
            if (required.Length > 0) schema["required"] = required;
            return schema;
        }

        public static JsonObject Type(string type) => new JsonObject { { "type", type } };

        /// <summary>An id, as <see cref="Id"/> takes it.</summary>
        public static JsonObject IdType() => new JsonObject { { "type", new[] { "string", "integer" } } };

        public static JsonObject OneOf(params string[] values) => new JsonObject { { "type", "string" }, { "enum", values } };
    }
}
