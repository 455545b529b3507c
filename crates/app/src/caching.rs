//! How the binaries keep large answers.

use std::path::{Path, PathBuf};

use raincheck::mcp::layers::cache::{CacheOptions, Warming};

use crate::config::{Cache, File, Store};

/// The folder beside a store that holds cached responses.
const FOLDER: &str = "cache";

/// Returns the folder with the cached responses of a server; none where its tasks are in memory, too.
#[must_use]
pub fn folder(store: &Store) -> Option<PathBuf> {
    let Store::Path(path) = store else { return None };
    let path = std::path::absolute(path).ok()?;
    Some(path.parent().unwrap_or(Path::new("/")).join(FOLDER))
}

/// Makes the options of a cache of what a configuration says; `None` where it turns the cache off.
#[must_use]
pub fn options(file: &File, store: &Store) -> Option<CacheOptions> {
    let Cache { is_enabled, limits, warm } = &file.cache;
    if !is_enabled {
        return None;
    }
    let mut options = CacheOptions { folder: folder(store), ..CacheOptions::default() };
    let chars = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    if let Some(threshold) = limits.whole("threshold_chars") {
        options.limits = options.limits.of_all(chars(threshold));
    }
    for (client, takes) in &file.clients {
        if let Some(most) = takes.max_chars {
            options.limits = options.limits.with(client, most);
        }
    }
    let bytes = |name| limits.whole(name).map(|mb| mb << 20);
    options.total_bytes = bytes("total_mb").unwrap_or(options.total_bytes);
    let scope_bytes = bytes("scope_mb").unwrap_or(options.scope_bytes);
    options.scope_bytes = scope_bytes.min(options.total_bytes);
    let entry_bytes = bytes("entry_mb").unwrap_or(options.entry_bytes);
    options.entry_bytes = entry_bytes.min(options.scope_bytes);
    options.ttl = limits.span("ttl_s").unwrap_or(options.ttl);
    options.absolute_ttl = limits.span("absolute_ttl_s").unwrap_or(options.absolute_ttl);
    options.warm = warm
        .iter()
        .map(|call| Warming {
            tool: call.tool.clone(),
            inputs: call.inputs.clone(),
            every: call.every,
        })
        .collect();
    Some(options)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{Overrides, parse};

    #[test]
    fn every_key_reaches_the_cache_and_a_part_is_never_larger_than_its_whole() {
        // [CACHE-9]
        let text = "[cache]\nthreshold_chars = 20000\ntotal_mb = 32\nttl_s = 3\nabsolute_ttl_s = 9\n\
                    warm = [{ tool = \"observe\", inputs = { what = \"tabs\" }, every_s = 60 }]\n\
                    [clients]\nsmall = { max_chars = 9000 }\n";
        let file = parse(text, PathBuf::from("/"), Overrides::default());
        let file = file.unwrap_or_else(|problems| panic!("{}", problems.render("it", text)));
        let options = options(&file, &Store::Path("/a/store.db".into())).expect("a cache");
        assert_eq!(options.folder.as_deref(), Some(Path::new("/a/cache")));
        assert_eq!(options.limits.chars(Some("x")), 20_000);
        assert_eq!(options.limits.chars(Some("a small one")), 9000);
        let bytes = (options.total_bytes, options.scope_bytes, options.entry_bytes);
        assert_eq!(bytes, (32 << 20, 32 << 20, 32 << 20));
        let (ttl, absolute) = (options.ttl, options.absolute_ttl);
        assert_eq!((ttl, absolute), (Duration::from_secs(3), Duration::from_secs(9)));
        assert_eq!(options.warm[0].every, Some(Duration::from_secs(60)));
        assert_eq!(folder(&Store::Memory), None);
    }
}
