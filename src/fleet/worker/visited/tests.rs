use super::*;
use crate::fleet::FleetError;

fn came_to(lines: ShipOutcome) -> Result<Visited, Trouble> {
    Ok(Visited {
        lines,
        lease_trouble: None,
    })
}

/// Hellos come in between, and the database answers them.
#[test]
fn trouble_with_the_lines_stays_until_a_visit_ships_them() {
    let stuck = || came_to(ShipOutcome::Stuck(Trouble::NeedsLost(7)));
    let hello = || came_to(ShipOutcome::NotAsked);
    let shipped = || came_to(ShipOutcome::Shipped(Shipped::default()));
    let away = || Err(Trouble::Fleet(FleetError::Slow));
    let lost = Trouble::NeedsLost(7).to_string();
    let slow = FleetError::Slow.to_string();
    let both = format!("{slow}; {lost}");
    let mut reported = FleetFigures::default();
    for (visited, is_heard, troubles) in [
        (stuck(), false, Some(&lost)),
        (hello(), true, Some(&lost)),
        (away(), false, Some(&both)),
        (hello(), true, Some(&lost)),
        (stuck(), false, Some(&lost)),
        (shipped(), true, None),
        (away(), false, Some(&slow)),
        (hello(), true, None),
    ] {
        assert_eq!(note(&mut reported, visited), is_heard);
        assert_eq!(reported.troubles().as_ref(), troubles);
    }
}
