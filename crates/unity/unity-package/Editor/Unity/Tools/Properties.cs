using System;
using System.Collections.Generic;
using System.Globalization;
using Raincheck.Core;
using UnityEditor;
using UnityEngine;

namespace Raincheck.InEditor
{
    /// <summary>Reads and writes the serialised fields of a component as JSON, with undo.</summary>
    static class Properties
    {
        const int Most = 200;
        const int MostItems = 50;

        /// <summary>The visible fields of an object.</summary>
        public static JsonObject Read(UnityEngine.Object item)
        {
            var fields = new JsonObject();
            using (var serialized = new SerializedObject(item))
            {
                var field = serialized.GetIterator();
                for (var enter = true; field.NextVisible(enter) && fields.Count < Most; enter = false)
                    if (field.name != "m_Script") fields[field.name] = Value(field, 0);
            }
            return fields;
        }

        /// <summary>Writes fields by name; a dotted name reaches into a field. All or none is written.</summary>
        public static void Write(UnityEngine.Object item, JsonObject values)
        {
            using (var serialized = new SerializedObject(item))
            {
                foreach (var value in values)
                {
                    var field = serialized.FindProperty(value.Key) ?? serialized.FindProperty("m_" + char.ToUpperInvariant(value.Key[0]) + value.Key.Substring(1));
                    if (field == null) throw new ToolException("not_found", "`" + item.GetType().Name + "` has no field `" + Words.Cut(value.Key, 100) + "`");
                    Set(field, value.Key, value.Value);
                }
                serialized.ApplyModifiedProperties();
            }
        }

        static object Value(SerializedProperty field, int depth)
        {
            switch (field.propertyType)
            {
                case SerializedPropertyType.Integer: return field.longValue;
                case SerializedPropertyType.LayerMask:
                case SerializedPropertyType.ArraySize: return field.intValue;
                case SerializedPropertyType.Boolean: return field.boolValue;
                case SerializedPropertyType.Float: return field.doubleValue;
                case SerializedPropertyType.String: return Words.Cut(field.stringValue, 8000);
                case SerializedPropertyType.Enum:
                    var names = field.enumNames;
                    return field.enumValueIndex >= 0 && field.enumValueIndex < names.Length ? (object)names[field.enumValueIndex] : field.intValue;
                case SerializedPropertyType.Vector2: return new object[] { field.vector2Value.x, field.vector2Value.y };
                case SerializedPropertyType.Vector3: return new object[] { field.vector3Value.x, field.vector3Value.y, field.vector3Value.z };
                case SerializedPropertyType.Vector4: return new object[] { field.vector4Value.x, field.vector4Value.y, field.vector4Value.z, field.vector4Value.w };
                case SerializedPropertyType.Quaternion: return new object[] { field.quaternionValue.x, field.quaternionValue.y, field.quaternionValue.z, field.quaternionValue.w };
                case SerializedPropertyType.Color: return new object[] { field.colorValue.r, field.colorValue.g, field.colorValue.b, field.colorValue.a };
                case SerializedPropertyType.ObjectReference: return Reference(field.objectReferenceValue);
                default: return depth >= 4 ? null : Inside(field, depth);
            }
        }

        static object Inside(SerializedProperty field, int depth)
        {
            if (field.isArray)
            {
                var items = new List<object>();
                for (var at = 0; at < Math.Min(field.arraySize, MostItems); at++) items.Add(Value(field.GetArrayElementAtIndex(at), depth + 1));
                return field.arraySize <= MostItems ? (object)items : new JsonObject { { "size", field.arraySize }, { "first", items } };
            }
            var members = new JsonObject();
            var child = field.Copy();
            var end = field.GetEndProperty();
            for (var enter = true; child.NextVisible(enter) && !SerializedProperty.EqualContents(child, end) && members.Count < Most; enter = false)
                members[child.name] = Value(child, depth + 1);
            return members;
        }

        static object Reference(UnityEngine.Object to)
        {
            if (to == null) return null;
            var shown = new JsonObject { { "id", Compat.IdOf(to) }, { "name", to.name }, { "type", to.GetType().Name } };
            var path = AssetDatabase.GetAssetPath(to);
            if (!string.IsNullOrEmpty(path)) shown["asset"] = path;
            return shown;
        }

        static void Set(SerializedProperty field, string name, object value)
        {
            switch (field.propertyType)
            {
                case SerializedPropertyType.Integer: field.longValue = value is long whole ? whole : throw Wrong(name, "a whole number"); break;
                case SerializedPropertyType.LayerMask: field.intValue = value is long mask ? unchecked((int)mask) : throw Wrong(name, "a whole number"); break;
                case SerializedPropertyType.Boolean: field.boolValue = value as bool? ?? throw Wrong(name, "true or false"); break;
                case SerializedPropertyType.Float: field.doubleValue = Json.AsDouble(value) ?? throw Wrong(name, "a number"); break;
                case SerializedPropertyType.String: field.stringValue = value as string ?? throw Wrong(name, "a string"); break;
                case SerializedPropertyType.Enum: SetEnum(field, name, value); break;
                case SerializedPropertyType.Vector2: var two = Numbers(name, value, 2); field.vector2Value = new Vector2(two[0], two[1]); break;
                case SerializedPropertyType.Vector3: var three = Numbers(name, value, 3); field.vector3Value = new Vector3(three[0], three[1], three[2]); break;
                case SerializedPropertyType.Vector4: var four = Numbers(name, value, 4); field.vector4Value = new Vector4(four[0], four[1], four[2], four[3]); break;
                case SerializedPropertyType.Quaternion: var turn = Numbers(name, value, 4); field.quaternionValue = new Quaternion(turn[0], turn[1], turn[2], turn[3]); break;
                case SerializedPropertyType.Color: var paint = Numbers(name, value, 4); field.colorValue = new Color(paint[0], paint[1], paint[2], paint[3]); break;
                case SerializedPropertyType.ObjectReference: field.objectReferenceValue = Referred(name, value); break;
                default: throw new ToolException("not_supported", "`" + name + "` is of a kind that cannot be written as one value; write its parts, as in `" + name + ".x`");
            }
        }

        static void SetEnum(SerializedProperty field, string name, object value)
        {
            var names = field.enumNames;
            var at = value is string text ? Array.IndexOf(names, text) : value is long number ? (int)number : -1;
            if (at < 0 || at >= names.Length) throw Wrong(name, "one of " + string.Join(", ", names));
            field.enumValueIndex = at;
        }

        static UnityEngine.Object Referred(string name, object value)
        {
            if (value == null) return null;
            if (value is JsonObject shown) value = shown["asset"] ?? shown["id"];
            if (value is long number) value = number.ToString(CultureInfo.InvariantCulture);
            if (!(value is string text)) throw Wrong(name, "an id, the path of an asset, or null");
            var found = text.StartsWith("Assets/", StringComparison.Ordinal) ? AssetDatabase.LoadMainAssetAtPath(text) : Compat.Find(text);
            return found != null ? found : throw new ToolException("not_found", "`" + name + "` refers to `" + Words.Cut(text, 200) + "`, which is not there");
        }

        static float[] Numbers(string name, object value, int count)
        {
            if (!(value is List<object> items) || items.Count != count) throw Wrong(name, "a list of " + count + " numbers");
            var numbers = new float[count];
            for (var at = 0; at < count; at++) numbers[at] = (float)(Json.AsDouble(items[at]) ?? throw Wrong(name, "a list of " + count + " numbers"));
            return numbers;
        }

        static ToolException Wrong(string name, string form) => Arguments.Invalid("`" + name + "` has to be " + form);
    }
}
