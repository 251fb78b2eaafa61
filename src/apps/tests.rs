use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::config::{DEFAULT_APP, Limits, TokenForm, TokenHash};
use crate::ledger::LedgerError;
use crate::money::MicroUsd;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("state")).unwrap();
        let mode = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(folder.path().join("state"), mode).unwrap();
        Self { folder }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    fn file(&self) -> std::path::PathBuf {
        self.path().join("apps.json")
    }

    fn open(&self, declared: Declared) -> Result<Apps, AppsError> {
        Apps::open(&self.path(), declared)
    }
}

fn nothing() -> Declared {
    declare(Vec::new())
}

fn declare(apps: Vec<App>) -> Declared {
    let places = (1..=apps.len()).map(|line| format!("config.toml:{line}"));
    Declared {
        places: places.collect(),
        apps,
        anonymous: None,
        remote: false,
        caps: config::CapsTable {
            warn_at: Vec::new(),
            time_zone: jiff::tz::TimeZone::UTC,
            all: Limits::default(),
            request_floor: MicroUsd::ZERO,
        },
    }
}

fn named(name: &str) -> AppAdd {
    AppAdd {
        name: name.to_owned(),
        ..AppAdd::default()
    }
}

fn app_name(apps: &Apps, token: &Token) -> Result<String, Stranger> {
    let app = apps.table().app_of(Some(token.reveal().as_bytes()), None);
    app.map(|app| app.name.to_string())
}

#[test]
fn an_added_app_is_there_at_once_and_after_a_restart() {
    let place = Place::new();
    let apps = place.open(nothing()).unwrap();
    let new = AppAdd {
        uids: vec![7, 5, 7],
        cap_day_micro_usd: Some(MicroUsd::new(9)),
        ..named("nightly")
    };

    let token = apps.add(&new, 1_000).unwrap();

    assert_eq!(app_name(&apps, &token).unwrap(), "nightly");
    let again = place.open(nothing()).unwrap();
    assert_eq!(app_name(&again, &token).unwrap(), "nightly");
    let table = again.table();
    let known = &table.known()[0];
    assert_eq!(known.app.uids, [5, 7]);
    let day = Some(MicroUsd::new(9));
    assert_eq!(
        known.app.limits,
        Limits {
            day,
            ..Limits::default()
        }
    );
    let origin = Origin::Added {
        at_ms: 1_000,
        token_at_ms: 1_000,
    };
    assert_eq!(known.origin, origin);
    let mode = std::fs::metadata(place.file())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(place.file()).unwrap();
    assert!(
        !text.contains(&token.reveal()[7..]),
        "a token stands in the file"
    );
}

#[test]
fn a_rotated_and_a_removed_token_stop_at_once() {
    let place = Place::new();
    let apps = place.open(nothing()).unwrap();
    let first = apps.add(&named("a"), 1).unwrap();
    let running = apps.table().app_of(Some(first.reveal().as_bytes()), None);

    let second = apps.rotate("a", 2).unwrap();
    let whole = Stranger::WrongToken(TokenForm::Whole);
    assert_eq!(app_name(&apps, &first), Err(whole));
    assert_eq!(app_name(&apps, &second).unwrap(), "a");

    apps.remove("a").unwrap();
    assert_eq!(
        app_name(&apps, &second),
        Err(whole),
        "also where anybody may spend"
    );
    assert!(apps.table().is_anonymous_allowed());
    assert_eq!(&*running.unwrap().name, "a", "a request keeps its app");
    assert_eq!(
        app_name(&place.open(nothing()).unwrap(), &second),
        Err(whole)
    );
}

