use super::*;

#[test]
fn a_token_is_whole_and_never_the_same() {
    let (one, other) = (Token::draw().unwrap(), Token::draw().unwrap());

    assert_eq!(one.reveal().len(), 7 + 64 + 8);
    assert!(one.reveal().starts_with("bursar_"));
    assert_eq!(TokenForm::of(one.reveal().as_bytes()), TokenForm::Whole);
    assert_ne!(one.reveal(), other.reveal());
    assert_ne!(one.hash(), other.hash());
    assert_eq!(one.hash(), TokenHash::of(one.reveal().as_bytes()));
}

#[test]
fn every_slip_in_a_token_shows() {
    let token = Token::draw().unwrap();
    let text = token.reveal();
    for at in TOKEN_MARK.len()..text.len() {
        let mut slipped = text.as_bytes().to_vec();
        slipped[at] = if slipped[at] == b'0' { b'1' } else { b'0' };
        assert_eq!(TokenForm::of(&slipped), TokenForm::Mistyped, "at {at}");
        assert_ne!(TokenHash::of(&slipped), token.hash(), "at {at}");
        assert_eq!(TokenForm::of(&text.as_bytes()[..at]), TokenForm::Mistyped);
    }
    let longer = format!("{text}0");
    assert_eq!(TokenForm::of(longer.as_bytes()), TokenForm::Mistyped);
    for foreign in ["", "unused", "sk-abc", "Bursar_", "bursar"] {
        assert_eq!(TokenForm::of(foreign.as_bytes()), TokenForm::Foreign);
    }
}

#[test]
fn a_hash_goes_to_a_file_and_back() {
    let hash = TokenHash::of(b"x");

    assert_eq!(TokenHash::from_hex(&hash.to_hex()), Some(hash));
    // Another context, another hash: not the plain BLAKE3 of the token.
    assert_ne!(hash.to_hex(), blake3::hash(b"x").to_hex().to_string());
    for wrong in ["", "00", &"g".repeat(64), &"0".repeat(66)] {
        assert_eq!(TokenHash::from_hex(wrong), None, "{wrong}");
    }
}

#[test]
fn nothing_that_prints_shows_a_token() {
    let token = Token::draw().unwrap();
    let digits = &token.reveal()[7..23];
    let hash = token.hash().to_hex();

    for shown in [format!("{token:?}"), format!("{:?}", token.hash())] {
        assert!(!shown.contains(digits) && !shown.contains(&hash), "{shown}");
    }
}
