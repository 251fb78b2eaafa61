use super::{KeptKey, KeyForm, Organization, SoughtKey};
use crate::ledger::fingerprint::Fingerprint;
use crate::ledger::kept_key::{EntryKey, KeyOrigin};

const SECRET: [u8; 32] = [3; 32];

fn own(text: &str, organization: u64) -> KeptKey {
    let key = EntryKey {
        value: text.into(),
        origin: KeyOrigin::App,
    };
    KeptKey::new(&SECRET, &key, Organization(organization), || {
        Fingerprint([9; 32])
    })
}

/// As an older bursar wrote it.
fn old(text: &str) -> KeptKey {
    let line = format!(r#"{{"value":"{text}","origin":"app"}}"#);
    serde_json::from_str(&line).expect("a key")
}

#[test]
fn i11_a_key_of_up_to_256_characters_is_kept_and_a_longer_one_as_its_hash() {
    let whole = "\u{e9}".repeat(256);
    let long = "k".repeat(64 << 10);
    let other = format!("{}x", "k".repeat((64 << 10) - 1));
    let form = |key: &str| KeyForm::of(&SECRET, key);

    assert_eq!(form(&whole), KeyForm::Text(whole.as_str().into()));
    assert_eq!(form(""), KeyForm::Text("".into()));
    assert!(form(&long).hash().is_some() && form(&long).text().is_none());
    assert_eq!(form(&long), form(&long));
    assert_ne!(form(&long), form(&other));
    assert_ne!(form(&long), KeyForm::of(&[4; 32], &long), "it is keyed");
    let unkeyed = Fingerprint(*blake3::hash(long.as_bytes()).as_bytes());
    assert_ne!(form(&long).hash(), Some(unkeyed));
}

#[test]
fn text_and_hash_stand_in_two_members_and_read_back() {
    let long = "k".repeat(300);
    for (key, member) in [(own("k", 1), "value"), (own(&long, 1), "hash")] {
        let line = serde_json::to_value(&key).expect("JSON");
        for name in ["value", "hash"] {
            assert_eq!(line.get(name).is_some(), name == member, "{line}");
        }
        assert_eq!(line["organization"], "0000000000000001");
        let read: KeptKey = serde_json::from_value(line).expect("a key");
        assert_eq!(read, key);
    }
    for wrong in [
        r#"{"origin":"app"}"#.to_owned(),
        format!(
            r#"{{"value":"k","hash":"{}","origin":"app"}}"#,
            "0".repeat(64)
        ),
    ] {
        assert!(serde_json::from_str::<KeptKey>(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn i3_keys_have_one_id_only_where_text_and_kind_are_equal() {
    let long = "k".repeat(300);
    let hash = own(&long, 1).form.hash().expect("a hash").to_string();
    let unkeyed = format!("h:{}", blake3::hash(long.as_bytes()).to_hex());
    let keys = [
        own("k", 1),
        own("h:k", 1),
        own(&long, 1),
        own(&hash, 1),
        own(&format!("h:{hash}"), 1),
        own(&unkeyed, 1),
    ];
    for (at, one) in keys.iter().enumerate() {
        for (other_at, other) in keys.iter().enumerate() {
            let is_one = one.id(&SECRET) == other.id(&SECRET);
            assert_eq!(is_one, at == other_at, "{one:?} {other:?}");
        }
    }
    // Whatever organization it is sent for, and what an older bursar wrote for it.
    for (now, written) in [
        (own("k", 2), own("k", 1)),
        (own("k", 2), old("k")),
        (own(&long, 2), own(&long, 1)),
        (own(&long, 2), old(&unkeyed)),
    ] {
        assert_eq!(now.id(&SECRET), written.id(&SECRET), "{written:?}");
    }
    assert_ne!(own(&unkeyed, 2).id(&SECRET), old(&unkeyed).id(&SECRET));
}

#[test]
fn a_key_is_sought_by_its_text_its_hash_and_what_was_written_before() {
    let long = "k".repeat(300);
    let hash = own(&long, 1).form.hash().expect("a hash").to_string();
    let unkeyed = format!("h:{}", blake3::hash(long.as_bytes()).to_hex());
    for (asked, key, is_it) in [
        ("k", own("k", 1), true),
        ("k", old("k"), true),
        ("k", own("kk", 1), false),
        (&long, own(&long, 1), true),
        (&long, old(&unkeyed), true),
        (&long, own(&unkeyed, 1), false),
        (&hash, own(&long, 1), true),
        (&hash, own(&hash, 1), true),
        (&unkeyed, own(&unkeyed, 1), true),
        (&unkeyed, old(&unkeyed), true),
        (&unkeyed, own(&long, 1), false),
    ] {
        let sought = SoughtKey::of(&SECRET, asked);
        assert_eq!(sought.is(&key), is_it, "{asked:.20} {key:?}");
        assert!(!is_it || sought.forms().any(|form| form == key.form));
    }
}

#[test]
fn an_organization_is_a_keyed_hash_of_its_key_and_address() {
    let of = |address, key: &[u8]| Organization::of(&SECRET, address, key);
    let one = of("https://a.example", b"Bearer sk-1");

    assert_eq!(one, of("https://a.example", b"Bearer sk-1"));
    assert_ne!(one, of("https://a.example", b"Bearer sk-2"));
    assert_ne!(one, of("https://b.example", b"Bearer sk-1"));
    let other_ledgers = Organization::of(&[4; 32], "https://a.example", b"Bearer sk-1");
    assert_ne!(one, other_ledgers);
}
