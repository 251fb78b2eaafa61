//! Answers of many megabytes from the sandbox's own routes: pictures. Their bytes are the service's,
//! their receipt is in the ledger before their last byte is out, and if an app did not get one
//! whole, its repeat is the same purchase.

use std::io::Cursor;

use bursar::ledger::entry::{KeyOrigin, State};
use image::{ImageFormat, Rgb, RgbImage};

use crate::support::eventually;

use super::{EDITS, FORM, amounts, fault, form, head, received, send_bytes, settled, stage};

/// What seven pictures of this size cost in the sandbox.
const PRICE: u64 = 280_000;

/// A picture that no packing makes smaller.
fn noise() -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    let picture = RgbImage::from_fn(640, 640, |_, _| Rgb([next(), next(), next()]));
    let mut bytes = Cursor::new(Vec::new());
    let written = picture.write_to(&mut bytes, ImageFormat::Png);
    written.expect("a picture");
    bytes.into_inner()
}

/// Seven of them: an answer of about 12 MB.
fn edit() -> Vec<u8> {
    form(&[("prompt", "mirror"), ("n", "7")], &[("image", &noise())])
}

#[tokio::test]
async fn an_answer_of_12_mb_is_the_services_byte_for_byte_and_settled_before_its_end() {
    let (sandbox, bursar) = stage().await;
    let body = edit();
    let key = ("Idempotency-Key", "seven");
    let answer = send_bytes(&bursar, EDITS, &[FORM, key], &body).await;
    assert_eq!(bursar.entry_of(&answer).state, settled(PRICE));
    assert_eq!(answer.status, 200);
    assert!(answer.complete);
    let mb = 1024 * 1024;
    let size = answer.body.len();
    assert!((11 * mb..16 * mb).contains(&size), "{size}");

    // The service stores it, and sends it again.
    let direct = reqwest::Client::new()
        .post(format!("{}{EDITS}", sandbox.url()))
        .header("Authorization", format!("Bearer {}", crate::support::KEY))
        .header(FORM.0, FORM.1)
        .header(key.0, key.1)
        .body(body)
        .send()
        .await
        .expect("an answer");
    assert_eq!(direct.headers()["idempotent-replayed"], "true");
    let direct = direct.bytes().await.expect("a body");
    assert!(direct == answer.body, "the same bytes");
    assert_eq!(amounts(&sandbox).await, [PRICE]);
}

/// The app leaves with a part of its picture; bursar reads it to its end, and the app's next equal
/// request gets it whole under the same key.
#[tokio::test]
async fn a_picture_that_its_app_did_not_get_whole_is_bought_once() {
    let (sandbox, bursar) = stage().await;
    let body = edit();
    let mut wire = bursar.connect().await;
    wire.send(head(EDITS, &[FORM], body.len())).await;
    wire.send(&body).await;
    let begun = wire.head().await;
    assert_eq!(begun.status, 200);
    wire.bytes(1024 * 1024).await;
    drop(wire);
    let first = bursar.settled(1).await.remove(0);
    assert_eq!(first.state, settled(PRICE));

    let again = send_bytes(&bursar, EDITS, &[FORM], &body).await;
    assert!(again.complete);
    let id = first.id.0.to_string();
    assert_eq!(again.header("x-bursar-adopted"), Some(id.as_str()));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    let second = bursar.entry_of(&again);
    assert_eq!(
        second.key_origin,
        Some(KeyOrigin::Adopted { from: first.id })
    );
    assert_eq!(second.state, State::Replayed);
    assert_eq!(amounts(&sandbox).await, [PRICE]);
    assert_eq!(bursar.billed(), PRICE);

    // Now it is delivered: the same request is a purchase of its own.
    let third = send_bytes(&bursar, EDITS, &[FORM], &body).await;
    assert_eq!(third.header("x-bursar-adopted"), None);
    assert_eq!(amounts(&sandbox).await, [PRICE, PRICE]);
}

/// The service's connection breaks in the middle: the app gets a cut answer, the head had the
/// amount, and the app's repeat is the same purchase.
#[tokio::test]
async fn a_picture_that_breaks_is_a_cut_and_its_repeat_the_same_purchase() {
    let (sandbox, bursar) = stage().await;
    let body = edit();
    let cut = serde_json::json!({"cut_after_bytes": 4_000_000});
    fault(&sandbox, EDITS, cut).await;
    let broken = send_bytes(&bursar, EDITS, &[FORM], &body).await;
    assert_eq!(broken.status, 200);
    assert!(!broken.complete);
    assert_eq!(received(&sandbox, "POST", EDITS).await.len(), 1);
    eventually("the amount of the head", || async {
        (bursar.entry_of(&broken).state == settled(PRICE)).then_some(())
    })
    .await;
    bursar.gateway.idle().await;

    let again = send_bytes(&bursar, EDITS, &[FORM], &body).await;
    assert!(again.complete);
    assert!(again.header("x-bursar-adopted").is_some());
    assert_eq!(amounts(&sandbox).await, [PRICE]);
    assert_eq!(bursar.billed(), PRICE);
}
