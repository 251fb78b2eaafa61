//! Which program this is: version, commit and compiler.
//!
//! The repository is not asked for the commit: a build from a tarball has none, and each commit would build all of it
//! anew. `make release` and the packages name it.
//!
//! Promise: a part that the build did not know is `None`, and never a guess.

/// What a build knows of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Release {
    pub version: &'static str,
    /// `BURSAR_COMMIT` of the build's environment.
    pub commit: Option<&'static str>,
    /// Version of the compiler (`build.rs`).
    pub rustc: Option<&'static str>,
    /// `bursar sandbox` and `bursar demo` are in this program, and not in the package beside it.
    pub sandbox: bool,
}

/// This program.
pub const RELEASE: Release = Release {
    version: env!("CARGO_PKG_VERSION"),
    commit: known(option_env!("BURSAR_COMMIT")),
    rustc: known(option_env!("BURSAR_RUSTC")),
    sandbox: cfg!(feature = "sandbox"),
};

const fn known(text: Option<&'static str>) -> Option<&'static str> {
    match text {
        Some(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}
