//! `[listen]`: which addresses, and who may knock there.

use std::path::Path;

use super::Check;
use crate::config::file::{At, ListenTable};
use crate::config::settings::Listen;
use crate::config::value::{self, ListenAddr};

const PROXY_PORT: u16 = 8327;
/// The admin socket's name below the state directory.
const ADMIN_SOCKET: &str = "admin.sock";

/// Which addresses may be listened on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Local,
    AllowedRemote,
    /// What is spent is this machine's business.
    Admin,
}

// === impl Reach ===

impl Reach {
    fn way_out(self) -> &'static str {
        match self {
            Self::Local | Self::AllowedRemote => {
                "[listen] allow_remote = true lets other machines call, for apps with tokens"
            }
            Self::Admin => {
                "the admin listener is for this machine alone; reach it through a tunnel"
            }
        }
    }
}

pub fn listen(check: &mut Check<'_>, file: ListenTable, state_dir: Option<&Path>) -> Listen {
    let from_flags = check
        .overrides
        .listen
        .iter()
        .map(|address| At::named("--listen", address.clone()))
        .collect::<Vec<_>>();
    let proxy_given = match file.proxy {
        _ if !from_flags.is_empty() => Some(from_flags),
        Some(list) => {
            if list.value.is_empty() {
                check.refuse(&list.place, "is empty; apps need at least one address");
            }
            Some(list.value)
        }
        None => None,
    };
    let proxy_is_default = proxy_given.is_none();
    let allow_remote = file.allow_remote.as_ref().is_some_and(|given| given.value);
    let proxy_reach = match allow_remote {
        true => Reach::AllowedRemote,
        false => Reach::Local,
    };
    let mut taken = Vec::new();
    let proxy = match proxy_given {
        Some(given) => addresses(check, given, proxy_reach, &mut taken),
        None => value::default_addresses(PROXY_PORT)
            .map(ListenAddr::Tcp)
            .to_vec(),
    };
    taken.clone_from(&proxy);

    let from_flag = check.overrides().admin.clone();
    let admin_place = file.admin.as_ref().map(|list| list.place.clone());
    let admin_given = from_flag
        .map(|address| vec![At::named("--admin", address)])
        .or(file.admin.map(|list| list.value));
    let mut admin = match admin_given {
        Some(given) => addresses(check, given, Reach::Admin, &mut taken),
        None => vec![ListenAddr::DEFAULT_ADMIN],
    };
    if let Some(socket) = state_dir.and_then(|directory| admin_socket(check, directory))
        && !admin.contains(&socket)
    {
        admin.push(socket);
    }
    if admin.is_empty()
        && state_dir.is_some()
        && let Some(place) = admin_place
    {
        check.refuse(
            &place,
            "is empty, and the path of the socket below the state directory is too long for one",
        );
    }

    let allowed_hosts = check.each(file.allowed_hosts, value::allowed_host);
    let is_remote = proxy.iter().any(|address| !address.is_local());
    if is_remote && let Some(At { value: true, place }) = &file.anonymous {
        check.refuse(
            place,
            "cannot be true with an address beyond loopback (allow_remote): whoever reaches it would spend",
        );
    }
    if is_remote && allowed_hosts.is_empty() {
        check.warn(
            "an address beyond loopback is listened on, but [listen] allowed_hosts names no host: requests of other machines are refused until it lists the name or address that they call"
                .to_owned(),
        );
    }
    Listen {
        proxy,
        proxy_is_default,
        admin,
        anonymous: file.anonymous.map(|given| given.value),
        allow_remote,
        allowed_hosts,
        allowed_origins: check.each(file.allowed_origins, value::allowed_origin),
        shutdown_timeout: check.seconds(
            "listen",
            "shutdown_timeout_s",
            file.shutdown_timeout_s,
            120,
            0..=3600,
        ),
    }
}

/// Checks addresses; none may be one of `taken` or stand twice.
fn addresses(
    check: &mut Check<'_>,
    given: Vec<At<String>>,
    reach: Reach,
    taken: &mut Vec<ListenAddr>,
) -> Vec<ListenAddr> {
    let mut addresses = Vec::new();
    for At { value, place } in given {
        match ListenAddr::parse(&value) {
            Ok(address) if taken.iter().any(|other| other.collides_with(&address)) => {
                check.refuse(&place, format!("{value:?} is already listened on"));
            }
            Ok(address) if !address.is_local() && reach != Reach::AllowedRemote => {
                check.refuse(
                    &place,
                    format!("{value:?} is not a loopback address; {}", reach.way_out()),
                );
            }
            Ok(address) => {
                taken.push(address.clone());
                addresses.push(address);
            }
            Err(why) => check.refuse(&place, why),
        }
    }
    addresses
}

/// The command line's way in; always there unless its path is too long for a socket.
fn admin_socket(check: &mut Check<'_>, state_dir: &Path) -> Option<ListenAddr> {
    let path = state_dir.join(ADMIN_SOCKET);
    if value::fits_a_socket(&path.to_string_lossy()) {
        return Some(ListenAddr::Unix(path));
    }
    check.warn(format!(
        "the path of the admin socket, {}, is too long for a socket: the command line reaches the daemon over TCP only",
        path.display()
    ));
    None
}
