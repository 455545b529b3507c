// The part of UnityEngine that the package uses, written from the public documentation, with as much behaviour as the
// scenarios need. One source for two uses: compiled for each version of Unity it is what the package is checked against,
// compiled for 6000.0 it is what the package runs on here. `Native` plays what lies below C# and outlives a domain.
using System;
using System.Collections.Generic;
using FakeUnity;

namespace UnityEngine
{
    [Flags]
    public enum HideFlags { None = 0, HideAndDontSave = 61 }

#if UNITY_6000_4_OR_NEWER
    public struct EntityId : IEquatable<EntityId>
    {
        internal ulong Value;
        public static ulong ToULong(EntityId id) => id.Value;
        public static EntityId FromULong(ulong value) => new EntityId { Value = value };
        public bool Equals(EntityId other) => Value == other.Value;
    }
#endif

    public class Object
    {
        internal readonly long Id;
        internal bool Destroyed;

        public Object() { Id = Native.Register(this); }

        public string name { get; set; } = "";
        public HideFlags hideFlags { get; set; }

#if UNITY_6000_5_OR_NEWER
        [Obsolete("GetInstanceID is gone, use GetEntityId", true)]
#elif UNITY_6000_4_OR_NEWER
        [Obsolete("GetInstanceID is deprecated, use GetEntityId")]
#endif
        public int GetInstanceID() => (int)Id;

#if UNITY_6000_4_OR_NEWER
        public EntityId GetEntityId() => EntityId.FromULong((ulong)Id);
#endif

        public static void DestroyImmediate(Object item) => Native.Destroy(item);

        public static bool operator ==(Object one, Object other)
        {
            var oneGone = one is null || one.Destroyed;
            var otherGone = other is null || other.Destroyed;
            return oneGone || otherGone ? oneGone && otherGone : ReferenceEquals(one, other);
        }

        public static bool operator !=(Object one, Object other) => !(one == other);
        public static implicit operator bool(Object one) => one != null;
        public override bool Equals(object other) => this == other as Object;
        public override int GetHashCode() => Id.GetHashCode();
    }

    public class Component : Object
    {
        internal GameObject Owner;
        public GameObject gameObject => Owner;
        public Transform transform => Owner.transform;
        public Component GetComponent(Type type) => Owner.GetComponent(type);
        public T GetComponent<T>() => Owner.GetComponent<T>();
    }

    public class Behaviour : Component { public bool enabled { get; set; } = true; }

    public class MonoBehaviour : Behaviour { }

    public class MeshRenderer : Component { }

    public class ScriptableObject : Object
    {
        public static T CreateInstance<T>() where T : ScriptableObject => Activator.CreateInstance<T>();
    }

    public class Transform : Component
    {
        internal readonly List<Transform> Children = new List<Transform>();
        public Transform parent { get; internal set; }
        public int childCount => Children.Count;
        public Vector3 position { get; set; }
        public Vector3 eulerAngles { get; set; }
        public Vector3 localScale { get; set; } = new Vector3(1, 1, 1);
        public new string name { get => Owner.name; set => Owner.name = value; }
        public Transform GetChild(int index) => Children[index];

        public void SetParent(Transform to, bool worldPositionStays)
        {
            if (parent != null) parent.Children.Remove(this);
            else Native.Roots.Remove(Owner);
            parent = to;
            if (to != null) to.Children.Add(this);
            else Native.Roots.Add(Owner);
        }
    }

    public sealed class GameObject : Object
    {
        internal readonly List<Component> Components = new List<Component>();

        public GameObject(string name)
        {
            this.name = name;
            transform = (Transform)Add(typeof(Transform));
            Native.Roots.Add(this);
        }

        public Transform transform { get; }
        public string tag { get; set; } = "Untagged";
        public int layer { get; set; }
        public bool activeSelf { get; private set; } = true;
        public SceneManagement.Scene scene => new SceneManagement.Scene();
        public void SetActive(bool value) => activeSelf = value;
        public Component GetComponent(Type type) => Components.Find(type.IsInstanceOfType);
        public T GetComponent<T>() => (T)(object)Components.Find(one => one is T);
        public T[] GetComponents<T>() => Components.FindAll(one => one is T).ConvertAll(one => (T)(object)one).ToArray();

