//! Pictures from a prompt. The route is named in the interface; its shapes are OpenAI's.

use crate::support::*;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use image::{Rgba, RgbaImage};
use serde_json::{Value, json};

pub const GENERATIONS: &str = "/v1/images/generations";
pub const RED: Rgba<u8> = Rgba([220, 40, 40, 255]);
pub const NAVY: Rgba<u8> = Rgba([20, 30, 100, 255]);

/// Small, so that a debug build draws it in no time.
fn body(prompt: &str) -> Value {
    json!({"model": "auto", "prompt": prompt, "size": "64x48"})
}

/// The pictures of an answer, unpacked.
pub fn pictures(reply: &Reply) -> Vec<RgbaImage> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let entries = reply.json()["data"].clone();
    entries
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let bytes = STANDARD.decode(one["b64_json"].as_str().unwrap()).unwrap();
            assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
            image::load_from_memory(&bytes).unwrap().into_rgba8()
        })
        .collect()
}

pub fn count(image: &RgbaImage, colour: Rgba<u8>) -> usize {
    image.pixels().filter(|pixel| **pixel == colour).count()
}

// Interface, Route table: "The … /v1/images/generations … routes exist"; their shapes are not shown.
#[tokio::test]
async fn a_prompt_gives_a_png_of_the_colours_it_names() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox
        .post(
            GENERATIONS,
            &[],
            &body("two red circles on a navy background"),
        )
        .await;

    assert_eq!(reply.header("x-sandbox-assumed"), Some("images"));
    let answer = reply.json();
    assert!(answer["created"].as_i64().unwrap() > 1_700_000_000);
    assert_eq!(
        answer["data"][0]["revised_prompt"],
        "“two red circles on a navy background” on a gradient from red to navy"
    );
    let image = &pictures(&reply)[0];
    assert_eq!(image.dimensions(), (64, 48));
    let corners = [(0, 0), (63, 47), (63, 0), (0, 47)].map(|(x, y)| *image.get_pixel(x, y));
    assert!(
        corners.contains(&RED) && corners.contains(&NAVY),
        "{corners:?}"
    );
}

#[tokio::test]
async fn n_pictures_differ_and_the_same_prompt_gives_the_same_ones() {
    let sandbox = Sandbox::start().await;
    let ask = with(body("five red stars"), "n", json!(3));

    let first = pictures(&sandbox.post(GENERATIONS, &[], &ask).await);
    let again = pictures(&sandbox.post(GENERATIONS, &[], &ask).await);
    let other = pictures(
        &sandbox
            .post(GENERATIONS, &[], &with(ask, "user", json!("ann")))
            .await,
    );

    assert_eq!(first.len(), 3);
    assert!(first[0] != first[1] && first[1] != first[2]);
    assert!(first == again);
    assert!(first != other);
}

#[tokio::test]
async fn a_picture_is_1024_each_way_unless_asked_otherwise() {
    let sandbox = Sandbox::start().await;
    let ask = json!({"prompt": "a red circle"});

    let usual = sandbox.post(GENERATIONS, &[], &ask).await;
    let auto = sandbox
        .post(GENERATIONS, &[], &with(ask, "size", json!("auto")))
        .await;

    assert_eq!(pictures(&usual)[0].dimensions(), (1_024, 1_024));
    assert!(pictures(&usual) == pictures(&auto));
    assert_eq!(usual.billed(), 40_000);
}

// Interface, Errors 422: validation failure.
#[tokio::test]
async fn what_is_wrong_with_a_request_is_named() {
    let sandbox = Sandbox::start().await;
    let good = || body("a star");
    let rows = [
        (with(good(), "prompt", Value::Null), 422, "prompt"),
        (with(good(), "prompt", json!(7)), 422, "prompt"),
        (body(" "), 422, "prompt"),
        (body(&"x".repeat(4_001)), 422, "4000"),
        (with(good(), "model", json!(7)), 422, "model"),
        (with(good(), "n", json!(0)), 422, "n must"),
        (with(good(), "n", json!(11)), 422, "n must"),
        (with(good(), "n", json!("2")), 422, "n must"),
        (with(good(), "size", json!("big")), 422, "size"),
        (with(good(), "size", json!("8x8")), 422, "size"),
        (with(good(), "size", json!("4096x64")), 422, "size"),
        (with(good(), "size", json!("+64x64")), 422, "size"),
        (with(good(), "size", json!(64)), 422, "size"),
        (with(good(), "user", json!(1)), 422, "user"),
        (with(good(), "user", json!("u".repeat(257))), 422, "user"),
        (
            with(good(), "response_format", json!("xml")),
            422,
            "response_format",
        ),
        (
            with(good(), "response_format", json!("url")),
            400,
            "b64_json",
        ),
        (
            with(good(), "output_format", json!("webp")),
            422,
            "output_format",
        ),
        (with(good(), "stream", json!(true)), 422, "stream"),
        (
            with(with(good(), "size", json!("2048x2048")), "n", json!(5)),
            422,
            "pixels in all",
        ),
        (json!("a star"), 422, "object"),
    ];
    for (ask, status, named) in rows {
        let reply = sandbox.post(GENERATIONS, &[], &ask).await;
        let shown: String = ask.to_string().chars().take(80).collect();
        assert_eq!(reply.status, status, "{shown}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(named), "{shown}: {detail}");
    }
    // Interface, Errors 400: malformed JSON.
    let broken = sandbox
        .send("POST", GENERATIONS, &[], Some(b"{".to_vec()))
        .await;
    assert_eq!(broken.status, 400);
    assert_eq!(sandbox.debits().await, [] as [i64; 0]);
}

// Interface, Metering rules: "Inference is debited against the organization balance."
#[tokio::test]
async fn each_picture_is_billed_and_the_receipt_says_what_was_debited() {
    let sandbox = Sandbox::start().await;

    let three = sandbox
        .post(GENERATIONS, &[], &with(body("a star"), "n", json!(3)))
        .await;
    let large = sandbox
        .post(
            GENERATIONS,
            &[],
            &with(body("a star"), "size", json!("2048x513")),
        )
        .await;

    assert_eq!((three.billed(), large.billed()), (120_000, 80_000));
    assert_eq!(sandbox.debits().await, [120_000, 80_000]);
}

// Interface, Errors 402: "organization balance empty (inference, …)".
#[tokio::test]
async fn an_empty_balance_is_402_and_a_replay_succeeds_with_it() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];
    let first = sandbox.post(GENERATIONS, &key, &body("a star")).await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    let new = sandbox.post(GENERATIONS, &[], &body("a star")).await;
    let replay = sandbox.post(GENERATIONS, &key, &body("a star")).await;

    assert_eq!(new.status, 402);
    assert_eq!(replay.status, 200);
    assert!(replay.body == first.body);
    assert_eq!(sandbox.debits().await, [40_000]);
}

