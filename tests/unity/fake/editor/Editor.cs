using System;
using System.Collections.Generic;
using System.Reflection;
using FakeUnity;
using UnityEngine;

namespace UnityEditor
{
    [AttributeUsage(AttributeTargets.Class)]
    public class InitializeOnLoadAttribute : Attribute { }

    [AttributeUsage(AttributeTargets.Method)]
    public sealed class MenuItem : Attribute
    {
        public readonly string menuItem;
        public MenuItem(string itemName) { menuItem = itemName; }
    }

    public enum PlayModeStateChange { EnteredEditMode, ExitingEditMode, EnteredPlayMode, ExitingPlayMode }

    public static class EditorApplication
    {
        public delegate void CallbackFunction();
        public static CallbackFunction update;
        public static event Action<PlayModeStateChange> playModeStateChanged;
        public static event Action quitting;
        public static string applicationContentsPath => NativeEditor.ContentsPath;
        // Stays true from the end of a compile to the reload that it leads to.
        public static bool isCompiling => NativeEditor.Compiling || NativeEditor.WantsReload;
        public static bool isUpdating => false;
        public static bool isPaused { get; set; }
        public static bool isPlayingOrWillChangePlaymode => NativeEditor.Playing || NativeEditor.WantsPlay == true;

        public static bool isPlaying
        {
            get => NativeEditor.Playing;
            set => NativeEditor.WantsPlay = value;
        }

        public static void Step() => Native.Note("step", "");
        public static void QueuePlayerLoopUpdate() { Native.NeedMainThread("EditorApplication.QueuePlayerLoopUpdate"); NativeEditor.UpdateWanted = true; }

        public static bool ExecuteMenuItem(string path)
        {
            Native.Note("menu", path);
            foreach (var assembly in Native.Domain)
                foreach (var type in assembly.GetTypes())
                    foreach (var method in type.GetMethods(BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic))
                        if (method.GetCustomAttribute<MenuItem>()?.menuItem == path)
                        {
                            method.Invoke(null, null);
                            return true;
                        }
            return false;
        }

        internal static void Change(PlayModeStateChange change) => playModeStateChanged?.Invoke(change);
        internal static void Quit() => quitting?.Invoke();

        internal static bool IsListenedTo => update != null || playModeStateChanged != null || quitting != null;

        internal static void Reset()
        {
            update = null;
            playModeStateChanged = null;
            quitting = null;
        }
    }

    public static class AssemblyReloadEvents
    {
        public delegate void AssemblyReloadCallback();
        public static event AssemblyReloadCallback beforeAssemblyReload;
        internal static void Before() => beforeAssemblyReload?.Invoke();
        internal static bool IsListenedTo => beforeAssemblyReload != null;
        internal static void Reset() => beforeAssemblyReload = null;
    }

    public static class SessionState
    {
        static readonly Dictionary<string, string> Texts = new Dictionary<string, string>();

        public static string GetString(string key, string defaultValue)
        {
            Native.NeedMainThread("SessionState.GetString");
            return Texts.TryGetValue(key, out var value) ? value : defaultValue;
        }

        public static void SetString(string key, string value)
        {
            Native.NeedMainThread("SessionState.SetString");
            Texts[key] = value;
        }
    }

    public static class EditorPrefs
    {
        static readonly Dictionary<string, bool> Flags = new Dictionary<string, bool>();

        public static bool GetBool(string key, bool defaultValue)
        {
            Native.NeedMainThread("EditorPrefs.GetBool");
            return Flags.TryGetValue(key, out var value) ? value : defaultValue;
        }

        public static void SetBool(string key, bool value) => Flags[key] = value;
    }

    public static class TypeCache
    {
        // Unity answers with collections of its own, that can only be read.
        public struct MethodCollection : IEnumerable<MethodInfo>
        {
            internal List<MethodInfo> Items;
            public IEnumerator<MethodInfo> GetEnumerator() => Items.GetEnumerator();
            System.Collections.IEnumerator System.Collections.IEnumerable.GetEnumerator() => Items.GetEnumerator();
        }

        public struct TypeCollection : IEnumerable<Type>
        {
            internal List<Type> Items;
            public IEnumerator<Type> GetEnumerator() => Items.GetEnumerator();
            System.Collections.IEnumerator System.Collections.IEnumerable.GetEnumerator() => Items.GetEnumerator();
        }

        public static MethodCollection GetMethodsWithAttribute<T>() where T : Attribute
        {
            var found = new List<MethodInfo>();
            foreach (var type in Types(Native.Domain))
                foreach (var method in type.GetMethods(BindingFlags.Static | BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.DeclaredOnly))
                    if (method.IsDefined(typeof(T), false)) found.Add(method);
            return new MethodCollection { Items = found };
        }

        public static TypeCollection GetTypesDerivedFrom<T>()
        {
            var assemblies = new List<Assembly>(Native.Domain) { typeof(Component).Assembly };
            return new TypeCollection { Items = Types(assemblies).FindAll(type => type != typeof(T) && typeof(T).IsAssignableFrom(type)) };
        }

        static List<Type> Types(List<Assembly> assemblies)
        {
            var types = new List<Type>();
            foreach (var assembly in assemblies) types.AddRange(assembly.GetTypes());
            return types;
        }
    }

