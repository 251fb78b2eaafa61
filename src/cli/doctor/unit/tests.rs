use super::*;

#[test]
fn the_blocks_of_systemctl_are_read_by_their_names() {
    let text = "Id=bursar.service\nLoadState=loaded\nActiveState=failed\nSubState=failed\nResult=exit-code\n\
                NeedDaemonReload=yes\n\nId=bursar.socket\nLoadState=loaded\nActiveState=active\n";
    let service = ServiceUnit {
        is_installed: true,
        active: "failed".to_owned(),
        sub: "failed".to_owned(),
        result: "exit-code".to_owned(),
        needs_reload: true,
        has_key: true,
    };
    let wanted = Units::Known {
        service,
        is_socket_open: true,
    };
    assert_eq!(Units::read(text, true), wanted);
    let Units::Known { service, .. } =
        Units::read("Id=bursar.service\nLoadState=not-found\n", true)
    else {
        panic!("it is known");
    };
    assert!(!service.is_installed);
}
