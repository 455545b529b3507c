// A headless editor: the real package in one collectible load context per domain, above a fake of what lies below C#.
// It is driven by lines of JSON on stdin and tells what happens by lines of JSON on stdout.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;
using System.Text;
using System.Text.Json;
using System.Threading;
using FakeUnity;
using UnityEditor;
using UnityEngine;

static class Program
{
    static readonly string[] Package = { "Raincheck.Core.Editor", "Raincheck.Editor", "Raincheck.TestRunner.Editor", "Scenario" };
    static readonly ConcurrentQueue<JsonElement> Orders = new ConcurrentQueue<JsonElement>();
    static readonly object Out = new object();
    static AssemblyLoadContext _domain;
    static int _generation;
    static bool _quit;

    static int Main(string[] args)
    {
        NativeEditor.AssembliesPath = args[0];
        Native.ProjectPath = Path.GetFullPath(args[1]);
        NativeEditor.ContentsPath = args.Length > 3 ? args[3] : "";
        var tickMs = int.Parse(args[2]);
        Native.BeMainThread();
        Native.Noted = (what, detail) => Say(new Dictionary<string, object> { { "event", what }, { "detail", detail } });
        new Thread(ReadOrders) { IsBackground = true }.Start();
        Load();
        var clock = Stopwatch.StartNew();
        while (!_quit)
        {
            MainThread.Present.Run(Math.Max(0, tickMs - (int)clock.ElapsedMilliseconds));
            while (Orders.TryDequeue(out var order)) Obey(order);
            if (clock.ElapsedMilliseconds < tickMs && !NativeEditor.UpdateWanted) continue;
            clock.Restart();
            NativeTests.Tick();
            if (NativeEditor.Tick()) Reload(false);
        }
        NativeEditor.Quit();
        Say(new Dictionary<string, object> { { "event", "quit" } });
        return 0;
    }

    // ---- domains -------------------------------------------------------------------------------------------------------

    static void Load()
    {
        _generation++;
        MainThread.Renew();
        _domain = new AssemblyLoadContext("domain " + _generation, true);
        _domain.Resolving += (context, name) =>
        {
            foreach (var loaded in context.Assemblies)
                if (loaded.GetName().Name == name.Name) return loaded;
            return null;
        };
        foreach (var name in Package)
        {
            var path = Path.Combine(NativeEditor.AssembliesPath, name + ".dll");
            if (!File.Exists(path)) continue;
            using (var file = new MemoryStream(File.ReadAllBytes(path))) Native.Domain.Add(_domain.LoadFromStream(file));
        }
        foreach (var assembly in Native.Domain)
            foreach (var type in assembly.GetTypes())
                if (type.IsDefined(typeof(InitializeOnLoadAttribute), false)) RuntimeHelpers.RunClassConstructor(type.TypeHandle);
        Say(new Dictionary<string, object> { { "event", "loaded" }, { "generation", _generation } });
    }

