//! `Arc<str>` as a JSON string, without serde's `rc` feature: for `#[serde(with = "shared_text")]`.
//!
//! Promise: what is read equals what was written.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serializer};

pub fn serialize<S: Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(from).map(Arc::from)
}
