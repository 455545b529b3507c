using System.Runtime.CompilerServices;

[assembly: InternalsVisibleTo("Raincheck.Editor.Tests")]
