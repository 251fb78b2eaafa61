use super::{LineNumbers, MODELS_MAX, Model, ModelLine, NAMING_MAX};
use crate::ledger::fixtures::labels;
use crate::ledger::sums::LineKey;

fn line(app: &str, model: &str) -> ModelLine {
    let line = LineKey {
        app: app.into(),
        ..LineKey::new(&labels(0, None), None)
    };
    let model = Model::of(Some(model));
    ModelLine { line, model }
}

fn number(lines: &mut LineNumbers, app: &str, model: &str) -> (u16, bool) {
    lines.number(&line(app, model)).unwrap()
}

#[test]
fn the_models_behind_the_first_of_an_app_share_a_line() {
    let mut lines = LineNumbers::default();
    for model in 0..MODELS_MAX {
        assert!(number(&mut lines, "notes", &model.to_string()).1);
    }
    let (other, is_new) = number(&mut lines, "notes", "one more");
    assert!(is_new);
    assert_eq!(lines.get(other).unwrap().model, Model::Other);
    assert_eq!(number(&mut lines, "notes", "and another"), (other, false));
    assert_eq!(number(&mut lines, "notes", "0"), (0, false));

    let (of_another_app, _) = number(&mut lines, "agent", "one more");
    assert_eq!(
        lines.get(of_another_app).unwrap(),
        &line("agent", "one more")
    );
}

/// Numbers are left for lines without a model.
#[test]
fn a_line_behind_many_names_no_model() {
    let mut lines = LineNumbers::default();
    for app in 0..NAMING_MAX {
        number(&mut lines, &app.to_string(), "auto");
    }
    let (other, is_new) = number(&mut lines, "notes", "auto");
    assert!(is_new);
    assert_eq!(lines.get(other).unwrap().model, Model::Other);
    assert_eq!(number(&mut lines, "7", "auto"), (7, false));
}
