use super::*;

#[test]
fn as_many_connections_fit_as_have_two_descriptors_each_beside_the_others() {
    assert_eq!(fitting(OWN + 2 * 8192), 8192);
    assert_eq!(fitting(1024), 128);
    assert_eq!(fitting(OWN + 3), 1);
    // A limit that is too low for anything is not one connection lower: bursar starts, and serves one.
    assert_eq!(fitting(0), 1);
}