#[test]
fn a_caller_is_its_token_then_its_user_then_anybody() {
    let place = Place::new();
    let token = TokenHash::of(b"0123456789abcdef0123456789abcdef");
    let team = App {
        token: Some(token),
        ..App::new("team")
    };
    let nightly = App {
        uids: vec![1000],
        ..App::new("nightly")
    };
    let default = App {
        request_floor: Some(MicroUsd::new(3)),
        ..App::new(DEFAULT_APP)
    };
    let apps = |anonymous| {
        let declared = Declared {
            anonymous,
            ..declare(vec![team.clone(), nightly.clone(), default.clone()])
        };
        place.open(declared).unwrap().table()
    };
    let known: &[u8] = b"0123456789abcdef0123456789abcdef";
    let ours = Token::draw().unwrap();
    let slip = format!("{}0", ours.reveal());
    let (unknown, mistyped) = (ours.reveal().as_bytes(), slip.as_bytes());
    let none = Err(Stranger::NoToken);
    let wrong = |form| Err(Stranger::WrongToken(form));
    // Token, user; the app it is with `anonymous` false, true.
    #[expect(clippy::type_complexity, reason = "a table, spelled where it is read")]
    let rows: [(
        Option<&[u8]>,
        Option<u32>,
        Result<&str, Stranger>,
        Result<&str, Stranger>,
    ); 11] = [
        (Some(known), None, Ok("team"), Ok("team")),
        (Some(known), Some(1000), Ok("team"), Ok("team")),
        (None, Some(1000), Ok("nightly"), Ok("nightly")),
        (Some(b"unused"), Some(1000), Ok("nightly"), Ok("nightly")),
        (
            Some(unknown),
            Some(1000),
            wrong(TokenForm::Whole),
            wrong(TokenForm::Whole),
        ),
        (None, Some(1001), none, Ok("default")),
        (None, None, none, Ok("default")),
        (
            Some(b"unused"),
            None,
            wrong(TokenForm::Foreign),
            Ok("default"),
        ),
        (
            Some(unknown),
            None,
            wrong(TokenForm::Whole),
            wrong(TokenForm::Whole),
        ),
        (
            Some(mistyped),
            None,
            wrong(TokenForm::Mistyped),
            wrong(TokenForm::Mistyped),
        ),
        (Some(b""), None, wrong(TokenForm::Foreign), Ok("default")),
    ];
    for (token, user, closed, open) in rows {
        for (anonymous, wanted) in [(Some(false), closed), (None, closed), (Some(true), open)] {
            let found = apps(anonymous).app_of(token, user);
            let found = found.as_ref().map(|app| &*app.name).map_err(|why| *why);
            assert_eq!(found, wanted, "{anonymous:?} {token:?} {user:?}");
        }
    }
    let default = apps(Some(true)).app_of(None, None).unwrap();
    assert_eq!(default.request_floor, Some(MicroUsd::new(3)), "as declared");
}

