// The part of NUnit that the package's own tests use.
using System;

namespace NUnit.Framework
{
    [AttributeUsage(AttributeTargets.Method)]
    public class TestAttribute : Attribute { }

    [AttributeUsage(AttributeTargets.Method)]
    public class SetUpAttribute : Attribute { }

    [AttributeUsage(AttributeTargets.Method)]
    public class TearDownAttribute : Attribute { }

    public delegate void TestDelegate();

    public class AssertionException : Exception
    {
        public AssertionException(string message) : base(message) { }
    }

    public static class Assert
    {
        public static void AreEqual(object expected, object actual)
        {
            if (!Same(expected, actual)) throw new AssertionException("expected <" + expected + ">, was <" + actual + ">");
        }

        public static void True(bool condition) { if (!condition) throw new AssertionException("expected true"); }
        public static void False(bool condition) { if (condition) throw new AssertionException("expected false"); }
        public static void Null(object value) { if (value != null) throw new AssertionException("expected null, was <" + value + ">"); }
        public static void NotNull(object value) { if (value == null) throw new AssertionException("expected something"); }

        public static T Throws<T>(TestDelegate code) where T : Exception
        {
            try { code(); }
            catch (T expected) { return expected; }
            catch (Exception other) { throw new AssertionException("expected " + typeof(T).Name + ", was " + other); }
            throw new AssertionException("expected " + typeof(T).Name + ", nothing was thrown");
        }

        // Numbers are equal over their types, as in NUnit.
        static bool Same(object one, object other)
        {
            if (one is IConvertible && other is IConvertible && !(one is string) && !(other is string) && !(one is bool) && !(one is Enum))
                return Convert.ToDecimal(one) == Convert.ToDecimal(other);
            return Equals(one, other);
        }
    }
}
