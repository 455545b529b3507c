using System;

namespace Raincheck.Core
{
    /// <summary>How long to wait between two attempts to connect: 200 ms, times 1.8 up to 5 s, each ±20 %.</summary>
    public sealed class Backoff
    {
        const double First = 200;
        const double Factor = 1.8;
        const double Most = 5000;
        const double Jitter = 0.2;

        readonly Random _random;
        double _next = First;

        /// <summary>Begins with the shortest wait.</summary>
        public Backoff(int seed) { _random = new Random(seed); }

        /// <summary>The next wait in milliseconds.</summary>
        public int Next()
        {
            var wait = _next * (1 - Jitter + 2 * Jitter * _random.NextDouble());
            _next = Math.Min(_next * Factor, Most);
            return (int)wait;
        }

        /// <summary>Begins again with the shortest wait.</summary>
        public void Reset() => _next = First;
    }
}
