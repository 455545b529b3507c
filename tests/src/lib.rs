//! What is tested from outside: the real binary under raw lines and the official SDKs, and a model
//! of the engine in which every order of events is tried. Everything is in `it`.
