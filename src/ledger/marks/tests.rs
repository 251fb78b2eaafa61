use super::*;

const ID: &str = "0190a6c1-7b3e-7c2f-9d41-5f0be2d73f0a";

fn session(app: &str, id: &str) -> Session {
    SessionHasher::new([7; 32]).session(app, id)
}

#[test]
fn a_session_is_of_its_app_and_of_its_ledger_and_the_same_each_time() {
    let one = session("a", ID);
    assert_eq!(one, session("a", ID));
    assert_ne!(one.hash, session("b", ID).hash);
    assert_ne!(one.hash, session("a", "other").hash);
    assert_ne!(one.hash, SessionHasher::new([8; 32]).session("a", ID).hash);
}

#[test]
fn of_an_id_the_last_eight_characters_are_kept_and_no_more() {
    let text = serde_json::to_string(&session("a", ID)).unwrap();
    assert!(text.contains(r#""shown":"e2d73f0a""#), "{text}");
    assert!(!text.contains("5f0be2d73f0a"), "{text}");
    assert_eq!(session("a", "s-1").shown.as_str(), "s-1");
}

#[test]
fn marks_survive_their_line() {
    let marks = Marks {
        session: Some(session("a", ID)),
        user: Some("u \"1\"".to_owned()),
        tags: Tags::parse("id=7", &["id".parse().unwrap()]).unwrap(),
    };
    let text = serde_json::to_string(&marks).unwrap();
    assert_eq!(serde_json::from_str::<Marks>(&text).unwrap(), marks);
    assert_eq!(Marks::default().into_shared(), None);
    for broken in [
        r#"{"session":{"hash":"12","shown":"a"}}"#,
        r#"{"session":{"hash":"000000000000000000000000000000zz","shown":"a"}}"#,
        r#"{"session":{"hash":"00000000000000000000000000000000","shown":"123456789"}}"#,
        r#"{"tags":{"A":"b"}}"#,
    ] {
        assert!(serde_json::from_str::<Marks>(broken).is_err(), "{broken}");
    }
}

#[test]
fn a_session_is_found_by_whatever_a_person_has_of_it() {
    let one = session("a", ID);
    let hash = one.hash.to_string();
    let shown = one.to_string();
    for (text, is_it) in [
        (ID, true),
        ("e2d73f0a", true),
        (shown.as_str(), true),
        (hash.as_str(), true),
        (&hash[..8], true),
        (&hash[..7], false),
        ("", false),
        ("d73f0a", false),
    ] {
        let sought = SoughtSession::new(text).keyed(SessionHasher::new([7; 32]));
        assert_eq!(sought.is("a", &one), is_it, "{text}");
        let marks = Marks {
            session: Some(one),
            ..Marks::default()
        };
        let line = serde_json::to_string(&marks).unwrap();
        let is_found = sought.texts().iter().any(|text| line.contains(text));
        assert!(is_found || !is_it, "{text}: {:?}", sought.texts());
    }
    assert!(!SoughtSession::new(ID).is("a", &one), "without the secret");
}
