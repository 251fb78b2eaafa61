//! The machine's clock: what two processes of one boot may compare.

use super::{BootId, Clock, ManualClock, SystemClock};

#[test]
fn two_clocks_of_one_boot_show_one_time() {
    let (first, second) = (SystemClock::shared(), SystemClock::shared());
    let before = first.monotonic();
    let between = second.monotonic();
    let after = first.monotonic();
    assert!(before <= between && between <= after);
    assert_eq!(first.boot(), second.boot());
}

#[test]
fn the_boot_is_read_from_the_kernels_text() {
    let rows: [(&str, Option<u32>); 4] = [
        ("9b2a1c3d-0000-4000-8000-000000000000\n", Some(0x9b2a_1c3d)),
        ("", None),
        ("no-id", None),
        ("9b2a1c3d", None),
    ];
    for (text, wanted) in rows {
        assert_eq!(BootId::parse(text).map(|boot| boot.0), wanted, "{text:?}");
    }
}

#[test]
fn a_reboot_begins_monotonic_time_anew() {
    let clock = ManualClock::at(1_000);
    clock.advance(std::time::Duration::from_secs(5));
    let boot = clock.boot();
    clock.reboot();
    assert_ne!(clock.boot(), boot);
    assert!(clock.monotonic().is_zero());
    assert_eq!(clock.wall_ms(), 6_000);
}

#[test]
fn what_was_lent_for_a_time_goes_on_ending_while_the_machine_sleeps() {
    let clock = ManualClock::at(1_000);
    clock.advance(std::time::Duration::from_secs(5));
    clock.sleep(std::time::Duration::from_secs(60));
    assert_eq!(clock.monotonic().as_secs(), 5);
    assert_eq!(clock.since_boot().as_secs(), 65);
    clock.reboot();
    assert!(clock.since_boot().is_zero());
    let machine = SystemClock::shared();
    let awake = machine.monotonic();
    assert!(machine.since_boot() >= awake, "the time asleep is in it");
}
