using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Reflection;
using System.Threading.Tasks;

namespace Raincheck.Core
{
    /// <summary>A command that is a static method with a <see cref="RaincheckToolAttribute"/>.</summary>
    public sealed class MethodTool : Tool
    {
        readonly MethodInfo _method;
        readonly ParameterInfo[] _parameters;
        readonly ToolInfo _info;

        MethodTool(MethodInfo method, ToolInfo info)
        {
            _method = method;
            _parameters = method.GetParameters();
            _info = info;
        }

        /// <inheritdoc/>
        public override ToolInfo Info => _info;

        /// <summary>Makes a command of a method; <c>null</c> with the reason when the method cannot be one.</summary>
        public static MethodTool From(MethodInfo method, out string fault)
        {
            fault = null;
            var mark = method.GetCustomAttribute<RaincheckToolAttribute>();
            if (mark == null) fault = "it has no [RaincheckTool]";
            else if (!method.IsStatic) fault = "it is not static";
            else if (method.ContainsGenericParameters) fault = "it is generic";
            else if (!IsName(mark.Name)) fault = "`" + mark.Name + "` is not a name: letters, digits and _, at most 64";
            foreach (var parameter in method.GetParameters())
            {
                if (fault == null && TypeName(parameter.ParameterType) == null)
                    fault = "its parameter `" + parameter.Name + "` has a type that JSON has no form for";
            }
            if (fault != null) return null;
            return new MethodTool(method, new ToolInfo
            {
                Name = mark.Name,
                Description = mark.Description ?? "",
                Mode = mark.Mode,
                SupportsCancel = mark.SupportsCancel,
                ReadOnly = mark.ReadOnly,
                Idempotent = mark.Idempotent,
                ReloadSafe = mark.ReloadSafe,
                DefaultTimeoutMs = mark.TimeoutSeconds * 1000,
                MaxTimeoutMs = mark.TimeoutSeconds * 1000,
                Schema = SchemaOf(method.GetParameters()),
            });
        }

        /// <inheritdoc/>
        public override IEnumerator Run(ToolContext context)
        {
            object answer;
            try { answer = _method.Invoke(null, Arguments(context)); }
            catch (TargetInvocationException fault) when (fault.InnerException != null)
            {
                System.Runtime.ExceptionServices.ExceptionDispatchInfo.Capture(fault.InnerException).Throw();
                throw;
            }
            if (answer is IEnumerator steps) return steps;
            if (answer is Task task) return Awaiting(context, task);
            if (_method.ReturnType != typeof(void)) context.Result = answer;
            return null;
        }

        static IEnumerator Awaiting(ToolContext context, Task task)
        {
            yield return task;
            var result = task.GetType().GetProperty("Result");
            // The task of an `async Task` method has a result, too, which nobody can name.
            if (result != null && result.PropertyType.Name != "VoidTaskResult") context.Result = result.GetValue(task);
        }

        object[] Arguments(ToolContext context)
        {
            var values = new object[_parameters.Length];
            var known = new HashSet<string>(StringComparer.Ordinal);
            var takesAll = false;
            for (var at = 0; at < values.Length; at++)
            {
                var parameter = _parameters[at];
                if (parameter.ParameterType == typeof(ToolContext)) values[at] = context;
                else if (parameter.ParameterType == typeof(JsonObject) && !context.Params.Has(parameter.Name))
                {
                    values[at] = context.Params;
                    takesAll = true;
                }
                else
                {
                    known.Add(parameter.Name);
                    values[at] = Argument(parameter, context.Params);
                }
            }
            if (takesAll) return values;
            foreach (var given in context.Params)
                if (!known.Contains(given.Key)) throw new ToolException("invalid_params", "`" + _info.Name + "` has no parameter `" + Words.Cut(given.Key, 64) + "`");
            return values;
        }

        object Argument(ParameterInfo parameter, JsonObject given)
        {
            if (!given.Has(parameter.Name))
            {
                if (parameter.HasDefaultValue) return parameter.DefaultValue;
                throw new ToolException("invalid_params", "`" + _info.Name + "` needs the parameter `" + parameter.Name + "`");
            }
            var value = given[parameter.Name];
            var type = Nullable.GetUnderlyingType(parameter.ParameterType) ?? parameter.ParameterType;
            try
            {
                if (value == null && (!type.IsValueType || type != parameter.ParameterType)) return null;
                if (type == typeof(object) || (value != null && type.IsInstanceOfType(value))) return value;
                if (type.IsEnum && value is string name) return Enum.Parse(type, name, true);
                var cut = value is double real && real != Math.Floor(real) && type != typeof(double) && type != typeof(float);
                if (value is IConvertible && !(value is string) && !(value is bool) && IsNumber(type) && !cut)
                    return Convert.ChangeType(value, type, CultureInfo.InvariantCulture);
                if (type == typeof(string[]) && value is List<object> items) return items.ConvertAll(item => (string)item).ToArray();
            }
            catch (Exception fault) when (fault is OverflowException || fault is ArgumentException || fault is FormatException || fault is InvalidCastException)
            {
                // Said below.
            }
            throw new ToolException("invalid_params", "`" + parameter.Name + "` has to be " + Article(TypeName(parameter.ParameterType)));
        }

        static string Article(string type) => (type[0] == 'a' || type[0] == 'i' || type[0] == 'o' ? "an " : "a ") + type;

        static JsonObject SchemaOf(ParameterInfo[] parameters)
        {
            var properties = new JsonObject();
            var required = new List<object>();
            var open = false;
            foreach (var parameter in parameters)
            {
                if (parameter.ParameterType == typeof(ToolContext)) continue;
                if (parameter.ParameterType == typeof(JsonObject)) { open = true; continue; }
                var type = TypeName(parameter.ParameterType);
                var property = type == "any" ? new JsonObject() : new JsonObject { { "type", type } };
                var itself = Nullable.GetUnderlyingType(parameter.ParameterType) ?? parameter.ParameterType;
                if (itself.IsEnum) property["enum"] = Enum.GetNames(itself);
                if (type == "array") property["items"] = new JsonObject { { "type", "string" } };
                properties[parameter.Name] = property;
                if (!parameter.HasDefaultValue) required.Add(parameter.Name);
            }
            var schema = new JsonObject { { "type", "object" }, { "properties", properties } };
            if (required.Count > 0) schema["required"] = required;
            if (!open) schema["additionalProperties"] = false;
            return schema;
        }

        static string TypeName(Type type)
        {
            type = Nullable.GetUnderlyingType(type) ?? type;
            if (type.IsByRef) return null;
            if (type == typeof(string) || type.IsEnum) return "string";
            if (type == typeof(bool)) return "boolean";
            if (type == typeof(int) || type == typeof(long) || type == typeof(ulong)) return "integer";
            if (IsNumber(type)) return "number";
            if (type == typeof(JsonObject) || type == typeof(ToolContext)) return "object";
            if (type == typeof(List<object>) || type == typeof(string[])) return "array";
            return type == typeof(object) ? "any" : null;
        }

        static bool IsNumber(Type type) =>
            type == typeof(int) || type == typeof(long) || type == typeof(ulong) || type == typeof(double) || type == typeof(float);

        static bool IsName(string name)
        {
            if (string.IsNullOrEmpty(name) || name.Length > 64) return false;
            foreach (var one in name)
                if (!(one == '_' || one == '-' || (one < 128 && char.IsLetterOrDigit(one)))) return false;
            return true;
        }
    }
}
