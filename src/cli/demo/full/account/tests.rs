//! Against a real service and a real ledger: calls through bursar, calls behind its back, and prices
//! that are not those of the books.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use serde_json::json;

use super::*;
use crate::cli::client::{Answer, Client};
use crate::cli::demo::args::Args;
use crate::cli::demo::files::Folder;
use crate::cli::demo::world::{DEMO_KEY, World};
use crate::config::ListenAddr;

/// The service, bursar before it, and a client of each.
struct Desk {
    world: World,
    door: Client,
    /// With the key, as somebody has it who does not go through bursar.
    direct: Client,
    _folder: Folder,
}

impl Desk {
    async fn open() -> Self {
        let folder = Folder::new().expect("a directory");
        let args = Args {
            once: true,
            compare: false,
            full: true,
            json: false,
            listen: None,
            seed: 1,
        };
        let world = World::start(&args, &folder).await.expect("it starts");
        let key = HeaderValue::from_str(&format!("Bearer {DEMO_KEY}")).expect("a header");
        Self {
            door: Client::new(ListenAddr::Tcp(world.places.door)),
            direct: Client::new(ListenAddr::Tcp(world.places.service))
                .with_header(AUTHORIZATION, key),
            world,
            _folder: folder,
        }
    }

    async fn account(&self) -> Account {
        let service = self.world.service();
        let account = Account::when_at_rest(&self.world.journal, &service).await;
        account.expect("both sides are read")
    }

    async fn embed(&self, text: &str) {
        let body = json!({"model": "auto", "input": text});
        done(post(&self.door, "/v1/embeddings", &body).await).await;
    }

    /// The next answers about these texts tell these prices.
    async fn lie(&self, lies: &[(&str, &str)]) {
        let rules = lies.iter().map(|(text, billed)| {
            json!({"match": {"body_contains": text}, "fault": {"receipt": {"billed": billed}}})
        });
        let rules = Value::Array(rules.collect());
        let service = self.world.service();
        service.set_faults(&rules).await.expect("rules");
    }
}

async fn post(client: &Client, path: &str, body: &Value) -> Answer {
    let answer = client.post_json(path, body.to_string()).await;
    answer.expect("an answer")
}

async fn done(answer: Answer) -> HeaderMap {
    let (status, headers) = (answer.status, answer.headers.clone());
    let text = answer.text(1 << 24).await.expect("a body");
    assert!(status.is_success(), "{status}: {text}");
    headers
}

fn hello() -> Value {
    json!({"model": "auto", "messages": [{"role": "user", "content": "hello"}]})
}

const CHAT: &str = "/v1/chat/completions";
const SPEECH: &str = "/v1/audio/speech";

#[tokio::test]
async fn what_was_told_agrees_and_what_was_not_is_the_difference() {
    let mut desk = Desk::open().await;
    done(post(&desk.door, CHAT, &hello()).await).await;
    done(post(&desk.door, SPEECH, &json!({"text": "hello"})).await).await;

    let account = desk.account().await;

    assert_eq!(account.wrong(), Vec::<String>::new());
    let total = account.total();
    let figure = |name: &str| total[name].as_i64().expect("a number");
    assert_eq!((figure("requests"), figure("unreported")), (2, 1));
    assert!(figure("ledger_micro_usd") > 0 && figure("unreported_audio_ms") > 0);
    assert!(figure("unreported_books_micro_usd") > 0, "{total}");
    assert_eq!(
        figure("difference_micro_usd"),
        -figure("unreported_books_micro_usd")
    );
    let rows = account.operations();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["operation"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["chat", "speech"]);
    assert_eq!(rows[0]["difference_micro_usd"], 0);
    desk.world.stop().await;
}

/// A debit of an operation that has entries without a price could pass for one of theirs.
#[tokio::test]
async fn a_debit_behind_bursars_back_is_named() {
    for (path, body) in [(CHAT, hello()), (SPEECH, json!({"text": "hello"}))] {
        let mut desk = Desk::open().await;
        done(post(&desk.door, path, &body).await).await;
        assert_eq!(desk.account().await.wrong(), Vec::<String>::new());
        let secret = done(post(&desk.direct, path, &body).await).await;

        let wrong = desk.account().await.wrong();

        let request = secret["x-request-id"].to_str().expect("text");
        assert!(
            wrong[0].contains(path) && wrong[0].contains(request),
            "{wrong:?}"
        );
        assert!(wrong[0].ends_with("and the ledger no entry"), "{wrong:?}");
        assert_eq!(wrong.len(), 2, "its operation does not add up: {wrong:?}");
        desk.world.stop().await;
    }
}

#[tokio::test]
async fn prices_that_are_wrong_are_seen_also_where_their_sum_is_right() {
    let mut desk = Desk::open().await;
    // Each costs 1.
    desk.lie(&[("river", "2"), ("bridge", "0")]).await;
    desk.embed("a river").await;
    desk.embed("a bridge").await;
    desk.embed("a lamp").await;

    let account = desk.account().await;

    assert_eq!(account.total()["difference_micro_usd"], 0);
    let wrong = account.wrong();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    for (known, debited) in [("$0.000002", "$0.000001"), ("$0.000000", "$0.000001")] {
        let sides = format!("the ledger has {known}, the books have {debited}");
        assert!(
            wrong
                .iter()
                .any(|one| one.starts_with("under key ") && one.ends_with(&sides)),
            "{wrong:?}"
        );
    }
    desk.world.stop().await;
}

#[tokio::test]
async fn what_is_in_doubt_is_no_agreement() {
    let mut desk = Desk::open().await;
    let service = desk.world.service();
    let cut = json!({"times": 0, "fault": {"cut_before_head": true}});
    service.set_faults(&cut).await.expect("a rule");
    let answer = post(&desk.door, SPEECH, &json!({"text": "hello"})).await;
    assert!(answer.status.is_server_error(), "{}", answer.status);

    let wrong = desk.account().await.wrong();

    assert!(wrong.contains(&"1 in doubt".to_owned()), "{wrong:?}");
    desk.world.stop().await;
}
