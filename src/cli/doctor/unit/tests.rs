use super::*;

#[test]
fn the_blocks_of_systemctl_are_read_by_their_names() {
    let text = "Id=bursar.service\nLoadState=loaded\nUnitFileState=disabled\nActiveState=failed\nSubState=failed\nResult=exit-code\n\
                NeedDaemonReload=yes\n\nId=bursar.socket\nLoadState=loaded\nActiveState=active\n";
    let service = ServiceUnit {
        manager: Manager::Own,
        is_installed: true,
        is_enabled: false,
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
    assert_eq!(Units::read(Manager::Own, text, true), wanted);
    let missing = "Id=bursar.service\nLoadState=not-found\nActiveState=inactive\n";
    let missing = Units::read(Manager::System, missing, true);
    assert!(!missing.are_in_use());
    let Units::Known { service, .. } = missing else {
        panic!("it is known");
    };
    assert!(!service.is_installed);
}

/// The package installs both services, and one of them is used.
#[test]
fn a_users_own_service_is_judged_where_it_is_enabled_runs_or_holds_the_addresses() {
    for (file, active, socket, wanted) in [
        ("disabled", "inactive", "inactive", false),
        ("enabled", "inactive", "inactive", true),
        ("disabled", "active", "inactive", true),
        ("disabled", "failed", "inactive", true),
        ("disabled", "inactive", "active", true),
    ] {
        let text = format!(
            "Id=bursar.service\nLoadState=loaded\nUnitFileState={file}\nActiveState={active}\n\n\
             Id=bursar.socket\nActiveState={socket}\n"
        );
        let units = Units::read(Manager::Own, &text, true);
        assert_eq!(units.are_in_use(), wanted, "{text}");
    }
    assert!(!Units::Unknown("no bus".to_owned()).are_in_use());
}
