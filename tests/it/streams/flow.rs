//! What flows at once, and what waits for the receipt.

use super::{CHAT, DONE, EVENT, RECEIPT, begin, open, pieces, read_exactly, settled, whole};
use crate::support::origin::{chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat, eventually};

#[tokio::test]
async fn each_chunk_arrives_before_the_next_is_sent() {
    for path in [CHAT, "/agent/v1/chat/completions"] {
        let events: Vec<String> = (0..20)
            .map(|n| format!("data: {{\"n\":{n}}}\n\n"))
            .collect();
        let mut parts: Vec<Vec<u8>> = events.iter().map(|event| chunk(event)).collect();
        parts[0] = [stream_head(), chunk(&events[0])].concat();
        parts.push([chunk(RECEIPT), chunk(DONE), last_chunk()].concat());
        let origin = Origin::start([pieces(&parts)]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut wire = bursar.connect().await;
        wire.send(request(
            "POST",
            path,
            &[],
            &crate::support::chat_stream("hi"),
        ))
        .await;
        origin.go();
        let mut answer = wire.head().await;
        assert_eq!(
            answer.header("content-type"),
            Some("text/event-stream"),
            "{path}"
        );
        let mut wanted = String::new();
        for event in &events {
            wanted.push_str(event);
            read_exactly(path, &mut wire, &mut answer, &wanted).await;
            origin.go();
        }
        wanted.push_str(RECEIPT);
        wanted.push_str(DONE);
        read_exactly(path, &mut wire, &mut answer, &wanted).await;
        // Rule I2: when an app has `[DONE]`, the receipt is on the disk.
        assert_eq!(bursar.entries()[0].state, settled(7), "{path}");
        let end = wire.chunk(&mut answer).await;
        assert_eq!(end, Some(Vec::new()), "{path}: a clean end");
    }
}

/// One read of the service's connection may hold tens of chunks: they cost the app's connection a few writes.
#[tokio::test]
async fn chunks_that_came_together_go_out_together() {
    let events: Vec<String> = (0..100)
        .map(|n| format!("data: {{\"n\":{n}}}\n\n"))
        .collect();
    let mut parts: Vec<&str> = events.iter().map(String::as_str).collect();
    parts.extend([RECEIPT, DONE]);
    let origin = Origin::start([Step::Answer(whole(&parts))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = begin(&bursar).await;
    let mut answer = wire.head().await;
    let mut count = 0;
    loop {
        let piece = wire.chunk(&mut answer).await.expect("a clean end");
        if piece.is_empty() {
            break;
        }
        count += 1;
        answer.body.extend_from_slice(&piece);
    }
    assert_eq!(answer.text(), parts.concat());
    assert!(count < 20, "{count} chunks");
    assert_eq!(bursar.entries()[0].state, settled(7));
}

/// Wherever the end mark is cut in two, the bytes before it flow and the mark does not.
#[tokio::test]
async fn only_what_may_begin_the_end_mark_is_held() {
    for mark in ["data: [DONE]", "data:[DONE]"] {
        let origin = Origin::start([]).await;
        let bursar = Bursar::before(&origin.url()).await;
        for at in 1..mark.len() {
            let name = format!("{mark:?} cut at {at}");
            let (begun, rest) = mark.split_at(at);
            let first = format!("{EVENT}{RECEIPT}{begun}");
            let rest = format!("{rest}\n\n");
            origin.push(pieces(&[
                open(&[&first]),
                [chunk(&rest), last_chunk()].concat(),
            ]));
            let before = bursar.entries().len();
            let mut wire = begin(&bursar).await;
            origin.go();
            let mut answer = wire.head().await;
            let flows = format!("{EVENT}{RECEIPT}");
            read_exactly(&name, &mut wire, &mut answer, &flows).await;
            let open_entry = &bursar.entries()[before];
            assert!(open_entry.ended_ms.is_none(), "{name}: not settled yet");
            origin.go();
            read_exactly(&name, &mut wire, &mut answer, &format!("{flows}{mark}\n\n")).await;
            assert_eq!(
                bursar.entries()[before].state,
                settled(7),
                "{name}: settled before [DONE]"
            );
        }
    }
}

/// Bytes that begin like the end mark and turn out not to be one flow at once.
#[tokio::test]
async fn what_only_looks_like_the_end_mark_flows() {
    let rows = [
        ("another word", "data: [DO", "G]\n\n"),
        ("lower case", "data: [", "done]\n\n"),
        ("two spaces", "data: ", " [DONE]\n\n"),
        ("indented", " data: [DONE", "]\n\n"),
        ("a comment", ": data: [DONE", "]\n\n"),
        ("inside JSON", "data: {\"c\":\"data: [DONE", "]\"}\n\n"),
        ("another field", "datum: [DONE", "]\n\n"),
    ];
    for (name, begun, rest) in rows {
        let first = format!("{EVENT}{begun}");
        let parts = [
            open(&[&first]),
            chunk(rest),
            [chunk(RECEIPT), chunk(DONE), last_chunk()].concat(),
        ];
        let origin = Origin::start([pieces(&parts)]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut wire = begin(&bursar).await;
        origin.go();
        let mut answer = wire.head().await;
        while answer.body.len() < EVENT.len() {
            let piece = wire.chunk(&mut answer).await.expect(name);
            answer.body.extend_from_slice(&piece);
        }
        assert!(
            answer.text().starts_with(EVENT),
            "{name}: {:?}",
            answer.text()
        );
        origin.go();
        let wanted = format!("{EVENT}{begun}{rest}");
        while answer.body.len() < wanted.len() {
            let piece = wire.chunk(&mut answer).await.expect(name);
            answer.body.extend_from_slice(&piece);
        }
        assert_eq!(answer.text(), wanted, "{name}");
        assert!(
            bursar.entries()[0].ended_ms.is_none(),
            "{name}: it did not end the stream"
        );
        origin.go();
        read_exactly(
            name,
            &mut wire,
            &mut answer,
            &format!("{wanted}{RECEIPT}{DONE}"),
        )
        .await;
        assert_eq!(bursar.entries()[0].state, settled(7), "{name}");
    }
}

#[tokio::test]
async fn deploy_events_are_relayed_one_by_one() {
    let events = [
        "event: progress\ndata: {\"phase\":\"start\"}\n\n",
        "event: progress\ndata: {\"phase\":\"data: [DONE]\"}\n\n",
        "event: complete\ndata: {\"endpoint\":{\"id\":\"x-1\"}}\n\n",
    ];
    let parts = [
        open(&[events[0]]),
        chunk(events[1]),
        [chunk(events[2]), last_chunk()].concat(),
    ];
    let origin = Origin::start([pieces(&parts)]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request(
        "POST",
        "/v1/endpoints",
        &[],
        r#"{"task":"extract"}"#,
    ))
    .await;
    origin.go();
    let mut answer = wire.head().await;
    let mut wanted = String::new();
    for event in events {
        wanted.push_str(event);
        read_exactly(event, &mut wire, &mut answer, &wanted).await;
        origin.go();
    }
    assert_eq!(
        wire.chunk(&mut answer).await,
        Some(Vec::new()),
        "a clean end"
    );
    let state = bursar.settled(1).await[0].state;
    assert_eq!(state, bursar::ledger::entry::State::Unreported);
}

/// More than 1 MiB is not read whole: it flows, and its last chunk waits for the receipt.
#[tokio::test]
async fn a_large_json_answer_flows_and_is_settled_before_its_end() {
    let content = "x".repeat(3 * 1024 * 1024);
    let body = format!("{{\"id\":\"c1\",\"data\":\"{content}\"}}");
    let framings = [
        ("length", format!("Content-Length: {}\r\n", body.len())),
        ("chunked", "Transfer-Encoding: chunked\r\n".to_owned()),
    ];
    for (name, framing) in framings {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Service-Billed: 7\r\n{framing}\r\n"
        );
        let (first, rest) = body.split_at(2 * 1024 * 1024);
        let framed = |text: &str| match name {
            "chunked" => chunk(text),
            _ => text.as_bytes().to_vec(),
        };
        let mut last = framed(rest);
        if name == "chunked" {
            last.extend_from_slice(&last_chunk());
        }
        let parts = [[head.into_bytes(), framed(first)].concat(), last];
        let origin = Origin::start([pieces(&parts)]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let mut wire = bursar.connect().await;
        wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
        origin.go();
        // The head arrives although the rest of the body was not sent yet.
        let mut answer = wire.head().await;
        assert_eq!(answer.status, 200, "{name}");
        assert!(
            bursar.entries()[0].ended_ms.is_none(),
            "{name}: not settled yet"
        );
        origin.go();
        wire.rest(&mut answer).await;
        assert!(answer.complete, "{name}: whole");
        assert!(answer.body == body.as_bytes(), "{name}: byte for byte");
        assert_eq!(
            bursar.entries()[0].state,
            settled(7),
            "{name}: settled before its end"
        );
    }
}

/// "A non-streamed answer up to 1 MiB is read whole, its receipt committed, then head and body".
#[tokio::test]
async fn a_small_json_answer_is_settled_before_its_head() {
    let origin = Origin::start([Step::Answer(crate::support::origin::billed(7))]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", CHAT, &[], &chat("hi"))).await;
    assert_eq!(wire.head().await.status, 200);
    assert_eq!(bursar.entries()[0].state, settled(7));
}

/// openai-python closes its connection as soon as it reads `[DONE]`.
#[tokio::test]
async fn an_app_that_leaves_at_the_end_mark_has_its_answer() {
    let parts = [open(&[EVENT, RECEIPT, DONE]), last_chunk()];
    let origin = Origin::start([
        pieces(&parts),
        Step::Answer(crate::support::origin::billed(8)),
    ])
    .await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = begin(&bursar).await;
    origin.go();
    let mut answer = wire.head().await;
    read_exactly(
        "all",
        &mut wire,
        &mut answer,
        &format!("{EVENT}{RECEIPT}{DONE}"),
    )
    .await;
    drop(wire);
    assert_eq!(bursar.entries()[0].state, settled(7));
    // The service ends a little later, when bursar has seen the app leave, or never.
    bursar.gateway.idle().await;
    let lost = bursar.metric("bursar_client_disconnects_total", "");
    assert!(lost < 0.5, "counted as {lost} disconnects");
    let drains = bursar.metric("bursar_drains_total", "");
    assert!(drains < 0.5, "counted as {drains} drains");
    let again = super::ask(&bursar).await;
    assert_eq!(
        again.header("x-bursar-adopted"),
        None,
        "a delivered answer is closed"
    );
}

#[tokio::test]
async fn a_slow_reader_gets_every_byte() {
    let event = format!("data: \"{}\"\n\n", "y".repeat(64 * 1024));
    let events: Vec<&str> = vec![event.as_str(); 100];
    let mut bytes = open(&events);
    bytes.extend_from_slice(&[chunk(RECEIPT), chunk(DONE), last_chunk()].concat());
    let origin = Origin::start([Step::Answer(bytes)]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = begin(&bursar).await;
    // Nothing is read until the service has been read as far as buffers go.
    eventually("the entry to be open", || async {
        (!bursar.entries().is_empty()).then_some(())
    })
    .await;
    let answer = wire.answer().await;
    assert!(answer.complete);
    assert_eq!(
        answer.body.len(),
        event.len() * 100 + RECEIPT.len() + DONE.len()
    );
}
