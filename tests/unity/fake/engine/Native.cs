using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Reflection;
using System.Threading;
using UnityEngine;

namespace FakeUnity
{
    /// <summary>What lies below C# in a real editor: it lives as long as the process, over every domain.</summary>
    public static class Native
    {
        static readonly Dictionary<long, UnityEngine.Object> Alive = new Dictionary<long, UnityEngine.Object>();
        static long _nextId = 1000;
        static int _mainThread;

        public static string ProjectPath = "";
        public static readonly List<GameObject> Roots = new List<GameObject>();
        public static string SceneName = "Dock";
        public static string ScenePath = "Assets/Scenes/Dock.unity";
        public static bool SceneDirty;

        /// <summary>What a person clicks on next, by its label.</summary>
        public static readonly List<string> Clicks = new List<string>();

        /// <summary>The assemblies of the present domain.</summary>
        public static readonly List<Assembly> Domain = new List<Assembly>();

        /// <summary>Hears what the scenarios look for.</summary>
        public static Action<string, string> Noted;

        public static bool IsMainThread => Thread.CurrentThread.ManagedThreadId == _mainThread;

        public static void BeMainThread() => _mainThread = Thread.CurrentThread.ManagedThreadId;

        public static void Note(string what, string detail) => Noted?.Invoke(what, detail);

        /// <summary>Most of Unity's API may be used on the main thread only.</summary>
        public static void NeedMainThread(string what)
        {
            if (!IsMainThread) throw new InvalidOperationException(what + " can only be called from the main thread");
        }

        public static long Register(UnityEngine.Object item)
        {
            lock (Alive)
            {
                Alive[_nextId] = item;
                return _nextId++;
            }
        }

        public static UnityEngine.Object Find(long id)
        {
            NeedMainThread("EditorUtility.InstanceIDToObject");
            lock (Alive) return Alive.TryGetValue(id, out var item) ? item : null;
        }

        public static void Destroy(UnityEngine.Object item)
        {
            NeedMainThread("Object.DestroyImmediate");
            if (item == null) return;
            item.Destroyed = true;
            lock (Alive) Alive.Remove(item.Id);
            if (!(item is GameObject owner)) return;
            Roots.Remove(owner);
            owner.transform.parent?.Children.Remove(owner.transform);
            foreach (var child in owner.transform.Children.ToArray()) Destroy(child.gameObject);
            foreach (var component in owner.Components.ToArray()) Destroy(component);
        }

        /// <summary>Whether a domain still listens to the log.</summary>
        public static bool IsListenedTo => Application.IsListenedTo;

        /// <summary>Forgets what a domain made of C# alone, which no domain after it could use.</summary>
        public static void ForgetDomain()
        {
            Application.Reset();
            lock (Alive)
            {
                foreach (var id in new List<long>(Alive.Keys))
                    if (Alive[id] is ScriptableObject || Domain.Contains(Alive[id].GetType().Assembly)) Alive.Remove(id);
            }
            Domain.Clear();
        }

        public static void Log(string condition, string stack, LogType type)
        {
            Note("log", type + ": " + condition);
            Application.Raise(condition, stack, type);
        }

        public static Component AddComponent(GameObject item, Type type) => item.Add(type);
    }

    /// <summary>What a real editor does with posted calls: the main thread runs them in its loop, not at once.</summary>
    public sealed class MainThread : SynchronizationContext
    {
        static readonly AutoResetEvent Woken = new AutoResetEvent(false);
        readonly ConcurrentQueue<Action> _posted = new ConcurrentQueue<Action>();

        /// <summary>The one of the present domain. What is posted to that of an earlier one is never run.</summary>
        public static MainThread Present { get; private set; }

        public static void Renew()
        {
            Present = new MainThread();
            SetSynchronizationContext(Present);
        }

        public static void Wake() => Woken.Set();

        public override void Post(SendOrPostCallback call, object state)
        {
            if (this != Present) return;
            _posted.Enqueue(() => call(state));
            Woken.Set();
        }

        /// <summary>Runs what was posted up to now; waits at most so long for something.</summary>
        public void Run(int waitMs)
        {
            if (_posted.IsEmpty) Woken.WaitOne(waitMs);
            for (var left = _posted.Count; left > 0 && _posted.TryDequeue(out var call); left--) call();
        }
    }
}
