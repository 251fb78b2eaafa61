//! Pictures changed by a prompt: multipart bodies, masks, and what is kept of large answers.

use crate::{
    images::{GENERATIONS, NAVY, RED, count, pictures},
    support::*,
};
use image::{ImageFormat, Rgba, RgbaImage};
use serde_json::json;
use std::io::Cursor;

const EDITS: &str = "/v1/images/edits";
const FORM: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=edge");
const BLUE: Rgba<u8> = Rgba([40, 90, 220, 255]);

enum Part<'a> {
    Text(&'a str, &'a str),
    File(&'a str, &'a [u8]),
}
use Part::{File, Text};

fn form(parts: &[Part<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for part in parts {
        body.extend_from_slice(b"--edge\r\n");
        let (head, value) = match part {
            Text(name, value) => (
                format!("Content-Disposition: form-data; name=\"{name}\"\r\n\r\n"),
                value.as_bytes(),
            ),
            File(name, bytes) => (
                format!(
                    "Content-Disposition: form-data; name=\"{name}\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n"
                ),
                *bytes,
            ),
        };
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--edge--\r\n");
    body
}

fn png(image: &RgbaImage) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Left half red, right half navy.
fn halves() -> RgbaImage {
    RgbaImage::from_fn(64, 32, |x, _| if x < 32 { RED } else { NAVY })
}

/// Opaque on the left, open on the right.
fn mask() -> RgbaImage {
    RgbaImage::from_fn(64, 32, |x, _| Rgba([0, 0, 0, if x < 32 { 255 } else { 0 }]))
}

async fn edit(sandbox: &Sandbox, headers: &[(&str, &str)], parts: &[Part<'_>]) -> Reply {
    let headers: Vec<_> = headers.iter().copied().chain([FORM]).collect();
    sandbox.post_typed(EDITS, &headers, form(parts)).await
}

// Interface, Route table: "The … /v1/images/edits routes exist"; their shapes are not shown.
#[tokio::test]
async fn a_prompt_changes_the_picture_that_came() {
    let sandbox = Sandbox::start().await;
    let image = png(&halves());
    let parts = [
        File("image", &image),
        Text("prompt", "change the red to blue"),
    ];

    let reply = edit(&sandbox, &[], &parts).await;

    assert_eq!(reply.header("x-sandbox-assumed"), Some("images"));
    assert_eq!(
        reply.json()["data"][0]["revised_prompt"],
        "change red to blue"
    );
    let after = &pictures(&reply)[0];
    assert_eq!(after.dimensions(), (64, 32));
    assert_eq!(count(after, BLUE), 32 * 32);
    assert_eq!(count(after, NAVY), 32 * 32);
}

#[tokio::test]
async fn nothing_changes_where_the_mask_is_opaque() {
    let sandbox = Sandbox::start().await;
    let (image, mask) = (png(&halves()), png(&mask()));

    for prompt in [
        "invert",
        "draw a big yellow circle",
        "blur and rotate by 90",
        "peace",
    ] {
        let parts = [
            File("image", &image),
            File("mask", &mask),
            Text("prompt", prompt),
        ];
        let after = pictures(&edit(&sandbox, &[], &parts).await).remove(0);
        let left_as_it_was = after
            .enumerate_pixels()
            .all(|(x, _, pixel)| x >= 32 || *pixel == RED);
        assert!(left_as_it_was, "{prompt}");
        assert!(count(&after, NAVY) < 32 * 32, "{prompt}");
    }
}

#[tokio::test]
async fn n_and_size_are_honored_and_the_field_may_be_named_as_a_list() {
    let sandbox = Sandbox::start().await;
    let image = png(&halves());
    let parts = [
        File("image[]", &image),
        Text("prompt", "add three blue stars"),
        Text("n", "2"),
        Text("size", "128x64"),
        Text("model", "auto"),
        Text("unknown", "ignored"),
    ];

    let reply = edit(&sandbox, &[], &parts).await;

    let made = pictures(&reply);
    assert_eq!(made.len(), 2);
    assert_eq!(made[0].dimensions(), (128, 64));
    assert_ne!(made[0], made[1]);
    assert_eq!(reply.billed(), 80_000);
    assert_eq!(sandbox.debits().await, [80_000]);
}

// Interface, Errors 400: "request validation failed".
#[tokio::test]
async fn a_file_that_is_no_fitting_png_is_400() {
    let sandbox = Sandbox::start().await;
    let good = png(&halves());
    let small = png(&RgbaImage::new(15, 64));
    let wide = png(&RgbaImage::new(2_049, 16));
    let other = png(&RgbaImage::new(64, 64));
    let closed = png(&halves());
    let cut = &good[..good.len() / 2];
    type Row<'a> = (&'a [u8], Option<&'a [u8]>, &'a str);
    let rows: [Row<'_>; 8] = [
        (b"GIF89a", None, "image is not"),
        (b"", None, "image is not"),
        (cut, None, "image is not"),
        (&small, None, "image must be"),
        (&wide, None, "image must be"),
        (&good, Some(b"no"), "mask is not"),
        (&good, Some(&other), "mask must have the size"),
        (&good, Some(&closed), "no transparent area"),
    ];
    for (image, mask, named) in rows {
        let mut parts = vec![File("image", image), Text("prompt", "invert")];
        parts.extend(mask.map(|mask| File("mask", mask)));
        let reply = edit(&sandbox, &[], &parts).await;
        assert_eq!(reply.status, 400, "{named}: {}", reply.text());
        assert!(reply.text().contains(named), "{named}: {}", reply.text());
    }
    assert_eq!(sandbox.debits().await, [] as [i64; 0]);
}

// Interface, Errors 422: validation failure.
#[tokio::test]
async fn a_part_that_is_missing_or_wrong_is_named() {
    let sandbox = Sandbox::start().await;
    let image = png(&halves());
    let file = || File("image", &image);
    let prompt = || Text("prompt", "invert");
    let rows = [
        (vec![prompt()], "image is required"),
        (vec![file()], "prompt is required"),
        (vec![file(), Text("prompt", " ")], "prompt is empty"),
        (vec![file(), file(), prompt()], "image came more than once"),
        (
            vec![file(), File("prompt", b"\xff\xfe")],
            "prompt must be UTF-8",
        ),
        (vec![file(), prompt(), Text("n", "11")], "n must"),
        (vec![file(), prompt(), Text("n", "two")], "n must"),
        (vec![file(), prompt(), Text("size", "64")], "size must"),
        (
            vec![file(), prompt(), Text("response_format", "x")],
            "response_format",
        ),
        (vec![file(), prompt(), Text("stream", "true")], "stream"),
        (
            vec![file(), prompt(), Text("size", "2048x2048"), Text("n", "5")],
            "pixels in all",
        ),
    ];
    for (parts, named) in rows {
        let reply = edit(&sandbox, &[], &parts).await;
        assert_eq!(reply.status, 422, "{named}: {}", reply.text());
        assert!(reply.text().contains(named), "{named}: {}", reply.text());
    }
    assert_eq!(sandbox.debits().await, [] as [i64; 0]);
}

// Interface, Errors 400: "request validation failed".
#[tokio::test]
async fn a_body_that_is_no_whole_form_is_400() {
    let sandbox = Sandbox::start().await;
    let image = png(&halves());
    let mut broken = form(&[File("image", &image), Text("prompt", "invert")]);
    broken.truncate(broken.len() - 10);
    let many: Vec<_> = (0..65).map(|_| Text("x", "y")).collect();

    for (kind, body) in [
        ("multipart/form-data; boundary=edge", broken),
        ("multipart/form-data", form(&[])),
        ("application/json", b"{}".to_vec()),
        ("multipart/form-data; boundary=edge", form(&many)),
    ] {
        let reply = sandbox
            .post_typed(EDITS, &[("Content-Type", kind)], body)
            .await;
        assert_eq!(reply.status, 400, "{kind}: {}", reply.text());
    }
}

// Interface, Idempotency-Key: "It is honored on … /v1/images/edits"; every client writes a boundary of its own
// at every sending, so a multipart body counts by its parts.
#[tokio::test]
async fn equal_parts_with_another_boundary_are_replayed() {
    let sandbox = Sandbox::start().await;
    let image = png(&halves());
    let body = form(&[File("image", &image), Text("prompt", "invert")]);
    let text = String::from_utf8_lossy(&body).into_owned();
    assert_eq!(text.matches("--edge").count(), 3);
    let bounded = |boundary: &str| {
        let mark = boundary.as_bytes();
        let mut other: Vec<u8> = Vec::new();
        let mut rest = body.as_slice();
        while let Some(at) = rest.windows(6).position(|six| six == b"--edge") {
            other.extend_from_slice(&rest[..at]);
            other.extend_from_slice(b"--");
            other.extend_from_slice(mark);
            rest = &rest[at + 6..];
        }
        other.extend_from_slice(rest);
        other
    };
    let mut seen = Vec::new();
    for boundary in ["one", "another"] {
        let kind = format!("multipart/form-data; boundary={boundary}");
        let headers = [("Content-Type", kind.as_str()), ("Idempotency-Key", "k")];
        seen.push(
            sandbox
                .send("POST", EDITS, &headers, Some(bounded(boundary)))
                .await,
        );
    }

    assert_eq!(
        (seen[0].status, seen[1].status),
        (200, 200),
        "{}",
        seen[1].text()
    );
    assert_eq!(seen[1].header("idempotent-replayed"), Some("true"));
    assert!(seen[1].body == seen[0].body);
    assert_eq!(sandbox.debits().await, [40_000]);
}

// Interface, Idempotency-Key: "It is honored on … /v1/images/edits".
#[tokio::test]
async fn equal_bytes_are_replayed_and_other_bytes_are_422() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];
    let image = png(&halves());
    let inverted = [File("image", &image), Text("prompt", "invert")];
    let blurred = [File("image", &image), Text("prompt", "blur it")];

    let first = edit(&sandbox, &key, &inverted).await;
    let again = edit(&sandbox, &key, &inverted).await;
    let other = edit(&sandbox, &key, &blurred).await;
    let elsewhere = sandbox
        .post(GENERATIONS, &key, &json!({"prompt": "invert"}))
        .await;

    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.billed(), 0);
    assert!(again.body == first.body);
    assert_eq!((other.status, elsewhere.status), (422, 422));
    assert_eq!(sandbox.debits().await, [40_000]);
}

