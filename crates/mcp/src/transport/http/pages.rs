//! Which pages may call, and by which name: a page of another site must not reach a server on its
//! reader's machine [SEC-2].

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderName, Request};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a request may say of where it comes from and of whom it means to call.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Names, beside those of loopback, that clients may call the server by, without a port.
    pub names: Vec<String>,
    /// Origins of pages that may call, byte for byte; a request with another `Origin` is refused.
    pub origins: Vec<String>,
}

impl Pages {
    /// Checks a request.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), &'static str> {
        let headers = request.headers();
        let one = |name: &HeaderName| {
            let mut values = headers.get_all(name).iter();
            let first = values.next();
            if values.next().is_some() { Err(()) } else { Ok(first) }
        };
        let host = match one(&HOST) {
            Ok(Some(value)) => Authority::try_from(value.as_bytes()).ok(),
            Ok(None) => request.uri().authority().cloned(),
            Err(()) => None,
        };
        if !host.is_some_and(|host| self.knows(host.host())) {
            return Err("`Host` is not this server");
        }
        match one(&SEC_FETCH_SITE) {
            Ok(None) => {}
            Ok(Some(site)) if site == "none" || site == "same-origin" => {}
            Ok(Some(_)) | Err(()) => return Err("a page of another site may not call this server"),
        }
        match one(&ORIGIN) {
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.origins.iter().any(|one| one.as_bytes() == origin) => Ok(()),
            Ok(Some(_)) | Err(()) => Err("`Origin` is not allowed here"),
        }
    }

    fn knows(&self, name: &str) -> bool {
        let own = ["localhost", "127.0.0.1", "[::1]"];
        let mut known = own.into_iter().chain(self.names.iter().map(String::as_str));
        known.any(|known| known.eq_ignore_ascii_case(name))
    }
}
