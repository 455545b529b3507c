using System;
using System.Collections;
using System.Collections.Generic;

namespace Raincheck
{
    /// <summary>A JSON object that keeps the order of its members.</summary>
    /// <remarks>
    /// Values are <c>null</c>, <c>bool</c>, <c>string</c>, any number type of C#, <see cref="JsonObject"/>, and any
    /// <see cref="IEnumerable"/> for arrays. What <see cref="Core.Json.Parse"/> returns holds <c>long</c>, <c>ulong</c>,
    /// <c>double</c>, <see cref="Core.JsonNumber"/> and <c>List&lt;object&gt;</c>.
    /// </remarks>
    public sealed class JsonObject : IEnumerable<KeyValuePair<string, object>>
    {
        readonly List<string> _names = new List<string>();
        readonly Dictionary<string, object> _values = new Dictionary<string, object>(StringComparer.Ordinal);

        /// <summary>How many members it has.</summary>
        public int Count => _names.Count;

        /// <summary>Reads a member; <c>null</c> when it is missing. Writing adds or replaces it.</summary>
        public object this[string name]
        {
            get => _values.TryGetValue(name, out var value) ? value : null;
            set
            {
                if (!_values.ContainsKey(name)) _names.Add(name);
                _values[name] = value;
            }
        }

        /// <summary>Adds or replaces a member; lets collection initialisers be used.</summary>
        public void Add(string name, object value) => this[name] = value;

        /// <summary>Adds a member unless the value is <c>null</c>.</summary>
        public JsonObject AddIfPresent(string name, object value)
        {
            if (value != null) this[name] = value;
            return this;
        }

        /// <summary>Takes a member away.</summary>
        public void Remove(string name)
        {
            if (_values.Remove(name)) _names.Remove(name);
        }

        /// <summary>Whether the member is there, also when it is <c>null</c>.</summary>
        public bool Has(string name) => _values.ContainsKey(name);

        /// <summary>Reads a text member; <c>null</c> when it is missing or something else.</summary>
        public string Text(string name) => this[name] as string;

        /// <summary>Reads an object member; <c>null</c> when it is missing or something else.</summary>
        public JsonObject Object(string name) => this[name] as JsonObject;

        /// <summary>Reads an array member; <c>null</c> when it is missing or something else.</summary>
        public List<object> Array(string name) => this[name] as List<object>;

        /// <summary>Reads a member that is a whole number of 64 bits; <c>null</c> when it is something else.</summary>
        public long? Integer(string name)
        {
            switch (this[name])
            {
                case long whole: return whole;
                case int small: return small;
                case ulong large when large <= long.MaxValue: return (long)large;
                case double real when real == Math.Floor(real) && Math.Abs(real) < 9e15: return (long)real;
                default: return null;
            }
        }

        /// <summary>Reads a number; <c>null</c> when the member is something else.</summary>
        public double? Number(string name) => Core.Json.AsDouble(this[name]);

        /// <summary>Reads a truth value; <c>null</c> when the member is something else.</summary>
        public bool? Flag(string name) => this[name] as bool?;

        /// <summary>Its members in the order in which they were added.</summary>
        public IEnumerator<KeyValuePair<string, object>> GetEnumerator()
        {
            foreach (var name in _names) yield return new KeyValuePair<string, object>(name, _values[name]);
        }

        IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();

        /// <summary>Writes it as JSON.</summary>
        public override string ToString() => Core.Json.Write(this);
    }
}
