//! Headers that rules depend on, and that have one value.
//!
//! Promise: what this reads is what every other reader of the header reads; all else is refused.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::proxy::refuse::{Code, Refusal};

/// The only value of a header that rules depend on. Two values have no meaning, and bytes that are
/// no printable ASCII have several.
pub fn single_value(
    headers: &HeaderMap,
    name: &HeaderName,
) -> Result<Option<HeaderValue>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next().cloned();
    if values.next().is_some() {
        return Err(Refusal::because(
            Code::HeaderRefused,
            format!("The header {name} is given more than once."),
        ));
    }
    let printable = first.iter().all(|value| {
        let mut bytes = value.as_bytes().iter();
        bytes.all(|byte| (0x20..=0x7e).contains(byte))
    });
    if !printable {
        return Err(Refusal::because(
            Code::HeaderRefused,
            format!("The header {name} is not printable ASCII."),
        ));
    }
    Ok(first.filter(|value| !value.is_empty()))
}