    public static class EditorUtility
    {
        public static bool scriptCompilationFailed => NativeEditor.CompileErrors.Count > 0 && !NativeEditor.Compiling;

#if UNITY_6000_5_OR_NEWER
        [Obsolete("InstanceIDToObject is gone, use EntityIdToObject", true)]
#elif UNITY_6000_4_OR_NEWER
        [Obsolete("InstanceIDToObject is deprecated, use EntityIdToObject")]
#endif
        public static UnityEngine.Object InstanceIDToObject(int instanceID) => Native.Find(instanceID);

#if UNITY_6000_4_OR_NEWER
        public static UnityEngine.Object EntityIdToObject(EntityId entityId) => Native.Find((long)EntityId.ToULong(entityId));
#endif

        public static void SetDirty(UnityEngine.Object target) => Native.SceneDirty = true;
        public static void RequestScriptReload() => NativeEditor.WantsReload = true;
    }

    public static class Undo
    {
        public static void RegisterCreatedObjectUndo(UnityEngine.Object objectToUndo, string name) => Native.Note("undo", name);
        public static void RegisterCompleteObjectUndo(UnityEngine.Object[] objectsToUndo, string name) => Native.Note("undo", name);
        public static Component AddComponent(GameObject gameObject, Type type) => Native.AddComponent(gameObject, type);
        public static void SetTransformParent(Transform transform, Transform newParent, string name) => transform.SetParent(newParent, true);
        public static void DestroyObjectImmediate(UnityEngine.Object objectToUndo) => Native.Destroy(objectToUndo);
    }

    public static class BuildPipeline
    {
        public static bool isBuildingPlayer => false;
    }

    public enum SettingsScope { User, Project }

    public class SettingsProvider
    {
        public SettingsProvider(string path, SettingsScope scopes, IEnumerable<string> keywords = null) { }
        public string label { get; set; }
        public IEnumerable<string> keywords { get; set; }
        public Action<string> guiHandler { get; set; }
        public Action inspectorUpdateHandler { get; set; }
    }

    [AttributeUsage(AttributeTargets.Method)]
    public class SettingsProviderAttribute : Attribute { }

    public static class SettingsService
    {
        public static void RepaintAllSettingsWindow() => Native.Note("repainted", "");
    }

    public enum MessageType { None, Info, Warning, Error }

    public static class EditorStyles
    {
        public static GUIStyle boldLabel => new GUIStyle();
    }

    public static class EditorGUILayout
    {
        public static void LabelField(string label, GUIStyle style, params GUILayoutOption[] options) { }
        public static void HelpBox(string message, MessageType type) => Native.Note("help_box", message);
        public static void Space() { }
        public static bool Toggle(string label, bool value, params GUILayoutOption[] options) => Native.Clicks.Remove(label) ? !value : value;
    }

    public class SceneView
    {
        public static SceneView lastActiveSceneView => null;
        public Camera camera => null;
    }
}

namespace UnityEditorInternal
{
    public static class InternalEditorUtility
    {
        public static bool isApplicationActive => true;
    }
}

namespace UnityEditor.PackageManager
{
    public class PackageInfo
    {
        public string version => "0.1.0";
        public static PackageInfo FindForAssembly(Assembly assembly) => new PackageInfo();
    }
}

namespace UnityEditor.Compilation
{
    public enum CompilerMessageType { Error, Warning, Info }

    public struct CompilerMessage
    {
        public string message;
        public string file;
        public int line;
        public int column;
        public CompilerMessageType type;
    }

    public enum AssembliesType { Editor, Player, PlayerWithoutTestAssemblies }

    public class Assembly
    {
        public string outputPath { get; internal set; }
        public string[] compiledAssemblyReferences { get; internal set; }
    }

    public static class CompilationPipeline
    {
        public static event Action<object> compilationStarted;
        public static event Action<object> compilationFinished;
        public static event Action<string, CompilerMessage[]> assemblyCompilationFinished;
        public static void RequestScriptCompilation() => NativeEditor.ScriptsChanged = true;

        public static Assembly[] GetAssemblies(AssembliesType assembliesType)
        {
            Native.NeedMainThread("CompilationPipeline.GetAssemblies");
            return NativeEditor.Assemblies().ConvertAll(path => new Assembly { outputPath = path, compiledAssemblyReferences = NativeEditor.References() }).ToArray();
        }

        internal static void Started() => compilationStarted?.Invoke(null);
        internal static void Compiled(string name, CompilerMessage[] messages) => assemblyCompilationFinished?.Invoke(name, messages);
        internal static void Finished() => compilationFinished?.Invoke(null);

        internal static bool IsListenedTo => compilationStarted != null || compilationFinished != null || assemblyCompilationFinished != null;

        internal static void Reset()
        {
            compilationStarted = null;
            compilationFinished = null;
            assemblyCompilationFinished = null;
        }
    }
}

namespace UnityEditor.SceneManagement
{
    public enum OpenSceneMode { Single, Additive }

    public static class EditorSceneManager
    {
        public static UnityEngine.SceneManagement.Scene OpenScene(string scenePath, OpenSceneMode mode)
        {
            Native.ScenePath = scenePath;
            return new UnityEngine.SceneManagement.Scene();
        }

        public static bool SaveScene(UnityEngine.SceneManagement.Scene scene, string dstScenePath)
        {
            // A real editor raises a file panel here, which holds the main thread until a person comes.
            if (string.IsNullOrEmpty(dstScenePath)) Native.Note("panel", "Save Scene");
            Native.Note("saved", dstScenePath);
            Native.ScenePath = dstScenePath;
            Native.SceneDirty = false;
            return true;
        }
    }
}