// Interface, Idempotency-Key: "Same key, same endpoint and body, within 24 h | stored response replayed".
#[tokio::test]
async fn a_picture_is_stored_and_replayed_unbilled_for_24_hours() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];

    let first = sandbox.post(GENERATIONS, &key, &body("a star")).await;
    let again = sandbox.post(GENERATIONS, &key, &body("a star")).await;
    sandbox
        .control("clock", json!({"advance_s": 24 * 60 * 60 + 1}))
        .await;
    let next_day = sandbox.post(GENERATIONS, &key, &body("a star")).await;

    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.billed(), 0);
    assert!(again.body == first.body);
    assert_eq!(again.header("x-sandbox-assumed"), Some("images"));
    assert_eq!(next_day.header("idempotent-replayed"), None);
    assert_eq!(sandbox.debits().await, [40_000, 40_000]);
}

// Interface, Idempotency-Key: "Same key, different body or endpoint, within 24 h | 422".
#[tokio::test]
async fn a_key_used_with_another_body_or_endpoint_is_422() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];
    sandbox.post(GENERATIONS, &key, &body("a star")).await;

    let body_differs = sandbox.post(GENERATIONS, &key, &body("a moon")).await;
    let elsewhere = sandbox
        .post(
            "/v1/embeddings",
            &key,
            &json!({"model": "auto", "input": "x"}),
        )
        .await;

    assert_eq!((body_differs.status, elsewhere.status), (422, 422));
    assert!(!body_differs.text().contains("star"));
    assert_eq!(sandbox.debits().await, [40_000]);
}

// Interface, Idempotency-Key: "Same key while the first is running | duplicate waits …".
#[tokio::test]
async fn a_duplicate_waits_for_the_first_and_gets_its_answer() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];
    sandbox.fault(json!({"hold": "first"})).await;
    let ask = body("a star");

    let (first, second, ()) = tokio::join!(
        sandbox.post(GENERATIONS, &key, &ask),
        sandbox.post(GENERATIONS, &key, &ask),
        async {
            sandbox.until_in_flight(2).await;
            sandbox.control("release", json!({"hold": "first"})).await;
        }
    );

    assert!(first.body == second.body);
    let replayed = [&first, &second].map(|reply| reply.header("idempotent-replayed").is_some());
    assert_ne!(replayed[0], replayed[1]);
    assert_eq!(sandbox.debits().await, [40_000]);
}

// Interface, Idempotency-Key: "First request failed (non-2xx) | nothing stored; retry … runs again".
#[tokio::test]
async fn a_failed_request_leaves_its_key_free_and_nothing_billed() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];
    sandbox.fault(json!({"status": 503})).await;

    let failed = sandbox.post(GENERATIONS, &key, &body("a star")).await;
    let refused = sandbox
        .post(GENERATIONS, &key, &with(body("a star"), "n", json!(0)))
        .await;
    let retry = sandbox.post(GENERATIONS, &key, &body("a star")).await;

    assert_eq!(
        (failed.status, refused.status, retry.status),
        (503, 422, 200)
    );
    assert_eq!(retry.header("idempotent-replayed"), None);
    assert_eq!(sandbox.debits().await, [40_000]);
}

// Interface, Limits: "concurrency | 8 requests in flight | inference"; "rate | 120 requests per minute".
#[tokio::test]
async fn the_ceilings_on_inference_hold_here() {
    let sandbox = Sandbox::start().await;
    sandbox.control("limits", json!({"in_flight": 0})).await;

    let full = sandbox.post(GENERATIONS, &[], &body("a star")).await;
    sandbox
        .control("limits", json!({"in_flight": 8, "per_minute": 1}))
        .await;
    let first = sandbox.post(GENERATIONS, &[], &body("a star")).await;
    let second = sandbox.post(GENERATIONS, &[], &body("a star")).await;

    assert_eq!((full.status, full.header("retry-after")), (429, Some("5")));
    assert_eq!(first.status, 200);
    assert_eq!(
        (second.status, second.header("retry-after")),
        (429, Some("15"))
    );
}

// Interface, Authentication: "A missing or invalid key returns 401."
#[tokio::test]
async fn a_wrong_key_draws_nothing() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox
        .post(
            GENERATIONS,
            &[("Authorization", "Bearer wrong")],
            &body("a star"),
        )
        .await;

    assert_eq!(reply.status, 401);
    assert_eq!(sandbox.debits().await, [] as [i64; 0]);
}
