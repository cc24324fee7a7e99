use std::path::{Path, PathBuf};

use super::client::Client;
use super::{HubError, HubModel, cache, fetch};
use crate::checkpoint::Options;

/// A hub, reached as Hugging Face's own library reaches it.
#[derive(Debug)]
pub struct Hub {
    client: Client,
    cache: Option<PathBuf>,
}

impl Hub {
    /// The hub at `endpoint`, such as `https://huggingface.co`. `token` opens private and gated models; `cache` is
    /// the folder of complete files that are at hand.
    pub fn new(endpoint: &str, token: Option<String>, cache: Option<PathBuf>) -> Self {
        Self {
            client: Client::new(endpoint, token),
            cache,
        }
    }

    /// The hub that the environment names: `HF_ENDPOINT`, `HF_TOKEN` or the file that `hf auth login` wrote,
    /// `HF_HUB_CACHE`, `HF_HOME`.
    pub fn from_env() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let endpoint = variable("HF_ENDPOINT");
        Self::new(
            endpoint.as_deref().unwrap_or("https://huggingface.co"),
            cache::token(),
            cache::folder(),
        )
    }

    /// The folder of a model: that in the cache if it is complete there, or else one under `into` with what these
    /// options need.
    ///
    /// `progress` sees the bytes fetched and the bytes to fetch, which become known bit by bit.
    ///
    /// # Errors
    /// No connection, no such model or no access to it, no safetensors weights, a server that does not give parts of
    /// files or gives others than it says, a family that is not known.
    pub fn fetch(
        &self,
        model: &HubModel,
        options: &Options,
        into: &Path,
        progress: impl FnMut(u64, u64) + Send,
    ) -> Result<PathBuf, HubError> {
        let listing = match self.client.listing(model) {
            Ok(listing) => listing,
            // As Hugging Face's library: without a connection the revision that was current last is good enough.
            Err(error @ HubError::Connection { .. }) => {
                let cached = self.cache.as_deref().and_then(|cache| cache::last(cache, model));
                return cached.ok_or(error);
            }
            Err(error) => return Err(error),
        };
        let cached = self
            .cache
            .as_deref()
            .and_then(|cache| cache::snapshot(cache, model, &listing.sha));
        match cached {
            Some(path) => Ok(path),
            None => fetch::fetch(&self.client, model, &listing, options, into, progress),
        }
    }
}
