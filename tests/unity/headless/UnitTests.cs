// Runs the package's own tests, as Unity's Test Runner does, and says how each went as one line of JSON.
using System;
using System.Linq;
using System.Reflection;
using System.Text.Json;
using NUnit.Framework;

static class UnitTests
{
    static int Main(string[] args)
    {
        foreach (var type in Assembly.LoadFrom(args[0]).GetTypes().OrderBy(type => type.Name))
        {
            foreach (var test in type.GetMethods().Where(method => method.IsDefined(typeof(TestAttribute))))
                Console.WriteLine(JsonSerializer.Serialize(new { name = type.Name + "." + test.Name, fault = Run(type, test) }));
        }
        return 0;
    }

    static string Run(Type type, MethodInfo test)
    {
        var fixture = Activator.CreateInstance(type);
        try
        {
            All<SetUpAttribute>(type, fixture);
            try { test.Invoke(fixture, null); }
            finally { All<TearDownAttribute>(type, fixture); }
            return null;
        }
        catch (TargetInvocationException fault)
        {
            return fault.InnerException.ToString();
        }
    }

    static void All<T>(Type type, object fixture) where T : Attribute
    {
        foreach (var method in type.GetMethods().Where(method => method.IsDefined(typeof(T)))) method.Invoke(fixture, null);
    }
}
