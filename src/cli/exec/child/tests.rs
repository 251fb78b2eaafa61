use super::*;

#[test]
fn an_end_becomes_the_exit_code_that_shells_give_it() {
    for (raw, wanted) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (15, 143), (9, 137)] {
        assert_eq!(code(ExitStatus::from_raw(raw)), wanted, "{raw}");
    }
}

#[test]
fn this_machine_is_added_to_what_is_reached_directly() {
    let this = "127.0.0.1,localhost,::1";
    assert_eq!(directly(None), this);
    let more = format!("corp.example,{this}");
    assert_eq!(directly(Some(OsStr::new("corp.example"))), *more);
}
