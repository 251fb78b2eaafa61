//! OpenAI's form of the speech routes: a recording that comes as a form, and a text whose speech is wanted as
//! bytes. The service's own form is JSON with base64 both ways, on the same paths.
//!
//! Why: no program that was written for OpenAI's speech sends the service's JSON.
//!
//! Promise: as of the other translations ([`super`]). The length of the JSON is known before it is made, so what
//! the service would refuse as too large is not sent.

mod answer;
mod asked;
mod speech;
mod transcription;

pub use self::answer::{Rendered, answer};
pub use self::asked::{AudioRequest, Form, Turn, Unsent};
pub use self::speech::{Offer, speech};
pub use self::transcription::transcription;

#[cfg(test)]
mod tests;
