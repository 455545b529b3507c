//! What is tested from outside: the real binary under raw lines and the official SDKs, and a model
//! of the engine in which every order of events is tried. Everything is in `it`.
//!
//! The Rust examples of the tutorials and guides are compiled here, too.

#[cfg(doctest)]
#[doc = include_str!("../../docs/tutorials/first-rust-server.md")]
struct FirstRustServer;

#[cfg(doctest)]
#[doc = include_str!("../../docs/how-to/embed.md")]
struct Embed;

#[cfg(doctest)]
#[doc = include_str!("../../docs/how-to/ask-for-input.md")]
struct AskForInput;

#[cfg(doctest)]
#[doc = include_str!("../../docs/how-to/own-tool-set.md")]
struct OwnToolSet;

#[cfg(doctest)]
#[doc = include_str!("../../docs/how-to/own-store.md")]
struct OwnStore;

#[cfg(doctest)]
#[doc = include_str!("../../docs/how-to/serve-over-http.md")]
struct ServeOverHttp;

#[cfg(doctest)]
#[doc = include_str!("../../docs/how-to/wrap-a-handler.md")]
struct WrapAHandler;