    static void Reload(bool dirty)
    {
        if (!dirty) NativeEditor.BeforeReload();
        var leftBehind = (NativeEditor.LeftBehind() + " " + (NativeTests.Listeners.Count > 0 ? "TestRunnerApi" : "")).Trim();
        var gone = Unload();
        var clock = Stopwatch.StartNew();
        // What still refers to the domain keeps it; a real editor reports that as a leak.
        while (!dirty && gone.IsAlive && clock.ElapsedMilliseconds < 5000)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
        Say(new Dictionary<string, object> { { "event", "unloaded" }, { "generation", _generation }, { "collected", !gone.IsAlive }, { "left_behind", dirty ? "" : leftBehind } });
        Load();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static WeakReference Unload()
    {
        var gone = new WeakReference(_domain);
        NativeEditor.ForgetDomain();
        NativeTests.ForgetDomain();
        Native.ForgetDomain();
        _domain.Unload();
        _domain = null;
        return gone;
    }

    // ---- orders --------------------------------------------------------------------------------------------------------

    static void ReadOrders()
    {
        for (var line = Console.In.ReadLine(); line != null; line = Console.In.ReadLine())
        {
            Orders.Enqueue(JsonDocument.Parse(line).RootElement);
            MainThread.Wake();
        }
        _quit = true;
        MainThread.Wake();
    }

    static void Obey(JsonElement order)
    {
        switch (order.GetProperty("do").GetString())
        {
            case "reload": Reload(order.TryGetProperty("dirty", out var dirty) && dirty.GetBoolean()); break;
            case "quit": _quit = true; break;
            case "sync": break;
            case "block":
                Block(order.GetProperty("release").GetString());
                // Before the package gets the main thread again.
                if (order.TryGetProperty("then_reload", out _)) Reload(false);
                break;
            case "log":
                Native.Log(order.GetProperty("condition").GetString(), order.GetProperty("stack").GetString(), Enum.Parse<LogType>(order.GetProperty("type").GetString()));
                break;
            case "objects": MakeObjects(order.GetProperty("count").GetInt32()); break;
            case "camera": new GameObject("Main Camera") { tag = "MainCamera" }.transform.gameObject.AddCamera(); break;
            case "scene_path": Native.ScenePath = order.GetProperty("path").GetString(); break;
            case "tests":
                NativeTests.Names.Clear();
                foreach (var name in order.GetProperty("names").EnumerateArray()) NativeTests.Names.Add(name.GetString());
                break;
            case "hold_tests": NativeTests.HoldAt = order.GetProperty("at").GetInt32(); break;
            case "mute_tests": NativeTests.Mute = order.GetProperty("on").GetBoolean(); break;
            case "settings": ShowSettings(order); break;
            case "hold_compile": NativeEditor.HoldCompile = order.GetProperty("on").GetBoolean(); break;
            case "focus": NativeEditor.ScriptsChanged = true; break;
            case "edit_scripts":
                NativeEditor.CompileErrors.Clear();
                foreach (var error in order.GetProperty("errors").EnumerateArray()) NativeEditor.CompileErrors.Add(error.GetString());
                NativeEditor.Passes = order.TryGetProperty("passes", out var passes) ? passes.GetInt32() : 1;
                NativeEditor.ScriptsEdited = true;
                break;
            default: throw new ArgumentException(order.ToString());
        }
        Say(new Dictionary<string, object> { { "event", "obeyed" }, { "detail", order.GetProperty("do").GetString() } });
    }

    // Draws every page of settings twice, as the editor does: once for the layout, once for the click.
    static void ShowSettings(JsonElement order)
    {
        if (order.TryGetProperty("click", out var click)) Native.Clicks.Add(click.GetString());
        foreach (var assembly in Native.Domain.ToArray())
            foreach (var type in assembly.GetTypes())
                foreach (var method in type.GetMethods(BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic))
                    if (method.IsDefined(typeof(SettingsProviderAttribute)))
                    {
                        var page = (SettingsProvider)method.Invoke(null, null);
                        page.guiHandler("");
                        page.guiHandler("");
                        page.inspectorUpdateHandler();
                    }
    }

    static void AddCamera(this GameObject item) => Native.AddComponent(item, typeof(Camera));

    // Holds the main thread, as a dialog does, until the file is there.
    static void Block(string release)
    {
        Say(new Dictionary<string, object> { { "event", "blocked" } });
        using (var wait = new ManualResetEvent(false))
            while (!File.Exists(release)) wait.WaitOne(5);
    }

    static void MakeObjects(int count)
    {
        var top = new GameObject("Root") { layer = 3 };
        for (var at = 0; at < count; at++) new GameObject("Crate/" + at).transform.SetParent(top.transform, false);
    }

    static void Say(Dictionary<string, object> what)
    {
        lock (Out)
        {
            Console.Out.WriteLine(JsonSerializer.Serialize(what));
            Console.Out.Flush();
        }
    }
}
