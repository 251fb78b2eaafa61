//! The path of a request, one file or folder for each step. Lowest first; each reaches only what stands
//! above it in this list:
//!
//! ```text
//! refuse      every answer of our own: code, status, text
//! quoted      text of others in log and ledger: bounded, without secrets
//! hops        whether a request has been here
//! life        what a stop waits for, and its signals
//! key_record  what the service's answers showed of the key
//! downstream  the app's connection during one request
//! upstream    the service: peers, trust, heads, one attempt on the wire
//! settings    what a reload replaces
//! limits      waiters, breaker, queue (a place within the service's ceilings), guard
//! door        admit: host, origin, path, method, content type, length; buffer: the body, whole, once
//! purchase    is this the retry of a request whose answer the app never got? is another attempt made? which app
//!             is given what of the answer?
//! gateway     what all requests share
//! request_head  a head as it goes to the service
//! settle      the ledger
//! report      access line and metrics
//! client_watch  waiting for the service while watching the app
//! dispatch    makes the attempts
//! relay       the answer: whole, flowing, followed, or our own
//! own_call    bursar's own requests; evidence: eval runs whose price is not reported yet
//! serve       one request, from its head to its last byte: calls the steps in their order
//! accept      a connection; a head under one deadline
//! ```
//!
//! Promise: a metered request leaves only after its intent is durable (I1), and however it ends, it
//! is settled once.

mod accept;
mod client_watch;
mod dispatch;
pub mod door;
mod downstream;
mod evidence;
mod gateway;
pub mod hops;
mod key_record;
mod life;
mod limits;
pub mod own_call;
mod purchase;
mod quoted;
mod refuse;
mod relay;
mod report;
mod request_head;
mod serve;
mod settings;
mod settle;
mod upstream;

pub use self::accept::{AppListener, serve};
pub use self::evidence::EvalRunPoller;
pub use self::gateway::{Gateway, GatewayParts};
pub use self::key_record::KeyEvidence;
pub use self::own_call::auto_metrics;
pub use self::upstream::trust::{Authorities, TrustError, authorities};
