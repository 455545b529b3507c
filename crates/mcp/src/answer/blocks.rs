//! What stands beside the text of an answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use raincheck_core::content::Json;

/// A block beside the text.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// An image.
    Image {
        /// Its media type.
        mime: String,
        /// Its bytes in base64.
        data: String,
    },
    /// A sound.
    Audio {
        /// Its media type.
        mime: String,
        /// Its bytes in base64.
        data: String,
    },
    /// A content block of another MCP server, as it came.
    Verbatim(Json),
}

/// The types of block that MCP knows.
const KNOWN: &[&str] = &["text", "image", "audio", "resource", "resource_link"];

impl Block {
    /// Makes a block of bytes; `None` for a media type that has no block of its own.
    pub(super) fn of(mime: &str, data: &[u8]) -> Option<Self> {
        let mime = mime.to_owned();
        if mime.starts_with("image/") {
            Some(Self::Image { mime, data: encode(data) })
        } else if mime.starts_with("audio/") {
            Some(Self::Audio { mime, data: encode(data) })
        } else {
            None
        }
    }

    /// Takes the block of another server; `None` when it is of no type that clients know.
    pub(super) fn verbatim(block: &Json) -> Option<Self> {
        /// The member that tells blocks apart.
        #[derive(Deserialize)]
        struct Typed {
            r#type: String,
        }

        let Typed { r#type } = block.read().ok()?;
        KNOWN.contains(&r#type.as_str()).then(|| Self::Verbatim(block.clone()))
    }
}

/// Writes bytes as base64, with padding.
pub(super) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
