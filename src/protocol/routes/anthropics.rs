//! Paths that Anthropic's clients alone ask for, so that whatever answers them does so in their form and with their
//! remedy, also where the base URL is wrong.
//!
//! Promise: paths of OpenAI's API that end in `/messages` are none: an id stands before it (`/v1/threads/ID/messages`,
//! `/v1/chat/completions/ID/messages`), and here the end of a base URL.

/// `/messages` behind a base URL, or `/messages/batches` with what is below it, or `/messages/count_tokens`.
pub fn is_path(path: &str) -> bool {
    let Some((base, below)) = path.split_once("/messages") else {
        return false;
    };
    let is_base = base.is_empty() || base.ends_with("/v1") || base.ends_with("/agent");
    let below = below.strip_suffix('/').unwrap_or(below);
    is_base
        && (matches!(below, "" | "/batches" | "/count_tokens") || below.starts_with("/batches/"))
}

#[cfg(test)]
mod tests;
