using System;
using System.Globalization;
using System.IO;
using System.Net;
using System.Security.Cryptography;
using System.Text;

namespace Raincheck.Core
{
    /// <summary>Where the server listens, and the secret that both ends prove without sending it.</summary>
    public sealed class Endpoint
    {
        /// <summary>The port on this machine.</summary>
        public readonly int Port;

        /// <summary>The address to connect to.</summary>
        public readonly Uri Address;

        /// <summary>The shared secret.</summary>
        public readonly byte[] Secret;

        Endpoint(int port, Uri address, byte[] secret)
        {
            Port = port;
            Address = address;
            Secret = secret;
        }

        /// <summary>Reads the text of an <c>endpoint.json</c>; <c>null</c> when it is not one of an editor's server.</summary>
        public static Endpoint Parse(string text)
        {
            JsonObject file;
            try { file = Json.Parse(text) as JsonObject; }
            catch (JsonException) { return null; }
            var port = file?.Integer("port") ?? 0;
            var secret = Proof.Bytes(file?.Text("secret"));
            if (port < 1 || port > 65535 || secret == null || secret.Length < 16) return null;
            var kind = file.Text("kind");
            if (kind != null && kind != "unity") return null;
            var host = Host(file.Text("url"), (int)port);
            return host == null ? null : new Endpoint((int)port, new Uri("ws://" + host + ":" + port.ToString(CultureInfo.InvariantCulture) + "/unity"), secret);
        }

        // Only this machine is ever connected to, whatever the file says.
        static string Host(string url, int port)
        {
            if (string.IsNullOrEmpty(url)) return "127.0.0.1";
            if (!Uri.TryCreate(url, UriKind.Absolute, out var address) || address.Port != port) return null;
            if (address.Host == "localhost") return "127.0.0.1";
            return IPAddress.TryParse(address.Host.Trim('[', ']'), out var ip) && IPAddress.IsLoopback(ip) ? address.Host : null;
        }
    }

    /// <summary>Finds <c>endpoint.json</c> and notices when it changes.</summary>
    public sealed class EndpointFile
    {
        readonly string[] _paths;
        string _text;

        /// <summary>Looks below the project first, then in the folder for servers without a project.</summary>
        public EndpointFile(string projectPath)
        {
            _paths = new[]
            {
                Path.Combine(projectPath, "Library", "Raincheck", "endpoint.json"),
                Path.Combine(RuntimeFolder(), "unity", "endpoint.json"),
            };
        }

        /// <summary>The file that was read last, or the one that is looked for first.</summary>
        public string Place { get; private set; }

        /// <summary>Reads the file again; <c>true</c> when it says something else than the last time.</summary>
        public bool Changed()
        {
            var text = Read();
            if (text == _text) return false;
            _text = text;
            return true;
        }

        /// <summary>The endpoint as it was last read; <c>null</c> when there is none.</summary>
        public Endpoint Current => _text == null ? null : Endpoint.Parse(_text);

        string Read()
        {
            foreach (var path in _paths)
            {
                Place = path;
                try
                {
                    // The server replaces the file as a whole while we may be reading it.
                    using (var file = new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete))
                    using (var reader = new StreamReader(file, Encoding.UTF8))
                    {
                        var text = reader.ReadToEnd();
                        if (Endpoint.Parse(text) != null) return text;
                    }
                }
                catch (IOException) { }
                catch (UnauthorizedAccessException) { }
            }
            Place = _paths[0];
            return null;
        }

        static string RuntimeFolder()
        {
            var own = Environment.GetEnvironmentVariable("RAINCHECK_RUNTIME_DIR");
            if (!string.IsNullOrEmpty(own)) return own;
            var session = Environment.GetEnvironmentVariable("XDG_RUNTIME_DIR");
            if (!string.IsNullOrEmpty(session)) return Path.Combine(session, "raincheck");
            var state = Environment.GetEnvironmentVariable("RAINCHECK_STATE_DIR");
            return Path.Combine(string.IsNullOrEmpty(state) ? StateFolder() : state, "run");
        }

        static string StateFolder()
        {
            var home = Environment.GetFolderPath(Environment.SpecialFolder.UserProfile);
            if (Path.DirectorySeparatorChar == '\\')
                return Path.Combine(Environment.GetFolderPath(Environment.SpecialFolder.LocalApplicationData), "raincheck");
            if (Directory.Exists(Path.Combine(home, "Library", "Application Support")))
                return Path.Combine(home, "Library", "Application Support", "raincheck");
            var state = Environment.GetEnvironmentVariable("XDG_STATE_HOME");
            return Path.Combine(string.IsNullOrEmpty(state) ? Path.Combine(home, ".local", "state") : state, "raincheck");
        }
    }

    /// <summary>The mutual proof: both ends know the secret, neither sends it.</summary>
    public static class Proof
    {
        /// <summary>Sixteen random bytes, base64url.</summary>
        public static string Nonce()
        {
            var bytes = new byte[16];
            using (var random = RandomNumberGenerator.Create()) random.GetBytes(bytes);
            return Encode(bytes);
        }

        /// <summary>The mac of one side: HMAC-SHA256 over <c>side|client nonce|server nonce|port</c>, base64url.</summary>
        public static string Mac(byte[] secret, string side, string clientNonce, string serverNonce, int port)
        {
            var text = side + "|" + clientNonce + "|" + serverNonce + "|" + port.ToString(CultureInfo.InvariantCulture);
            using (var hmac = new HMACSHA256(secret)) return Encode(hmac.ComputeHash(Encoding.UTF8.GetBytes(text)));
        }

        /// <summary>Compares two texts in a time that does not depend on where they differ.</summary>
        public static bool Same(string one, string other)
        {
            if (one == null || other == null || one.Length != other.Length) return false;
            var difference = 0;
            for (var at = 0; at < one.Length; at++) difference |= one[at] ^ other[at];
            return difference == 0;
        }

        /// <summary>Base64url without padding.</summary>
        public static string Encode(byte[] bytes) =>
            Convert.ToBase64String(bytes).TrimEnd('=').Replace('+', '-').Replace('/', '_');

        /// <summary>Reads base64url; <c>null</c> when it is something else.</summary>
        public static byte[] Bytes(string text)
        {
            if (string.IsNullOrEmpty(text)) return null;
            var plain = text.TrimEnd('=').Replace('-', '+').Replace('_', '/');
            try { return Convert.FromBase64String(plain + new string('=', (4 - plain.Length % 4) % 4)); }
            catch (FormatException) { return null; }
        }
    }
}
