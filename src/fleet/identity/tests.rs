//! The file that says what a ledger is called in the fleet.

use super::{FleetIdentity, IdentityError};
use crate::ledger::state_dir::Directory;

#[test]
fn what_was_stored_is_read_and_a_damaged_file_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = Directory::open_or_create(&directory.path().join("state")).expect("a directory");
    assert!(
        FleetIdentity::read(&state)
            .expect("nothing is there")
            .is_none()
    );
    let new = FleetIdentity::new().expect("randomness");
    new.store(&state).expect("it is written");
    assert!(FleetIdentity::read(&state).expect("it is there") == Some(new.clone()));

    let becoming = new.clone().becoming(7).expect("randomness");
    becoming.store(&state).expect("it is written");
    let known = FleetIdentity::read(&state)
        .expect("it is there")
        .expect("one");
    assert!(known == becoming && known.become_it() == becoming.become_it());
    let other = known.become_it().expect("another");
    assert!(
        other.ledger != new.ledger && other.secret() != new.secret() && other.becomes.is_none()
    );

    let path = directory.path().join("state/fleet.json");
    let text = std::fs::read_to_string(&path).expect("a text");
    let flipped = text.replace(&new.ledger.to_string(), &other.ledger.to_string());
    std::fs::write(&path, flipped).expect("it is written");
    assert!(matches!(
        FleetIdentity::read(&state),
        Err(IdentityError::Damaged)
    ));
}
