//! What follows for the process from the list of apps: a line in the log, and which users can connect to the
//! proxy's Unix sockets.
//!
//! Promise: a warning is logged whenever every process may spend; a socket is opened to other users only
//! while the door identifies each of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::listen;
use crate::apps::Apps;
use crate::apps::namespace::Namespace;
use crate::config::ListenAddr;

/// The one thing about apps that an operator must not find out by accident.
pub fn say(apps: &Apps) {
    let table = apps.table();
    let apps = table.known().len();
    if table.is_anonymous_allowed() {
        tracing::warn!(
            apps,
            "any local process may spend without a token; `bursar app add NAME` ends that"
        );
    } else {
        tracing::info!(
            apps,
            "apps with a token or a user may spend, and no other caller"
        );
    }
    for known in table.known() {
        let app = &known.app;
        for uid in app
            .uids
            .iter()
            .filter(|uid| Namespace::own().user(**uid).is_none())
        {
            tracing::warn!(
                app = &*app.name,
                uid,
                "this user cannot be identified on a Unix socket, because this process's user namespace hides \
                 its number (PrivateUsers=yes, a container); the app needs its token"
            );
        }
    }
}

/// Users that are apps must be able to connect. As long as others may spend, the file's mode is what
/// keeps them out. Goes on with every change of the apps. The mode of a socket that was given is its
/// giver's: only files of `own` are changed.
pub fn share_sockets<'a>(
    apps: &Arc<Apps>,
    proxy: &[ListenAddr],
    own: impl Iterator<Item = &'a Path>,
) {
    let is_for_apps = |path: &&Path| {
        let listens = |address: &ListenAddr| matches!(address, ListenAddr::Unix(at) if at == *path);
        proxy.iter().any(listens)
    };
    let sockets: Vec<PathBuf> = own.filter(is_for_apps).map(Path::to_owned).collect();
    if sockets.is_empty() {
        return;
    }
    let apps = Arc::clone(apps);
    let mut changes = apps.changes();
    share(&apps, &sockets);
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            share(&apps, &sockets);
        }
    });
}

fn share(apps: &Apps, sockets: &[PathBuf]) {
    let table = apps.table();
    let with_everybody = table.has_users() && !table.is_anonymous_allowed();
    for socket in sockets {
        if let Err(error) = listen::share(socket, with_everybody) {
            tracing::warn!(%error, socket = %socket.display(), "a socket's mode stays as it is");
        }
    }
}