        internal Component Add(Type type)
        {
            var component = (Component)Activator.CreateInstance(type);
            component.Owner = this;
            component.name = name;
            Components.Add(component);
            return component;
        }
    }

    public sealed class Camera : Behaviour
    {
        public static Camera main
        {
            get
            {
                foreach (var root in Native.Roots)
                    if (root.tag == "MainCamera" && root.GetComponent<Camera>() is Camera camera) return camera;
                return null;
            }
        }

        public RenderTexture targetTexture { get; set; }
        public void Render() => Native.Note("rendered", name);
    }

    public class Texture : Object { }

    public enum TextureFormat { RGB24 = 3, RGBA32 = 4 }

    public sealed class RenderTexture : Texture
    {
        public static RenderTexture active { get; set; }
        public static RenderTexture GetTemporary(int width, int height, int depthBuffer) => new RenderTexture();
        public static void ReleaseTemporary(RenderTexture temporary) { }
    }

    public sealed class Texture2D : Texture
    {
        public Texture2D(int width, int height, TextureFormat format, bool mipChain) { }
        public void ReadPixels(Rect source, int x, int y) { }
        public void Apply() { }
    }

    public static class ImageConversion
    {
        // A picture of one pixel.
        public static byte[] EncodeToPNG(this Texture2D texture) => Convert.FromBase64String(
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==");
    }

    public struct Vector2 { public float x, y; public Vector2(float x, float y) { this.x = x; this.y = y; } }
    public struct Vector3 { public float x, y, z; public Vector3(float x, float y, float z) { this.x = x; this.y = y; this.z = z; } }
    public struct Vector4 { public float x, y, z, w; public Vector4(float x, float y, float z, float w) { this.x = x; this.y = y; this.z = z; this.w = w; } }
    public struct Quaternion { public float x, y, z, w; public Quaternion(float x, float y, float z, float w) { this.x = x; this.y = y; this.z = z; this.w = w; } }
    public struct Color { public float r, g, b, a; public Color(float r, float g, float b, float a) { this.r = r; this.g = g; this.b = b; this.a = a; } }
    public struct Rect { public Rect(float x, float y, float width, float height) { } }

    public enum LogType { Error, Assert, Warning, Log, Exception }

    public static class Debug
    {
        public static void Log(object message) => Native.Log(Convert.ToString(message), "", LogType.Log);
        public static void LogWarning(object message) => Native.Log(Convert.ToString(message), "", LogType.Warning);
        public static void LogError(object message) => Native.Log(Convert.ToString(message), "", LogType.Error);
    }

    public static class Application
    {
        public delegate void LogCallback(string condition, string stackTrace, LogType type);
        public static event LogCallback logMessageReceivedThreaded;
        public static event LogCallback logMessageReceived;
        public static string dataPath => Native.ProjectPath + "/Assets";
        public static string persistentDataPath => Native.ProjectPath + "/Persistent";
        public static string unityVersion => "6000.0.30f1";
        public static bool isBatchMode => Environment.GetEnvironmentVariable("FAKE_BATCH_MODE") == "1";

        internal static void Raise(string condition, string stack, LogType type)
        {
            logMessageReceivedThreaded?.Invoke(condition, stack, type);
            if (Native.IsMainThread) logMessageReceived?.Invoke(condition, stack, type);
        }

        internal static bool IsListenedTo => logMessageReceivedThreaded != null || logMessageReceived != null;

        internal static void Reset()
        {
            logMessageReceivedThreaded = null;
            logMessageReceived = null;
        }
    }

    public sealed class GUILayoutOption { }

    public static class GUILayout
    {
        public static bool Button(string text, params GUILayoutOption[] options) => Native.Clicks.Remove(text);
    }

    public class GUIStyle { }
}

namespace UnityEngine.SceneManagement
{
    public struct Scene
    {
        public string name => Native.SceneName;
        public string path => Native.ScenePath;
        public bool isLoaded => true;
        public bool isDirty => Native.SceneDirty;
        public int rootCount => Native.Roots.Count;
        public GameObject[] GetRootGameObjects() => Native.Roots.ToArray();
    }

    public static class SceneManager
    {
        public static int sceneCount => 1;
        public static Scene GetSceneAt(int index) => new Scene();
        public static Scene GetActiveScene() => new Scene();
    }
}
