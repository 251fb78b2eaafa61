use super::*;

const KEY: &str = "sk-org-0123456789abcdef";

fn key() -> ApiKey {
    ApiKey::from_text(KEY.as_bytes()).unwrap()
}

fn private(body: &str) -> Private {
    Private {
        body: Bytes::from(body.to_owned()),
        parts: vec![HeaderValue::from_static(
            "Bearer bursar-of-an-operators-own-making",
        )],
        query: Some("q=what+was+asked+for".to_owned()),
    }
}

async fn said(words: &str, body: &str) -> Option<String> {
    let answer = serde_json::json!({ "detail": words }).to_string();
    service_detail(&key(), &Bytes::from(answer), private(body)).await
}

#[tokio::test]
async fn a_quotation_holds_no_secret_and_nothing_of_the_request() {
    let token = format!("bursar_{}", "0a1b2c3d".repeat(9));
    let table = [
        ("engine fell over".to_owned(), "engine fell over"),
        (format!("key {KEY} is bad"), "key … is bad"),
        (
            "key sk-org-\\u00301\\u0032345\\u0036789abcdef!".to_owned(),
            "key …!",
        ),
        // Masked, cut short, cut off, shouted.
        ("key sk-org-0123456789***".to_owned(), "key …***"),
        ("key ***org-0123456789abcdef.".to_owned(), "key ***…."),
        ("key sk-org-0123456789abc".to_owned(), "key …"),
        (format!("key {}!", KEY.to_uppercase()), "key …!"),
        (format!("token {token}, {token}x"), "token …, …x"),
        (
            "token bursar_ and bursar_z".to_owned(),
            "token bursar_ and bursar_z",
        ),
        ("own bursar-of-an-operators-own-making".to_owned(), "own…"),
        ("not ?q=what+was+asked+for".to_owned(), "not ?…"),
        ("input: The prompt as it was.".to_owned(), "input: …."),
        (
            "two\nlines \u{1b}[2J \u{202e}x".to_owned(),
            "two\\nlines \\u{1b}[2J \\u{202e}x",
        ),
    ];
    for (words, wanted) in &table {
        let left = said(words, r#"{"content":"the prompt as it was"}"#).await;
        assert_eq!(left.as_deref(), Some(*wanted), "{words}");
    }
    assert_eq!(said("", "").await, None);
}

/// Any header may hold a secret of the app's.
#[tokio::test]
async fn a_quotation_holds_nothing_of_the_requests_head_but_what_every_program_writes() {
    let mut sent = RequestHeader::build("POST", b"/v1/x", None).unwrap();
    let mut asked = HeaderMap::new();
    let headers = [
        ("x-vault-token", "hvs.CAESIJ-of-an-app", "…"),
        ("idempotency-key", "an-apps-own-key-of-an-order", "…"),
        (
            "content-type",
            "application/merge-patch+json",
            "application/merge-patch+json",
        ),
        ("user-agent", "OpenAI/Python 1.99.9", "OpenAI/Python 1.99.9"),
    ];
    for (name, value, _) in headers {
        sent.insert_header(name, value).unwrap();
    }
    asked.insert(
        AUTHORIZATION,
        HeaderValue::from_static("Bearer apps-token-of-34-letters"),
    );
    for (name, value, wanted) in headers
        .into_iter()
        .chain([("", "apps-token-of-34-letters", "…")])
    {
        let answer = serde_json::json!({ "detail": format!("no({value})") }).to_string();
        let private = Private::of(&sent, &Bytes::new(), &asked);
        let left = service_detail(&key(), &Bytes::from(answer), private).await;
        assert_eq!(left, Some(format!("no({wanted})")), "{name}");
    }
}

#[tokio::test]
async fn a_quotation_has_256_characters_at_most_and_no_piece_of_the_key() {
    for at in (0..300).chain(4096 - 600..4200).chain(8192 - 30..8200) {
        let words = format!("{}{KEY}{}", "ä".repeat(at / 2), "-".repeat(at % 2 + 9000));
        let left = said(&words, "").await.unwrap();
        assert!(left.chars().count() <= DETAIL_CHARS_MAX, "{left}");
        assert!(!left.contains("sk-"), "behind {at}: {left}");
    }
    // Where all of the beginning is struck out, what comes behind it moves up.
    for count in 300..420 {
        let left = said(&KEY.repeat(count), "").await.unwrap();
        assert_eq!(left, "…", "{count} times");
    }
    let control = said(&"\u{1}".repeat(4096), "").await.unwrap();
    assert!(control.chars().count() <= DETAIL_CHARS_MAX, "{control}");
}

#[tokio::test]
async fn a_large_request_and_a_large_answer_are_compared_as_well() {
    let prompt = "a prompt of 29 characters, all";
    let body = format!("{}{prompt}{}", "x".repeat(30 << 20), "y".repeat(1000));
    let words = format!("no: {prompt}{}", "!".repeat(1 << 20));
    let left = said(&words, &body).await.unwrap();
    assert!(left.starts_with("no: …!!"), "{left}");
}

#[test]
fn a_part_of_a_request_is_one_short_line_without_a_secret() {
    let token = format!("bursar_{}", "0a1b2c3d".repeat(9));
    let table = [
        (b"evil.example:80".to_vec(), "evil.example:80"),
        (format!("/{KEY}/v1").into_bytes(), "/…/v1"),
        (format!("/{token}/v1").into_bytes(), "/…/v1"),
        (b"a\nb\xff".to_vec(), "a\\nb\u{fffd}"),
    ];
    for (text, wanted) in table {
        assert_eq!(part(&key(), &text), wanted);
    }
    let long = part(&key(), "x".repeat(60_000).as_bytes());
    assert_eq!(long.chars().count(), PART_CHARS_MAX);
}
