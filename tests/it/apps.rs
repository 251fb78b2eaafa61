//! Apps: which app a request belongs to, by its token or by the user of a Unix socket.

mod commands;
mod door;
mod elsewhere;
mod kept_apart;
mod labels;
mod names;
mod namespace;
mod removal;
mod run_end;
mod settings;
mod users;

use bursar::apps::AppAdd;

use crate::support::Bursar;
use crate::support::wire::request;

const CHAT: &str = "/v1/chat/completions";

/// Adds an app as the admin socket does, and answers its token.
fn add(bursar: &Bursar, name: &str) -> String {
    let new = AppAdd {
        name: name.to_owned(),
        ..AppAdd::default()
    };
    let token = bursar.apps.add(&new, 1).expect("the app is added");
    token.reveal().to_owned()
}

/// The header that shows a token.
fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// One chat request with a token, on a connection of its own.
async fn ask(bursar: &Bursar, token: &str, body: &str) -> crate::support::Answer {
    let mut wire = bursar.connect().await;
    let shown = bearer(token);
    wire.send(request("POST", CHAT, &[("Authorization", &shown)], body))
        .await;
    wire.answer().await
}
