//! What an app says of its users, and the service of a request: in the fleet's database only where `ship_people` is set.

use super::serving::{Member, is_shipped};
use super::{everything, fleet, summed};
use crate::support::origin::json;
use crate::support::wire::request;
use crate::support::{Origin, Step, chat};

/// An app that names its users and its customers.
const APP: &str =
    "\n[[app]]\nname = \"default\"\nuser_header = \"x-user\"\ntags = [\"customer\"]\n";

/// As they came; of a session the end.
const OF_PEOPLE: [&str; 5] = [
    "the-apps-own-key",
    "a-person",
    "a-customer",
    "somebody",
    "private word",
];

/// Members of lines that hold a hash of what came.
const HASHED: [&str; 2] = ["fingerprint", "session"];

/// In no journal, whatever is set.
const NOWHERE: [&str; 2] = ["a-session-of-somebody", "a secret prompt"];

/// A service that refuses a request with words, and answers the next.
async fn service() -> Origin {
    let refused = json(422, &[], r#"{"detail":"not with this private word"}"#);
    let answered = json(200, &[("X-Service-Billed", "9")], r#"{"choices":[]}"#);
    Origin::start([Step::Answer(refused), Step::Answer(answered)]).await
}

/// Both requests, with all that an app may say of its users.
async fn sends(member: &Member) {
    let headers = [
        ("idempotency-key", "the-apps-own-key"),
        ("x-user", "a-person"),
        ("x-bursar-tags", "customer=a-customer"),
        ("x-service-session", "a-session-of-somebody"),
    ];
    let body = chat("a secret prompt");
    for status in [422, 200] {
        let mut app = member.daemon().connect().await;
        app.send(request("POST", "/v1/chat/completions", &headers, &body))
            .await;
        assert_eq!(app.answer().await.status, status);
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn no_word_of_people_is_in_the_database_unless_the_machine_is_to_ship_them() {
    let postgres = fleet();
    for (number, lines) in [(1, ""), (2, "ship_people = true\n")] {
        let origin = service().await;
        let lines = format!("{lines}{APP}");
        let mut member = Member::with(&origin.url(), &postgres, number, &lines).await;
        sends(&member).await;
        is_shipped(&postgres, 2 * i64::from(number)).await;
        member.stop().await;

        let journal = std::fs::read_to_string(member.state_dir().join("journal/00000001.jsonl"))
            .expect("a journal");
        let database = everything(&postgres);
        for word in OF_PEOPLE.iter().chain(&HASHED) {
            assert!(
                journal.contains(word),
                "the test would show nothing: {word}"
            );
            assert_eq!(database.contains(word), number == 2, "{word}: {database}");
        }
        for word in NOWHERE {
            assert!(!journal.contains(word), "{word}: {journal}");
            assert!(!database.contains(word), "{word}: {database}");
        }
        assert!(database.contains("adds_micro_usd"), "{database}");
    }
    assert_eq!(summed(&postgres), (4, 18));
}
