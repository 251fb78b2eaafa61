use super::*;

#[test]
fn what_the_fleet_has_frozen_is_named_with_the_command_that_ends_it() {
    let freeze = |app: Option<&str>, fleet| FrozenView {
        app: app.map(str::to_owned),
        since_ms: 1,
        by: "alice".to_owned(),
        fleet,
    };
    let (all, nightly) = (freeze(None, true), freeze(Some("nightly"), true));
    let (other, own) = (freeze(Some("other"), true), freeze(None, false));
    let of_all = "`bursar fleet thaw`";
    let of_one = "`bursar fleet thaw nightly`";
    let cases = [
        (vec![own, other], Some("nightly"), vec![]),
        (vec![nightly.clone()], Some("nightly"), vec![of_one]),
        (vec![nightly.clone()], None, vec![]),
        (vec![all.clone()], Some("nightly"), vec![of_all]),
        (vec![all.clone()], None, vec![of_all]),
        (vec![all, nightly], Some("nightly"), vec![of_all, of_one]),
    ];
    for (freezes, app, wanted) in cases {
        let freezes = Freezes {
            freezes,
            waits_in: None,
        };
        assert_eq!(freezes.thaws_of_fleet(app), wanted, "{app:?}");
    }
}
