//! The bare pass-through that bursar is measured against (`make bench`, "BP"): pingora's proxy on two
//! threads with kept connections, which replaces one header and does nothing else.
//!
//! Promise: no tuning beyond that, so that the figure is pingora's own.

#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::process::ExitCode;

use async_trait::async_trait;
use pingora_core::Result;
use pingora_core::server::Server;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_http::RequestHeader;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};

/// Threads of the proxy.
const THREADS: usize = 2;

/// Kept connections to the far end, at most.
const POOL: usize = 4096;

struct PassThrough {
    far_end: SocketAddr,
    authorization: String,
}

#[async_trait]
impl ProxyHttp for PassThrough {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _: &mut Session, (): &mut ()) -> Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.far_end, false, String::new())))
    }

    async fn upstream_request_filter(
        &self,
        _: &mut Session,
        request: &mut RequestHeader,
        (): &mut (),
    ) -> Result<()> {
        request.insert_header("Authorization", &self.authorization)
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen, far_end, authorization] = arguments.as_slice() else {
        eprintln!("error: needs LISTEN FAR_END AUTHORIZATION");
        return ExitCode::FAILURE;
    };
    let Ok(far_end) = far_end.parse() else {
        eprintln!("error: {far_end} is no address");
        return ExitCode::FAILURE;
    };
    let mut server = Server::new_with_opt_and_conf(
        None,
        ServerConf {
            threads: THREADS,
            upstream_keepalive_pool_size: POOL,
            // It ends when it is asked to.
            grace_period_seconds: Some(0),
            graceful_shutdown_timeout_seconds: Some(1),
            ..ServerConf::default()
        },
    );
    server.bootstrap();
    let proxy = PassThrough {
        far_end,
        authorization: authorization.clone(),
    };
    let mut service = http_proxy_service(&server.configuration, proxy);
    service.add_tcp(listen);
    server.add_service(service);
    server.run_forever()
}
