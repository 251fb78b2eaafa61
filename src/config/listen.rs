//! `[listen]`: the addresses, and which callers may connect to them.

use std::path::Path;
use std::time::Duration;

use super::errors::At;
use super::reader::Reader;
use super::value::{self, ListenAddr};
use super::written::{list, quoted};

/// The admin socket's name below the state directory.
const ADMIN_SOCKET: &str = "admin.sock";

/// `[listen]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    pub proxy: Vec<ListenAddr>,
    /// The configuration names none, and these are the default: one whose family the machine lacks is skipped with a
    /// warning.
    pub proxy_is_default: bool,
    /// The configured addresses, then the socket below the state directory.
    pub admin: Vec<ListenAddr>,
    /// Whether callers may spend that are no app. `None`: as long as there is no app.
    pub anonymous: Option<bool>,
    /// Addresses beyond loopback may be listened on.
    pub allow_remote: bool,
    /// Lower-case names without a port, beside the loopback names.
    pub allowed_hosts: Vec<String>,
    /// Lower-case `scheme://host[:port]`.
    pub allowed_origins: Vec<String>,
    pub shutdown_timeout: Duration,
    /// Connections of apps at once.
    pub connections_max: usize,
}

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

// === impl Listen ===

impl Listen {
    /// Whether other machines can reach the proxy.
    pub fn is_remote(&self) -> bool {
        is_remote(&self.proxy)
    }

    /// What to write into the configuration so that pages of this origin, too, may call. In quotes that a log line need
    /// not escape. `None`: it is no origin that can be listed.
    pub fn line_that_allows(&self, origin: &str) -> Option<String> {
        let new = value::allowed_origin(origin).ok()?;
        let listed: Vec<String> = self.allowed_origins.iter().chain([&new]).cloned().collect();
        let is_plain = listed.iter().all(|origin| !origin.contains('\''));
        let line = format!(
            "below [listen]: allowed_origins = ['{}']",
            listed.join("', '")
        );
        is_plain.then_some(line)
    }

    /// `state_dir`: where the admin socket lies; `None` where that was a mistake.
    pub fn read(reader: &mut Reader<'_>, state_dir: Option<&Path>) -> Self {
        reader.enter("listen");
        let proxy_in_file = reader.strings("proxy");
        let admin_in_file = reader.strings("admin");
        let anonymous = reader.flag("anonymous");
        let allow_remote = reader.flag("allow_remote").unwrap_or(false);
        let allowed_hosts = reader.each("allowed_hosts", value::allowed_host);
        let allowed_origins = reader.each("allowed_origins", value::allowed_origin);
        let shutdown_timeout = reader.seconds("shutdown_timeout_s");
        let connections_max =
            usize::try_from(reader.number("connections_max")).unwrap_or(usize::MAX);

        let mut taken = Vec::new();
        let proxy_is_default =
            reader.overrides().listen.is_empty() && reader.place("proxy").is_none();
        let proxy = proxy(reader, proxy_in_file, allow_remote, &mut taken);
        reader.set("proxy", shown(&proxy));
        let admin = admin(reader, admin_in_file, state_dir, &mut taken);
        reader.set("admin", shown(&admin));
        if is_remote(&proxy)
            && anonymous == Some(true)
            && let Some(place) = reader.place("anonymous")
        {
            reader.refuse(
                &place,
                "cannot be true with an address beyond loopback (allow_remote): every machine that reaches it could spend",
            );
        }
        if is_remote(&proxy) && allowed_hosts.is_empty() {
            reader.warn(
                "an address beyond loopback is listened on, but [listen] allowed_hosts names no host: requests of other machines are refused until it lists the name or address that they call",
            );
        }
        Self {
            proxy,
            proxy_is_default,
            admin,
            anonymous,
            allow_remote,
            allowed_hosts,
            allowed_origins,
            shutdown_timeout,
            connections_max,
        }
    }
}

pub fn is_remote(proxy: &[ListenAddr]) -> bool {
    proxy.iter().any(|address| !address.is_local())
}

fn shown(addresses: &[ListenAddr]) -> String {
    list(addresses.iter().map(|address| quoted(&address.to_string())))
}

/// The proxy's addresses.
fn proxy(
    reader: &mut Reader<'_>,
    in_file: At<Vec<At<String>>>,
    allow_remote: bool,
    taken: &mut Vec<ListenAddr>,
) -> Vec<ListenAddr> {
    let flags = reader.overrides().listen.iter();
    let flags = flags.map(|address| At::named("--listen", address.clone()));
    let mut given: Vec<_> = flags.collect();
    if given.is_empty() {
        if in_file.value.is_empty() {
            reader.refuse(&in_file.place, "is empty; apps need at least one address");
        }
        given = in_file.value;
    }
    let reach = match allow_remote {
        true => Reach::AllowedRemote,
        false => Reach::Local,
    };
    addresses(reader, given, reach, taken)
}

/// The admin listener's addresses, the socket below the state directory among them.
fn admin(
    reader: &mut Reader<'_>,
    in_file: At<Vec<At<String>>>,
    state_dir: Option<&Path>,
    taken: &mut Vec<ListenAddr>,
) -> Vec<ListenAddr> {
    let given = match reader.overrides().admin.clone() {
        Some(address) => vec![At::named("--admin", address)],
        None => in_file.value,
    };
    let mut admin = addresses(reader, given, Reach::Admin, taken);
    if let Some(socket) = state_dir.and_then(|directory| admin_socket(reader, directory))
        && !admin.contains(&socket)
    {
        admin.push(socket);
    }
    if admin.is_empty()
        && state_dir.is_some()
        && let Some(place) = reader.place("admin")
    {
        reader.refuse(
            &place,
            "is empty, and the path of the socket below the state directory is too long for one",
        );
    }
    admin
}

/// Checks addresses; none may be one of `taken` or stand twice.
fn addresses(
    reader: &mut Reader<'_>,
    given: Vec<At<String>>,
    reach: Reach,
    taken: &mut Vec<ListenAddr>,
) -> Vec<ListenAddr> {
    let mut addresses = Vec::new();
    for At { value, place } in given {
        match ListenAddr::parse(&value) {
            Ok(address) if taken.iter().any(|other| other.collides_with(&address)) => {
                reader.refuse(&place, format!("{value:?} is already listened on"));
            }
            Ok(address) if !address.is_local() && reach != Reach::AllowedRemote => {
                reader.refuse(
                    &place,
                    format!("{value:?} is not a loopback address; {}", reach.way_out()),
                );
            }
            Ok(address) => {
                taken.push(address.clone());
                addresses.push(address);
            }
            Err(why) => reader.refuse(&place, why),
        }
    }
    addresses
}

/// The command line's way in; always there unless its path is too long for a socket.
fn admin_socket(reader: &mut Reader<'_>, state_dir: &Path) -> Option<ListenAddr> {
    let path = state_dir.join(ADMIN_SOCKET);
    if value::fits_a_socket(&path.to_string_lossy()) {
        return Some(ListenAddr::Unix(path));
    }
    reader.warn(format!(
        "the path of the admin socket, {}, is too long for a socket: the command line reaches the daemon over TCP only",
        path.display()
    ));
    None
}
