namespace Raincheck.Core
{
    /// <summary>Where the connection to the server is.</summary>
    public enum LinkState
    {
        /// <summary>Not started, or stopped.</summary>
        Off,

        /// <summary>No server has written down where it listens.</summary>
        NoServer,

        /// <summary>A server is known and is being connected to.</summary>
        Connecting,

        /// <summary>Both ends have proved themselves.</summary>
        Connected,

        /// <summary>One end could not prove itself; waits for the server to write a new endpoint.</summary>
        Refused,

        /// <summary>Another editor of the same project took the connection over; stays away.</summary>
        Superseded,
    }

    /// <summary>The state of the connection, for the settings page.</summary>
    public sealed class LinkStatus
    {
        /// <summary>Where the connection is.</summary>
        public LinkState State;

        /// <summary>The file that names the server.</summary>
        public string EndpointFile;

        /// <summary>The server's port; 0 when none is known.</summary>
        public int Port;

        /// <summary>The server's version; <c>null</c> while not connected.</summary>
        public string ServerVersion;

        /// <summary>Why it is not connected; <c>null</c> when nothing went wrong.</summary>
        public string Fault;

        /// <summary>How many connections came about since the domain was loaded.</summary>
        public int Connections;
    }
}
