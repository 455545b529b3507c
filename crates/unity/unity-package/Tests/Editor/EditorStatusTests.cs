using NUnit.Framework;
using Raincheck.Core;

namespace Raincheck.Tests
{
    public class EditorStatusTests
    {
        sealed class Host : IEditorHost
        {
            public string Dialog;
            public int Asked;
            public string ProjectPath => "/p";
            public string ProjectName => "p";
            public string UnityVersion => "6000.0.0f1";
            public string PackageVersion => "0.0.0";
            public int ProcessId => 1;
            public long ProcessStartedMs => 1;
            public void WakeMainThread() => Asked++;
            public void Log(LogLevel level, string message) { }
            public string DialogTitle() => Dialog;
        }

        Host _host;
        EditorStatus _status;
        long _now;

        [SetUp]
        public void Make()
        {
            _host = new Host();
            _now = 0;
            _status = new EditorStatus(_host, () => _now);
            _status.ToMessage();
        }

        // Lets time pass as the sender's thread does, a quarter of a second at a time; answers whether a status was due.
        bool Pass(long milliseconds)
        {
            var due = false;
            for (var until = _now + milliseconds; _now < until; _now += 250) due |= _status.Tick(60000);
            return due;
        }

        [Test]
        public void AnEditorThatIsNotAskedAnythingIsNotBlocked()
        {
            // It updates seldom without the focus, but answers when it is asked.
            for (var round = 0; round < 10; round++)
            {
                Pass(2000);
                Assert.AreEqual(round + 1, _host.Asked);
                _status.Pumped();
                Assert.AreEqual("ready", _status.State);
            }
        }

        // Case unity-dialog-blocks-save.
        [Test]
        public void AMainThreadThatDoesNotAnswerIsBlockedAndTheDialogIsNamed()
        {
            _host.Dialog = "Save Scene";
            Assert.True(Pass(6000));
            Assert.AreEqual("blocked", _status.State);
            var message = _status.ToMessage();
            Assert.AreEqual("blocked Save Scene", message.Text("state") + " " + message.Text("dialog"));
            Assert.True(message.Integer("main_thread_lag_ms") >= 4000);
            Assert.AreEqual(1, _host.Asked);
            Assert.True(_status.Pumped());
            Assert.AreEqual("ready", _status.State);
            Assert.False(_status.ToMessage().Has("dialog"));
        }

        [Test]
        public void AToolThatWorksIsNotBlockedUnlessADialogHoldsIt()
        {
            _status.EnterStep();
            Assert.False(Pass(10000));
            Assert.AreEqual("ready", _status.State);
            _host.Dialog = "Open File";
            Assert.True(Pass(500));
            Assert.AreEqual("blocked", _status.State);
        }

        [Test]
        public void ACompileOrAnImportHoldsTheMainThreadByRights()
        {
            foreach (var state in new[] { "compiling", "importing", "building", "reloading", "entering_play_mode" })
            {
                _status.Set(state, null);
                Pass(20000);
                Assert.AreEqual(state, _status.State);
            }
            _status.Set("running_tests", null);
            Pass(20000);
            Assert.AreEqual("blocked", _status.State);
        }

        [Test]
        public void TheStatusIsSentInItsTimeAndNumberedAnewForEachConnection()
        {
            _now = 10;
            Assert.False(_status.Tick(1000));
            _now = 1010;
            Assert.True(_status.Tick(1000));
            Assert.AreEqual(2L, _status.ToMessage()["seq"]);
            Assert.False(_status.Tick(1000));
            _status.BeginConnection();
            Assert.AreEqual(1L, _status.ToMessage()["seq"]);
            Assert.True(_status.Set("playing", true));
            Assert.False(_status.Set("playing", null));
            Assert.True(_status.Set("playing", false));
        }
    }
}
