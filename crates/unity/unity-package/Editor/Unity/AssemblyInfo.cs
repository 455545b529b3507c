using System.Runtime.CompilerServices;

[assembly: InternalsVisibleTo("Raincheck.TestRunner.Editor")]