/// A picture that no packing makes smaller.
fn noise(width: u32, height: u32) -> RgbaImage {
    let mut state = 1_u32;
    RgbaImage::from_fn(width, height, |_, _| {
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state.to_le_bytes()[1]
        };
        Rgba([next(), next(), next(), 255])
    })
}

// Interface, Limits: "stored response size | 1 MB (16 MB on image routes)".
#[tokio::test]
async fn an_answer_over_1_mb_is_kept_and_one_over_16_mb_is_not_and_is_billed_once() {
    let sandbox = Sandbox::start().await;
    let image = png(&noise(640, 640));
    let ask = |n| {
        [
            File("image", &image),
            Text("prompt", "mirror"),
            Text("n", n),
        ]
    };

    let key = [("Idempotency-Key", "one")];
    let kept = edit(&sandbox, &key, &ask("1")).await;
    let replayed = edit(&sandbox, &key, &ask("1")).await;
    let key = [("Idempotency-Key", "ten")];
    let large = edit(&sandbox, &key, &ask("10")).await;
    let runs_again = edit(&sandbox, &key, &ask("10")).await;
    let other = edit(&sandbox, &key, &ask("1")).await;

    let (mb, max) = (1024 * 1024, 16 * 1024 * 1024);
    assert!(kept.body.len() > mb && kept.body.len() < max);
    assert_eq!(replayed.header("idempotent-replayed"), Some("true"));
    assert!(large.body.len() > max, "{}", large.body.len());
    assert_eq!(runs_again.header("idempotent-replayed"), None);
    assert_eq!((runs_again.status, runs_again.billed()), (200, 0));
    // All but the time of creation.
    assert!(runs_again.body.ends_with(&large.body[64..]));
    assert_eq!(other.status, 422);
    assert_eq!(sandbox.debits().await, [40_000, 400_000]);
}

// Interface, Errors 402, and Limits, concurrency.
#[tokio::test]
async fn balance_and_ceilings_hold_here() {
    let sandbox = Sandbox::start().await;
    let image = png(&halves());
    let parts = [File("image", &image), Text("prompt", "invert")];
    sandbox.control("limits", json!({"in_flight": 0})).await;
    let full = edit(&sandbox, &[], &parts).await;
    sandbox.control("limits", json!({"in_flight": 8})).await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    let empty = edit(&sandbox, &[], &parts).await;

    assert_eq!((full.status, full.header("retry-after")), (429, Some("5")));
    assert_eq!(empty.status, 402);
    assert_eq!(sandbox.debits().await, [] as [i64; 0]);
}
