// Stands for the compiler that comes with the editor: the same arguments, the same words, Roslyn inside.
using System;
using System.IO;
using System.Linq;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Text;

static class Csc
{
    static int Main(string[] args)
    {
        var wanted = CSharpCommandLineParser.Default.Parse(args, Directory.GetCurrentDirectory(), null);
        foreach (var fault in wanted.Errors) Console.WriteLine(fault);
        if (wanted.Errors.Any(one => one.Severity == DiagnosticSeverity.Error)) return 1;
        var trees = wanted.SourceFiles.Select(file => CSharpSyntaxTree.ParseText(SourceText.From(File.ReadAllText(file.Path)), wanted.ParseOptions, file.Path));
        var references = wanted.MetadataReferences.Select(one => MetadataReference.CreateFromFile(one.Reference));
        var compilation = CSharpCompilation.Create("snippet" + Guid.NewGuid().ToString("N"), trees, references, wanted.CompilationOptions);
        using (var file = File.Create(Path.Combine(wanted.OutputDirectory, wanted.OutputFileName)))
        {
            var result = compilation.Emit(file);
            foreach (var said in result.Diagnostics.Where(one => one.Severity >= DiagnosticSeverity.Warning)) Console.WriteLine(said);
            return result.Success ? 0 : 1;
        }
    }
}
