use super::*;

#[test]
fn what_the_build_did_not_know_is_left_out() {
    let known = Release {
        version: "0.1.0",
        commit: Some("0123456789ab"),
        rustc: Some("1.95.0"),
        sandbox: true,
    };
    assert_eq!(
        text(&known),
        "bursar 0.1.0, commit 0123456789ab, rustc 1.95.0, with the sandbox"
    );
    let unknown = Release {
        commit: None,
        rustc: None,
        sandbox: false,
        ..known
    };
    assert_eq!(
        text(&unknown),
        "bursar 0.1.0, without the sandbox (package bursar-sandbox)"
    );
}

#[test]
fn this_build_knows_its_compiler() {
    let rustc = RELEASE.rustc.expect("a version");
    assert!(rustc.starts_with("1."), "{rustc}");
    assert_eq!(RELEASE.version, env!("CARGO_PKG_VERSION"));
}
