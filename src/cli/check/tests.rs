use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::config::Overrides;

const KEY: &str = "org-key-that-must-not-show";

#[test]
fn what_is_printed_is_the_configuration_in_force_without_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    fs::write(&key, KEY).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let file = folder.path().join("config.toml");
    fs::write(
        &file,
        "service_name = \"acme\"\n[retry]\nattempts = 5\n\
         [models]\naliases = { \"gpt-4o\" = \"auto\", \"*\" = \"auto\" }\n\
         [listen]\nanonymous = false\n\
         [caps]\ntime_zone = \"UTC\"\nmonth_micro_usd = 5\n\
         [[app]]\nname = \"a\"\nuids = [7, 8]\ncap_hour_micro_usd = 0\n\
         [[app]]\nname = \"b\"\ntoken_file = \"b\"\nrequest_floor_micro_usd = 9\n\
         on_disconnect = \"cancel\"\nagent_receipts = \"exact\"\non_clarification = \"error\"\n",
    )
    .unwrap();
    let load = |file: &std::path::Path| {
        let overrides = Overrides {
            config: Some(file.to_owned()),
            upstream: Some("https://inference.example".to_owned()),
            api_key_file: Some(key.clone()),
            ..Overrides::default()
        };
        let home = folder.path().to_str().unwrap();
        Config::load(&overrides, &Env::from_pairs([("HOME", home)])).unwrap()
    };
    let token = folder.path().join("b");
    fs::write(&token, "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let config = load(&file);

    let printed = effective(&config, &KeyPlace::File(key.clone()));

    assert!(!printed.contains(KEY));
    let place = format!("# the key is from {}, and is not shown\n", key.display());
    assert!(printed.contains(&place), "{printed}");
    assert!(printed.contains("service_name = \"acme\""), "{printed}");
    let document = CheckedConfiguration::new(&config, &KeyPlace::File(key.clone()), Vec::new());
    let document = serde_json::to_value(&document).unwrap();
    assert!(!document.to_string().contains(KEY));
    assert_eq!(document["key_file"], key.to_str().unwrap());
    let in_force = &document["in_force"];
    assert_eq!(in_force["service_name"], "acme");
    assert_eq!(in_force["retry"]["attempts"], 5);
    assert_eq!(in_force["listen"]["anonymous"], false);
    assert_eq!(in_force["models"]["aliases"]["gpt-4o"], "auto");
    assert_eq!(in_force["app"][0]["uids"], serde_json::json!([7, 8]));
    assert_eq!(in_force["app"][1]["name"], "b");
    let again = folder.path().join("again.toml");
    fs::write(&again, &printed).unwrap();
    let mut reloaded = load(&again);
    // Written down, the default addresses are no defaults any more.
    reloaded.listen.proxy_is_default = config.listen.proxy_is_default;
    reloaded.path.clone_from(&config.path);
    reloaded.app_places.clone_from(&config.app_places);
    assert_eq!(reloaded, config);
}
