use super::{amount_of_broken, keep_first_priced};
use crate::money::MicroUsd;
use crate::protocol::Told;
use crate::protocol::receipt::Receipt;

fn told(amount: u64, replayed: bool) -> Receipt {
    Receipt {
        billed: Told::Value(MicroUsd::new(amount)),
        replayed,
        ..Receipt::default()
    }
}

#[test]
fn the_amount_of_a_broken_replay_is_not_the_keys() {
    let replay = Some(told(77_777, true));
    assert_eq!(replay.as_ref().and_then(amount_of_broken), None);
    let mut kept = replay;
    keep_first_priced(&mut kept, || told(5, false));
    let amount = kept.as_ref().and_then(amount_of_broken);
    assert_eq!(amount, Some(MicroUsd::new(5)), "the real one is kept");
    keep_first_priced(&mut kept, || told(0, true));
    let amount = kept.as_ref().and_then(amount_of_broken);
    assert_eq!(amount, Some(MicroUsd::new(5)), "the first stands");
}
