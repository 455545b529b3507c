// The tools of a project that uses the package: what the scenarios call.
using System;
using System.Collections;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using FakeUnity;
using Raincheck;
using UnityEngine;

public class Health : MonoBehaviour
{
    public int points = 3;
    public string owner = "nobody";
}

static class ScenarioTools
{
    [RaincheckTool("kit_echo", "Answers with its parameters.", ReadOnly = true)]
    static JsonObject Echo(JsonObject given) => given;

    [RaincheckTool("kit_add")]
    static long Add(long a, int b = 1)
    {
        Native.Note("effect", "kit_add");
        return a + b;
    }

    [RaincheckTool("kit_fail")]
    static void Fail(string how)
    {
        if (how == "tool") throw new ToolException("kit_code", "as asked");
        throw new InvalidOperationException("broken\u0001 inside");
    }

    [RaincheckTool("kit_effect", "Leaves a trace.")]
    static string Effect(string mark)
    {
        Native.Note("effect", mark);
        return mark;
    }

    // Goes on until it is let go, reporting at every update.
    [RaincheckTool("kit_hold", Mode = ToolMode.Job, SupportsCancel = true)]
    static IEnumerator Hold(ToolContext context, string mark, string release)
    {
        Native.Note("effect", mark);
        try
        {
            for (var step = 1; !System.IO.File.Exists(release); step++)
            {
                context.Report(step, 0, mark, new JsonObject { { "step", step } });
                yield return Wait.NextUpdate;
            }
            context.Result = new JsonObject { { "mark", mark } };
        }
        finally { Native.Note("cleanup", mark); }
    }

    [RaincheckTool("kit_stubborn", Mode = ToolMode.Job)]
    static IEnumerator Stubborn(ToolContext context, string mark, string release)
    {
        Native.Note("effect", mark);
        while (!System.IO.File.Exists(release)) yield return Wait.NextUpdate;
        context.Result = "went on to the end";
    }

    // Goes on over domain reloads: counts how often it was begun and ends when it is let go.
    [RaincheckTool("kit_survivor", Mode = ToolMode.Job, ReloadSafe = true, SupportsCancel = true)]
    static IEnumerator Survivor(ToolContext context, string mark, string release)
    {
        var lives = (context.Memory?.Integer("lives") ?? 0) + 1;
        context.Remember(new JsonObject { { "lives", lives } });
        if (lives == 1) Native.Note("effect", mark);
        while (!System.IO.File.Exists(release))
        {
            context.Report(lives, 0, "life " + lives, new JsonObject { { "lives", lives } });
            yield return Wait.NextUpdate;
        }
        context.Result = new JsonObject { { "lives", lives } };
    }

    [RaincheckTool("kit_large", ReadOnly = true)]
    static string Large(int bytes, string of = "é") => new string(of[0], bytes / System.Text.Encoding.UTF8.GetByteCount(of));

    [RaincheckTool("kit_steps", Mode = ToolMode.Job)]
    static IEnumerator Steps(ToolContext context, int count)
    {
        for (var step = 0; step < count; step++) yield return null;
        context.Result = count;
    }

    [RaincheckTool("kit_task")]
    static async Task<JsonObject> Later(int value)
    {
        await Task.Yield();
        return new JsonObject { { "value", value }, { "main_thread", Native.IsMainThread } };
    }

    [RaincheckTool("kit_awaits_cancel", Mode = ToolMode.Job, SupportsCancel = true)]
    static async Task Awaits(ToolContext context)
    {
        Native.Note("effect", "kit_awaits_cancel");
        await Task.Delay(Timeout.Infinite, context.Cancellation);
    }

    [RaincheckTool("kit_odd", ReadOnly = true)]
    static JsonObject Odd() => new JsonObject
    {
        { "control", "tab\tnewline\nsoh\u0001esc\u001b[2Jdel\u007f nul\u0000 ls\u2028" },
        { "half", "\ud83d" },
        { "emoji", "🎮" },
        { "largest", ulong.MaxValue },
        { "smallest", long.MinValue },
        { "odd", 9007199254740993L },
        { "nan", double.NaN },
        { "real", 1.0 },
        { "list", new List<object> { 1, "2", null, true } },
    };
}
