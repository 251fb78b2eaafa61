//! The id of a model in a path: all that is left of it, for some ids have slashes (`anthropic/claude-x`), and clients
//! send those plain or as escapes.
//!
//! Promise: it is looked up in the list of models, and goes nowhere. What another reader may take for other segments is
//! no id.

use percent_encoding::percent_decode_str;

/// How a pattern ends whose paths have one.
pub const MODEL: &str = "{model}";

const ID_BYTES_MAX: usize = 256;

/// `None`: the path is not of this pattern, or the pattern is of no model.
pub fn read(pattern: &str, path: &str) -> Option<String> {
    let spelled = path.strip_prefix(pattern.strip_suffix(MODEL)?)?;
    let id = percent_decode_str(spelled).decode_utf8().ok()?;
    let is_id = id.len() <= ID_BYTES_MAX
        && !id
            .chars()
            .any(|letter| letter.is_control() || letter == '\\')
        && id.split('/').all(|part| !matches!(part, "" | "." | ".."));
    is_id.then(|| id.into_owned())
}
