use super::*;

fn users(map: &str, uids: &[u32]) -> Vec<Option<u32>> {
    let namespace = Namespace::of(map, "65534\n");
    uids.iter().map(|uid| namespace.user(*uid)).collect()
}

const UIDS: [u32; 5] = [0, 1000, 61_999, 65_534, 4_294_967_294];

#[test]
fn where_no_user_is_hidden_every_user_is_known() {
    for map in [
        "         0          0 4294967295\n",
        "0 100000 65536\n65536 0 4294901759\n",
    ] {
        assert_eq!(users(map, &UIDS), UIDS.map(Some), "{map}");
    }
}

#[test]
fn the_stand_in_of_hidden_users_is_no_user() {
    for (what, map, expected) in [
        (
            "PrivateUsers=yes maps root and the service's own user",
            "0 0 1\n61999 61999 1\n",
            [Some(0), None, Some(61_999), None, None],
        ),
        (
            "a container: its own user nobody and all users outside look the same",
            "0 100000 65536\n",
            [Some(0), Some(1000), Some(61_999), None, None],
        ),
        ("no user is mapped", "", [None; 5]),
        ("no map", "garbage\n0 0\n0 0 x\n-1 0 1\n", [None; 5]),
    ] {
        assert_eq!(users(map, &UIDS), expected, "{what}");
    }
}

#[test]
fn another_stand_in_is_the_kernels_to_choose() {
    let other = Namespace::of("0 0 70000\n", "1234\n");
    assert_eq!(other.user(1234), None);
    assert_eq!(other.user(65_534), Some(65_534));
    let unsaid = Namespace::of("0 0 70000\n", "");
    assert_eq!(unsaid.user(65_534), None);
}
