//! The browser of the demo: a Chromium, or one that is simulated.

use std::fs;
use std::path::Path;

use raincheck_browser::extension::Places;

use super::chromium::{self, Chromium};
use super::simulated::Simulated;
use super::{Transcript, Unmet};

/// A browser that has the extension.
#[derive(Debug)]
pub(super) enum Browser {
    Chromium(Box<Chromium>),
    Simulated(Simulated),
}

impl Browser {
    /// Starts what there is, and says what that is.
    pub(super) async fn start(
        show: Transcript,
        places: &Places,
        extension: &Path,
        folder: &Path,
    ) -> Result<Self, Unmet> {
        match chromium::find().await {
            Ok(program) => {
                show.heading(&format!("A real browser: {}, headless", program.version))?;
                fs::create_dir(folder)?;
                show.act("starts with a fresh profile and the extension")?;
                Ok(Self::Chromium(Box::new(Chromium::start(&program, extension, folder)?)))
            }
            Err(missing) => {
                show.heading(&format!("A SIMULATED browser: {missing}"))?;
                show.detail("for a real one: apt-get install -y chromium, or set CHROMIUM")?;
                Ok(Self::Simulated(Simulated::start(places.clone())))
            }
        }
    }

    /// Ends it. Returns the last lines that it wrote.
    pub(super) async fn close(self) -> Result<Vec<String>, Unmet> {
        match self {
            Self::Chromium(chromium) => chromium.close().await,
            Self::Simulated(simulated) => {
                simulated.close().await;
                Ok(Vec::new())
            }
        }
    }
}
