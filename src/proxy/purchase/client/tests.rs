use super::*;

/// The table in the head of the file.
#[test]
fn what_is_known_of_an_app_follows_the_table() {
    let suspect = ClientState::Suspect { taken_before: 7 };
    let input_ends = |client: &mut ClientState| client.input_ended(7);
    let takes = |client: &mut ClientState| client.has_taken(8);
    let keeps = |client: &mut ClientState| client.accepts_bytes();
    let breaks = |client: &mut ClientState| client.is_lost();
    let stops = |client: &mut ClientState| client.is_cut_off();
    use ClientState::{Cut, Gone, Here, Proven};
    let rows = [
        (Here, [suspect, Here, Here, Gone, Cut]),
        (suspect, [suspect, Proven, Proven, Gone, Cut]),
        (Proven, [Proven, Proven, Proven, Gone, Cut]),
        (Gone, [Gone, Gone, Gone, Gone, Cut]),
        (Cut, [Cut, Cut, Cut, Cut, Cut]),
    ];
    let events: [&dyn Fn(&mut ClientState); 5] = [&input_ends, &takes, &keeps, &breaks, &stops];
    for (before, wanted) in rows {
        for (event, wanted) in events.iter().zip(wanted) {
            let mut client = before;
            event(&mut client);
            assert_eq!(client, wanted, "{before:?}");
        }
    }
}

#[test]
fn a_suspect_whose_socket_took_nothing_since_is_not_proven() {
    let mut client = ClientState::default();
    client.input_ended(7);
    client.has_taken(7);
    assert_eq!(client, ClientState::Suspect { taken_before: 7 });
}
