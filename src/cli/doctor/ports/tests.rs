use super::*;

#[test]
fn the_kernels_table_names_who_listens() {
    let line = "   1: 0100007F:2087 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1";
    assert_eq!(listener(line, 0x2087), Some(("1000", "4242")));
    assert_eq!(listener(line, 0x2088), None);
    let connected = line.replace(" 0A ", " 01 ");
    assert_eq!(listener(&connected, 0x2087), None);
    assert_eq!(listener("  sl  local_address rem_address   st", 1), None);
}

#[tokio::test]
async fn a_port_is_free_or_its_holder_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = ListenAddr::Tcp(listener.local_addr().unwrap());
    let Port::Taken(who) = to_listen_on(&address) else {
        panic!("it is taken");
    };
    assert!(
        who.contains(&format!("process {}", std::process::id())),
        "{who}"
    );
    drop(listener);
    assert_eq!(to_listen_on(&address), Port::Free);
}
