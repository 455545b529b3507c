//! Extensions of the protocol.

/// An extension of the protocol that a layer serves. It is announced by `server/discover` alone, and its
/// methods are for requests of revision 2026-07-28 or later that declare it: the server refuses any other
/// before the layer hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its identifier, such as `io.modelcontextprotocol/tasks`.
    pub id: &'static str,
    /// The methods that belong to it.
    pub methods: &'static [&'static str],
}
