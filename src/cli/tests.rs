use super::*;

#[test]
fn the_command_line_is_consistent() {
    Line::command().debug_assert();
}

#[test]
fn every_mistake_has_its_exit_code() {
    let cases = [
        (CliError::Config(ConfigErrors::default()), 78),
        (CliError::usage("no"), 2),
        (CliError::Failed("no".to_owned()), 1),
        (CliError::Server(ServerError::ListenerLost), 1),
        (CliError::Said, 1),
    ];

    for (error, code) in cases {
        assert_eq!(error.exit_code(), code, "{error:?}");
    }
}

#[test]
fn the_help_names_the_three_commands_to_start_with() {
    let help = Line::command().render_help().to_string();

    for command in ["bursar demo", "bursar sandbox", "bursar run"] {
        assert!(help.contains(command), "{command}");
    }
}
