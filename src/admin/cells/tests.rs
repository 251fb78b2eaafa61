use super::*;

#[test]
fn a_count_agrees_with_its_noun() {
    for (count, text) in [(0, "0 entries"), (1, "1 entry"), (11, "11 entries")] {
        assert_eq!(counted(count, "entry", "entries"), text);
    }
}