#[test]
fn anybody_may_spend_only_while_there_is_no_app_and_never_from_elsewhere() {
    let app = || vec![App::new("a")];
    // Apps, `anonymous`, remote; whether anybody may spend.
    let rows = [
        (Vec::new(), None, false, true),
        (vec![App::new(DEFAULT_APP)], None, false, true),
        (app(), None, false, false),
        (app(), Some(true), false, true),
        (app(), Some(false), false, false),
        (Vec::new(), Some(false), false, false),
        (Vec::new(), None, true, false),
        (Vec::new(), Some(true), true, false),
    ];
    let place = Place::new();
    for (apps, anonymous, remote, wanted) in rows {
        let declared = Declared {
            anonymous,
            remote,
            ..declare(apps)
        };
        let name = format!("{declared:?}");
        let table = place.open(declared).unwrap().table();
        assert_eq!(table.is_anonymous_allowed(), wanted, "{name}");
    }
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let place = Place::new();
    let declared = declare(vec![
        App {
            uids: vec![7],
            ..App::new("fixed")
        },
        App::new(DEFAULT_APP),
    ]);
    let apps = place.open(declared).unwrap();
    apps.add(&named("a"), 1).unwrap();
    let before = std::fs::read(place.file()).unwrap();
    let cap = AppAdd {
        cap_hour_micro_usd: Some(MicroUsd::new(2)),
        cap_month_micro_usd: Some(MicroUsd::new(1)),
        ..named("b")
    };
    let user = AppAdd {
        uids: vec![7],
        ..named("b")
    };
    let said = [
        apps.add(&named("A"), 1).map(drop),
        apps.add(&named("other"), 1).map(drop),
        apps.add(&named("a"), 1).map(drop),
        apps.add(&named("fixed"), 1).map(drop),
        apps.add(&named(DEFAULT_APP), 1).map(drop),
        apps.add(&cap, 1).map(drop),
        apps.add(&user, 1).map(drop),
        apps.remove("none"),
        apps.remove("fixed"),
        apps.rotate("none", 1).map(drop),
        apps.rotate("fixed", 1).map(drop),
    ];
    let parts = [
        "1 to 32 characters",
        "what metrics call",
        "`bursar app rotate a`",
        "declared in the configuration (config.toml:1)",
        "declared in the configuration (config.toml:2)",
        "the cap of the hour is above that of the month",
        "the user 7 is the app \"fixed\" already",
        "there is no app \"none\"",
        "declared in the configuration (config.toml:1)",
        "there is no app \"none\"",
        "declared in the configuration (config.toml:1)",
    ];
    for (said, part) in said.into_iter().zip(parts) {
        let said = said.unwrap_err().to_string();
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(std::fs::read(place.file()).unwrap(), before);
    assert_eq!(apps.table().known().len(), 2);
}

#[test]
fn there_are_no_more_apps_than_labels() {
    let place = Place::new();
    let apps = place.open(declare(vec![App::new("x")])).unwrap();
    for number in 1..APPS_MAX {
        apps.add(&named(&format!("a{number}")), 1).unwrap();
    }

    let said = apps.add(&named("b"), 1).unwrap_err();

    assert!(matches!(said, AppsError::Full), "{said}");
    assert_eq!(apps.table().known().len(), APPS_MAX);
}

#[test]
fn an_app_in_two_places_stops_the_start_until_it_is_taken_out_of_one() {
    let place = Place::new();
    let apps = place.open(nothing()).unwrap();
    let token = apps.add(&named("a"), 1).unwrap();

    let said = apps.redeclare(declare(vec![App::new("a")])).unwrap_err();
    assert!(matches!(said, AppsError::Twice { .. }), "{said}");
    assert_eq!(
        app_name(&apps, &token).unwrap(),
        "a",
        "a refused reload changes nothing"
    );

    let declared = declare(vec![App::new("a")]);
    let said = place.open(declared.clone()).map(drop).unwrap_err();
    assert!(said.to_string().contains("`bursar app remove a`"), "{said}");
    let mut alone = AppList::open(&place.path(), declared.clone()).unwrap();
    alone.remove("a").unwrap();
    place.open(declared).unwrap();
}

/// A request of an app may come in the moment in which it is at the door.
#[test]
fn each_table_is_announced_before_it_is_at_the_door() {
    let place = Place::new();
    let apps = Arc::new(place.open(declare(vec![App::new("a")])).unwrap());
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let (to, door) = (Arc::clone(&heard), Arc::downgrade(&apps));
    apps.announce(move |table| {
        let door = door.upgrade().unwrap().table();
        let new = table.known().iter().map(|known| known.app.name.to_string());
        to.lock()
            .extend(new.filter(|name| door.app(name).is_none()));
    });
    assert!(
        heard.lock().is_empty(),
        "the table at the door is that of the start"
    );

    apps.add(&named("b"), 1).unwrap();
    apps.redeclare(declare(vec![App::new("c")])).unwrap();
    apps.remove("b").unwrap();

    assert_eq!(*heard.lock(), ["b", "c"]);
}

#[test]
fn a_reload_puts_other_apps_in_force() {
    let place = Place::new();
    let apps = place.open(declare(vec![App::new("a")])).unwrap();
    let mut changes = apps.changes();
    let token = TokenHash::of(b"t");
    let with_token = App {
        token: Some(token),
        ..App::new("b")
    };

    apps.redeclare(declare(vec![with_token])).unwrap();

    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    let table = apps.table();
    assert_eq!(&*table.app_of(Some(b"t"), None).unwrap().name, "b");
    assert!(table.app("a").is_none());
    assert!(table.app("b").is_some());
}

#[test]
fn a_damaged_file_of_apps_is_an_error() {
    let place = Place::new();
    let apps = place.open(nothing()).unwrap();
    apps.add(&named("a"), 1).unwrap();
    let good = std::fs::read_to_string(place.file()).unwrap();
    let flipped = good.replacen("\"added_ms\": 1", "\"added_ms\": 2", 1);
    assert_ne!(flipped, good);
    for (name, text) in [
        ("empty", String::new()),
        ("cut", good[..good.len() / 2].to_owned()),
        ("a bit", flipped),
        ("later", good.replacen("\"format\": 1", "\"format\": 2", 1)),
        ("no JSON", "apps".to_owned()),
    ] {
        std::fs::write(place.file(), text).unwrap();
        let said = place.open(nothing()).map(drop).unwrap_err();
        assert!(matches!(said, AppsError::Damaged { .. }), "{name}: {said}");
        let said = AppList::open(&place.path(), nothing())
            .map(drop)
            .unwrap_err();
        assert!(
            said.to_string().contains("apps.json is damaged"),
            "{name}: {said}"
        );
    }
    std::fs::write(place.file(), good).unwrap();
    place.open(nothing()).unwrap();
}

#[test]
fn two_apps_never_have_one_token() {
    let place = Place::new();
    let token = Some(TokenHash::of(b"t"));
    let declared = declare(vec![
        App {
            token,
            ..App::new("a")
        },
        App {
            token,
            ..App::new("b")
        },
    ]);

    let said = place.open(declared).map(drop).unwrap_err();

    assert!(matches!(said, AppsError::SameToken { .. }), "{said}");
}

#[test]
fn beside_a_daemon_the_file_is_not_touched() {
    let place = Place::new();
    let directory = Directory::open(&place.path()).unwrap();
    let _daemon = directory.lock().unwrap();

    let said = AppList::open(&place.path(), nothing())
        .map(drop)
        .unwrap_err();

    assert!(
        matches!(said, AppsError::Ledger(LedgerError::Locked { .. })),
        "{said}"
    );
    assert_eq!(read(&place.path(), &nothing()).unwrap().known().len(), 0);
}
