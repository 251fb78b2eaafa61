use proptest::prelude::*;

use super::{COUNT, Figures, read_number, write_number};

proptest! {
    #[test]
    fn figures_are_read_back_as_they_were_written_and_as_the_row_has_them(
        counts in prop::array::uniform32(prop_oneof![Just(0u64), any::<u64>()]),
    ) {
        let mut figures = Figures::default();
        for (at, place) in figures.0.iter_mut().enumerate() {
            *place = u128::from(counts[at % counts.len()]);
        }
        let mut bytes = Vec::new();
        figures.encode(&mut bytes);
        let mut rest = bytes.as_slice();
        let mut read = Figures::default();
        prop_assert_eq!(read.add_encoded(&mut rest), Some(()));
        prop_assert!(rest.is_empty());
        prop_assert_eq!(&read, &figures);
        prop_assert_eq!(&Figures::of(&figures.row()), &figures);

        let mut twice = figures.clone();
        twice.add(&figures);
        prop_assert_eq!(twice.take_away(&figures), Some(()));
        prop_assert_eq!(&twice, &figures);
        for cut in 0..bytes.len() {
            let mut part = &bytes[..cut];
            prop_assert_eq!(Figures::default().add_encoded(&mut part), None);
        }
    }
}

#[test]
fn the_largest_number_is_read_back_and_a_longer_one_is_damage() {
    let bits = (0..128).map(|bit| 1u128 << bit);
    for number in bits.flat_map(|bit| [bit - 1, bit]).chain([u128::MAX]) {
        let mut bytes = Vec::new();
        write_number(number, &mut bytes);
        assert_eq!(read_number(&mut bytes.as_slice()), Some(number));
    }
    let longer = [0xff; 20];
    assert_eq!(read_number(&mut longer.as_slice()), None);
    assert_eq!(Figures::default().0.len(), COUNT);
}

#[test]
fn no_more_is_taken_away_than_there_is() {
    let mut one = Figures::default();
    one.0[0] = 1;
    assert_eq!(Figures::default().take_away(&one), None);
}
