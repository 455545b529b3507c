using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Raincheck.InEditor
{
    /// <summary>What only Windows can be asked for; elsewhere nothing happens and there is no answer.</summary>
    sealed class WindowsApi
    {
#if UNITY_EDITOR_WIN
        readonly uint _mainThread = GetCurrentThreadId();
#endif

        /// <summary>
        /// Wakes a main thread that waits for a message, as that of an editor without focus does. Nobody handles the
        /// message, so that it cannot reach a domain that is gone. Made on the main thread, called from any.
        /// </summary>
        public void WakeMainThread()
        {
#if UNITY_EDITOR_WIN
            try { PostThreadMessage(_mainThread, 0, IntPtr.Zero, IntPtr.Zero); }
            catch (EntryPointNotFoundException) { }
#endif
        }

        /// <summary>The title of the visible dialog of this process, or <c>null</c>. Sends no message to any window.</summary>
        public string DialogTitle(int processId)
        {
#if UNITY_EDITOR_WIN
            string title = null;
            try
            {
                EnumWindows((window, _) =>
                {
                    GetWindowThreadProcessId(window, out var owner);
                    if (owner != (uint)processId || !IsWindowVisible(window)) return true;
                    var name = new StringBuilder(64);
                    GetClassName(window, name, name.Capacity);
                    // The class of every dialog box, file panels included.
                    if (name.ToString() != "#32770") return true;
                    var text = new StringBuilder(512);
                    InternalGetWindowText(window, text, text.Capacity);
                    title = text.ToString();
                    return false;
                }, IntPtr.Zero);
            }
            catch (EntryPointNotFoundException) { }
            catch (DllNotFoundException) { }
            return title;
#else
            return null;
#endif
        }

#if UNITY_EDITOR_WIN
        delegate bool Visit(IntPtr window, IntPtr argument);

        [DllImport("kernel32.dll")]
        static extern uint GetCurrentThreadId();

        [DllImport("user32.dll")]
        static extern bool PostThreadMessage(uint thread, uint message, IntPtr wParam, IntPtr lParam);

        [DllImport("user32.dll")]
        static extern bool EnumWindows(Visit visit, IntPtr argument);

        [DllImport("user32.dll")]
        static extern uint GetWindowThreadProcessId(IntPtr window, out uint processId);

        [DllImport("user32.dll")]
        static extern bool IsWindowVisible(IntPtr window);

        [DllImport("user32.dll", CharSet = CharSet.Unicode)]
        static extern int GetClassName(IntPtr window, StringBuilder name, int length);

        // Reads what the window manager knows, so that a window that answers nobody does not hold us.
        [DllImport("user32.dll", CharSet = CharSet.Unicode)]
        static extern int InternalGetWindowText(IntPtr window, StringBuilder text, int length);
#endif
    }
}
