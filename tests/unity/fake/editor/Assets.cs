using System;
using System.Collections.Generic;
using FakeUnity;
using UnityEngine;

namespace UnityEditor
{
    [Flags]
    public enum ImportAssetOptions { Default = 0, ForceUpdate = 1 }

    public enum InteractionMode { AutomatedAction, UserAction }

    /// <summary>A handful of assets in memory, folders among them.</summary>
    public static class AssetDatabase
    {
        public static bool IsAssetImportWorkerProcess() => Environment.GetEnvironmentVariable("FAKE_IMPORT_WORKER") == "1";

        public static void Refresh()
        {
            Native.NeedMainThread("AssetDatabase.Refresh");
            if (NativeEditor.ScriptsEdited) NativeEditor.ScriptsChanged = true;
        }

        public static void ImportAsset(string path, ImportAssetOptions options) => Native.Note("imported", path);
        public static bool IsValidFolder(string path) => NativeEditor.Folders.Contains(path);
        public static UnityEngine.Object LoadMainAssetAtPath(string assetPath) => NativeEditor.Assets.TryGetValue(assetPath, out var asset) ? asset : null;
        public static Type GetMainAssetTypeAtPath(string assetPath) => LoadMainAssetAtPath(assetPath)?.GetType();
        public static string GUIDToAssetPath(string guid) => guid.Substring(5);
        public static string AssetPathToGUID(string path) => NativeEditor.Assets.ContainsKey(path) || NativeEditor.Folders.Contains(path) ? "guid-" + path : "";
        public static string GetAssetPath(UnityEngine.Object asset) => "";
        public static string[] GetDependencies(string pathName, bool recursive) => new[] { pathName };
        public static string[] FindAssets(string filter) => FindAssets(filter, new[] { "Assets" });

        public static string[] FindAssets(string filter, string[] searchInFolders)
        {
            var found = new List<string>();
            foreach (var path in NativeEditor.Assets.Keys)
                if (Array.Exists(searchInFolders, folder => path.StartsWith(folder, StringComparison.Ordinal)) && (filter.StartsWith("t:", StringComparison.Ordinal) || path.Contains(filter)))
                    found.Add("guid-" + path);
            return found.ToArray();
        }

        public static string CreateFolder(string parentFolder, string newFolderName)
        {
            NativeEditor.Folders.Add(parentFolder + "/" + newFolderName);
            return "guid-" + parentFolder + "/" + newFolderName;
        }

        public static string MoveAsset(string oldPath, string newPath)
        {
            if (NativeEditor.Assets.ContainsKey(newPath)) return "Trying to move " + oldPath + ": destination exists";
            NativeEditor.Assets[newPath] = NativeEditor.Assets[oldPath];
            NativeEditor.Assets.Remove(oldPath);
            return "";
        }

        public static bool CopyAsset(string path, string newPath)
        {
            NativeEditor.Assets[newPath] = new Texture { name = newPath };
            return true;
        }

        public static bool MoveAssetToTrash(string path) => NativeEditor.Assets.Remove(path);
    }

    public static class PrefabUtility
    {
        public static GameObject GetOutermostPrefabInstanceRoot(UnityEngine.Object componentOrGameObject) => null;
        public static void ApplyPrefabInstance(GameObject instanceRoot, InteractionMode action) { }
        public static void RevertPrefabInstance(GameObject instanceRoot, InteractionMode action) { }

        public static GameObject SaveAsPrefabAssetAndConnect(GameObject instanceRoot, string assetPath, InteractionMode action, out bool success)
        {
            var prefab = new GameObject(instanceRoot.name);
            Native.Roots.Remove(prefab);
            NativeEditor.Assets[assetPath] = prefab;
            success = true;
            return prefab;
        }

        public static UnityEngine.Object InstantiatePrefab(UnityEngine.Object assetComponentOrGameObject) => new GameObject(assetComponentOrGameObject.name);
    }

    public enum SerializedPropertyType
    {
        Generic = -1, Integer, Boolean, Float, String, Color, ObjectReference, LayerMask, Enum, Vector2, Vector3, Vector4, Rect, ArraySize,
        Character, AnimationCurve, Bounds, Gradient, Quaternion,
    }

    /// <summary>The serialised fields of an object are here its own public fields of simple types.</summary>
    public sealed class SerializedObject : IDisposable
    {
        internal readonly UnityEngine.Object Target;
        public SerializedObject(UnityEngine.Object target) { Target = target; }
        public SerializedProperty GetIterator() => new SerializedProperty(Target, null);
        public bool ApplyModifiedProperties() => true;
        public void Dispose() { }

        public SerializedProperty FindProperty(string propertyPath)
        {
            var field = Target.GetType().GetField(propertyPath);
            return field == null ? null : new SerializedProperty(Target, field);
        }
    }

    public sealed class SerializedProperty
    {
        readonly UnityEngine.Object _target;
        System.Reflection.FieldInfo _field;
        int _at = -1;

        internal SerializedProperty(UnityEngine.Object target, System.Reflection.FieldInfo field)
        {
            _target = target;
            _field = field;
        }

        public string name => _field.Name;
        public SerializedPropertyType propertyType =>
            _field.FieldType == typeof(int) || _field.FieldType == typeof(long) ? SerializedPropertyType.Integer
            : _field.FieldType == typeof(float) ? SerializedPropertyType.Float
            : _field.FieldType == typeof(bool) ? SerializedPropertyType.Boolean
            : _field.FieldType == typeof(string) ? SerializedPropertyType.String : SerializedPropertyType.Generic;

        public int intValue { get => Convert.ToInt32(_field.GetValue(_target)); set => _field.SetValue(_target, value); }
        public long longValue { get => Convert.ToInt64(_field.GetValue(_target)); set => _field.SetValue(_target, Convert.ChangeType(value, _field.FieldType)); }
        public bool boolValue { get => (bool)_field.GetValue(_target); set => _field.SetValue(_target, value); }
        public double doubleValue { get => Convert.ToDouble(_field.GetValue(_target)); set => _field.SetValue(_target, Convert.ChangeType(value, _field.FieldType)); }
        public string stringValue { get => (string)_field.GetValue(_target); set => _field.SetValue(_target, value); }
        public string[] enumNames => new string[0];
        public int enumValueIndex { get; set; }
        public Vector2 vector2Value { get; set; }
        public Vector3 vector3Value { get; set; }
        public Vector4 vector4Value { get; set; }
        public Quaternion quaternionValue { get; set; }
        public Color colorValue { get; set; }
        public UnityEngine.Object objectReferenceValue { get; set; }
        public bool isArray => false;
        public int arraySize => 0;
        public SerializedProperty GetArrayElementAtIndex(int index) => null;
        public SerializedProperty Copy() => this;
        public SerializedProperty GetEndProperty() => null;
        public static bool EqualContents(SerializedProperty x, SerializedProperty y) => ReferenceEquals(x, y);

#if UNITY_6000_5_OR_NEWER
        [Obsolete("objectReferenceInstanceIDValue is gone, use objectReferenceEntityIdValue", true)]
#endif
        public int objectReferenceInstanceIDValue => 0;

        public bool NextVisible(bool enterChildren)
        {
            var fields = _target.GetType().GetFields();
            if (++_at >= fields.Length) return false;
            _field = fields[_at];
            return true;
        }
    }
}
