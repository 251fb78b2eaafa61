//! Part 4, its data: an eval set whose rows are recordings. One is attached inline, the other goes to
//! the signed URL of the service's storage.
//!
//! Promise: the key never goes to the storage; the service's own digests say that the bytes arrived.

use http::{HeaderMap, HeaderValue, Method, Uri, header::CONTENT_TYPE};
use serde_json::{Value, json};

use super::document::{list, number, text};
use super::payload::{Form, data_url};
use crate::cli::client::Client;
use crate::cli::demo::scene::Scene;
use crate::cli::error::CliError;
use crate::config::ListenAddr;

pub const SETS: &str = "/v1/eval-sets";

const TASK: &str = "speech-transcript";
const PROMPT: &str = "Transcribe the recording word for word.";

/// Returns the set's id.
pub async fn make_eval_set(scene: &mut Scene<'_>) -> Result<String, CliError> {
    let task = scene.get(&format!("/v1/tasks/{TASK}?examples_n=2")).await?;
    let field = text(&task, "/blob_field")?.to_owned();
    let golden = list(&task, "/examples")?;
    let mut recordings = Vec::new();
    let mut rows = Vec::new();
    for row in golden {
        recordings.push(data_url(text(row, &format!("/input/{field}"))?)?);
        // "a row may carry only `expected_output`, with the blob attached afterwards"
        let expected = row.get("expected_output").unwrap_or(&Value::Null);
        rows.push(json!({ "expected_output": expected }));
    }
    let id = create_set(scene, Some(TASK), PROMPT, &rows).await?;
    let [(inline_mime, inline), (signed_mime, signed)] = recordings.as_slice() else {
        return Err(CliError::Failed(
            "the task has no two recordings".to_owned(),
        ));
    };
    attach(scene, &id, &field, inline_mime, inline).await?;
    upload(scene, &id, &field, signed_mime, signed).await?;
    Ok(id)
}

/// Makes a set, reads it back, and returns its id.
pub async fn create_set(
    scene: &mut Scene<'_>,
    task: Option<&str>,
    prompt: &str,
    rows: &[Value],
) -> Result<String, CliError> {
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let mut form = Form::new()?
        .file("items", lines.as_bytes())
        .field("prompt", prompt);
    if let Some(task) = task {
        form = form.field("task_id", task);
    }
    let (content_type, body) = form.finish();
    let made = scene
        .send(Method::POST, SETS, Some(&content_type), body)
        .await?
        .body;
    let id = text(&made, "/eval_set/id")?;
    let set = scene.get(&format!("{SETS}/{id}")).await?;
    let count = number(&set, "/eval_set/item_count")?;
    scene.stage.fact(
        "eval set",
        format_args!(
            "{count} rows for {}, scored as {}",
            text(&set, "/eval_set/task_id")?,
            text(&set, "/eval_set/scoring_strategy")?
        ),
    )?;
    scene.expect(
        usize::try_from(count).ok() == Some(rows.len()),
        "the set has not as many rows as were sent",
    );
    Ok(id.to_owned())
}

/// Row 0, inline.
async fn attach(
    scene: &mut Scene<'_>,
    set: &str,
    field: &str,
    mime: &str,
    bytes: &[u8],
) -> Result<(), CliError> {
    let (content_type, body) = Form::new()?
        .file("file", bytes)
        .field("idx", "0")
        .field("field_name", field)
        .field("mime", mime)
        .finish();
    let path = format!("{SETS}/{set}/attach-blob");
    let attached = scene
        .send(Method::POST, &path, Some(&content_type), body)
        .await?;
    arrived(
        scene,
        "row 0",
        "attached inline",
        &attached.body,
        bytes.len(),
    )
}

/// Row 1, by a signed URL: announced and confirmed through bursar, stored at the URL itself.
async fn upload(
    scene: &mut Scene<'_>,
    set: &str,
    field: &str,
    mime: &str,
    bytes: &[u8],
) -> Result<(), CliError> {
    let announced = json!({"idx": 1, "field_name": field, "mime": mime, "size": bytes.len()});
    let path = format!("{SETS}/{set}/blob-upload-url");
    let upload = scene.call(&path, &announced).await?.body;
    store(text(&upload, "/url")?, mime, bytes).await?;
    let path = format!("{SETS}/{set}/blob-upload-complete");
    let confirmed = json!({"upload_id": text(&upload, "/upload_id")?});
    let stored = scene.call(&path, &confirmed).await?.body;
    arrived(
        scene,
        "row 1",
        "sent to the signed URL, no key",
        &stored,
        bytes.len(),
    )
}

fn arrived(
    scene: &mut Scene<'_>,
    row: &str,
    how: &str,
    answer: &Value,
    sent: usize,
) -> Result<(), CliError> {
    let size = number(answer, "/size")?;
    let digest: String = text(answer, "/sha256")?.chars().take(12).collect();
    scene
        .stage
        .fact(row, format_args!("{size} bytes {how}; SHA-256 {digest}..."))?;
    scene.expect(
        usize::try_from(size).ok() == Some(sent),
        "the service did not get the whole recording",
    );
    Ok(())
}

/// PUT to the storage. bursar is not asked: the URL names the storage and carries its own permission.
async fn store(url: &str, mime: &str, bytes: &[u8]) -> Result<(), CliError> {
    let failed = |what: &str| CliError::Failed(format!("the signed URL {what}: {url}"));
    let uri: Uri = url.parse().map_err(|_| failed("is none"))?;
    let address = uri.authority().and_then(|at| at.as_str().parse().ok());
    let address = address.ok_or_else(|| failed("is not of this machine"))?;
    let path = uri.path_and_query().ok_or_else(|| failed("has no path"))?;
    let mut headers = HeaderMap::new();
    let mime = HeaderValue::from_str(mime).map_err(|_| failed("has no type"))?;
    headers.insert(CONTENT_TYPE, mime);
    let storage = Client::new(ListenAddr::Tcp(address));
    let bytes = bytes.to_vec().into();
    let answer = storage
        .send(Method::PUT, path.as_str(), headers, bytes)
        .await?;
    match answer.status.is_success() {
        true => Ok(()),
        false => Err(failed(&format!("answered {}", answer.status))),
    }
}
