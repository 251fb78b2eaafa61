//! Part 1, what the plain demo does not show: an answer that follows a JSON Schema, embeddings, rerank,
//! an image.

use serde::Deserialize;
use serde_json::{Value, json};

use super::document::{figure, list, number, text};
use super::payload::{Pixels, decode};
use crate::cli::demo::answer::Heard;
use crate::cli::demo::scene::{CHAT, Scene};
use crate::cli::error::CliError;
use crate::protocol::ServedBy;

/// Pixels of a side of the picture that is asked for.
const SIDE: u32 = 64;

/// What the schema of the structured call asks for, and nothing else.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Booking {
    city: String,
    people: i64,
    email: String,
}

pub async fn structured(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let prompt = "Book a table for 4 in Lisbon, Ana Silva, ana@example.org";
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "people": {"type": "integer"},
            "email": {"type": "string"},
        },
        "required": ["city", "people", "email"],
        "additionalProperties": false,
    });
    scene.stage.fact("asked", prompt)?;
    let heard = ask_structured(scene, prompt, "booking", &schema).await?;
    let entry = scene.receipt(&heard).await?;
    let Booking {
        city,
        people,
        email,
    } = serde_json::from_str(heard.text())?;
    scene.stage.fact(
        "read as",
        format_args!("city {city}, people {people}, email {email}"),
    )?;
    scene.expect(
        entry.served_by == Some(ServedBy::Specialist),
        "it was not served by a specialist",
    );
    Ok(())
}

/// A chat call whose answer must follow a schema.
pub async fn ask_structured(
    scene: &Scene<'_>,
    prompt: &str,
    name: &str,
    schema: &Value,
) -> Result<Heard, CliError> {
    let body = json!({
        "model": "auto",
        "messages": [{"role": "user", "content": prompt}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": schema},
        },
    });
    let answer = scene.post(CHAT, &body).await?;
    let heard = Heard::whole(answer, &scene.names).await?;
    scene.stage.prose("answer", heard.text())?;
    Ok(heard)
}

pub async fn embeddings(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let texts = [
        "The doctor told him to rest for a week",
        "The physician advised staying in bed for several days",
        "The lawyer told him to sign the contract",
    ];
    for (at, one) in texts.iter().enumerate() {
        scene.stage.fact(if at == 0 { "texts" } else { "" }, one)?;
    }
    let body = json!({"model": "auto", "input": texts});
    let got = scene.call("/v1/embeddings", &body).await?;
    let vectors: Vec<Vec<f64>> = list(&got.body, "/data")?
        .iter()
        .map(|one| {
            list(one, "/embedding")?
                .iter()
                .map(|one| figure(one, ""))
                .collect()
        })
        .collect::<Result<_, CliError>>()?;
    let [first, paraphrase, other] = vectors.as_slice() else {
        return Err(CliError::Failed("not one vector for each text".to_owned()));
    };
    let (near, far) = (cosine(first, paraphrase), cosine(first, other));
    scene.stage.fact(
        "cosines",
        format_args!(
            "{} numbers each; to the second {near:.3}, to the third {far:.3}",
            first.len()
        ),
    )?;
    scene.expect(near > far, "the paraphrase is not the nearer one");
    scene.paid(got.entry, got.receipt.billed.value()).await?;
    Ok(())
}

pub async fn rerank(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let query = "How do I pay an invoice?";
    let documents = ["The river banks", "Settling a bill", "The colour blue"];
    scene.stage.fact("query", query)?;
    let body = json!({"model": "auto", "query": query, "documents": documents});
    let got = scene.call("/v1/rerank", &body).await?;
    let mut order = Vec::new();
    for result in list(&got.body, "/results")? {
        let at = usize::try_from(number(result, "/index")?).ok();
        let document = at.and_then(|at| documents.get(at));
        let document = document
            .ok_or_else(|| CliError::Failed(format!("not one of the documents: {result}")))?;
        order.push((*document, figure(result, "/relevance_score")?));
    }
    let shown: Vec<String> = order
        .iter()
        .map(|(document, score)| format!("{document} {score:.3}"))
        .collect();
    scene.stage.fact("order", shown.join(", "))?;
    scene.expect(
        order.len() == documents.len() && order.first().map(|one| one.0) == Some(documents[1]),
        "the document that answers is not the first of all",
    );
    scene.paid(got.entry, got.receipt.billed.value()).await?;
    Ok(())
}

pub async fn image(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let prompt = "a red boat on a blue river";
    scene.stage.fact("asked", prompt)?;
    let body = json!({"prompt": prompt, "size": format!("{SIDE}x{SIDE}")});
    let got = scene.call("/v1/images/generations", &body).await?;
    let png = decode(text(&got.body, "/data/0/b64_json")?)?;
    let pixels = Pixels::of_png(&png)?;
    let (width, height) = (pixels.width, pixels.height);
    scene.stage.fact(
        "picture",
        format_args!("PNG, {width} by {height} pixels, {} bytes", png.len()),
    )?;
    scene.expect(
        (width, height) == (SIDE, SIDE),
        "the picture is not of the size that was asked for",
    );
    scene.paid(got.entry, got.receipt.billed.value()).await?;
    Ok(())
}

/// 0 where a vector has no direction.
fn cosine(one: &[f64], other: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let lengths = dot(one, one).sqrt() * dot(other, other).sqrt();
    if lengths > 0.0 {
        dot(one, other) / lengths
    } else {
        0.0
    }
}
