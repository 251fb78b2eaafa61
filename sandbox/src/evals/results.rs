//! What a run says of a candidate: its answers scored, and their mean.
//!
//! Interface, Eval result (one per candidate).
//! Promise: every number is computed from the stored answers; money stays integer and is rounded up.

use super::{
    ask::Asker,
    records::{Candidate, EvalResult, RowAnswer},
    rows::EvalRow,
};
use crate::{
    catalog::Task,
    error::ServiceError,
    fleet::Fleet,
    money::MicroUsd,
    scoring::{Scorer, exact_match_rate, grade, interval, read_answer},
};
use serde_json::Value;

/// One seed for all: equal answers give equal intervals.
const INTERVAL_SEED: u64 = 0;

/// The scores of one candidate's answers, and what was not scored.
#[derive(Debug, Default)]
pub struct Tally {
    scores: Vec<f64>,
    exact: Vec<f64>,
    errors: usize,
    answered: u64,
    cost: MicroUsd,
}

// === impl Tally ===

impl Tally {
    /// Scores one answer. Interface, Metering: "Orchestration overhead is never billed"; nor is a judge.
    pub async fn add(
        &mut self,
        fleet: &Fleet,
        asker: &Asker,
        task: &Task,
        row: &EvalRow,
        answer: &RowAnswer,
    ) -> Result<(), ServiceError> {
        let Some(text) = &answer.text else {
            self.errors += 1;
            return Ok(());
        };
        self.answered += 1;
        self.cost = self
            .cost
            .checked_add(answer.cost)
            .ok_or(ServiceError::Internal)?;
        let scorer = Scorer::by_id(&task.default_scorer).ok_or(ServiceError::Internal)?;
        let expected = Value::Object(row.expected_output.clone());
        let Ok(read) = read_answer(text, &expected) else {
            self.errors += 1;
            return Ok(());
        };
        let asked = asker.text_of(row.input.as_ref());
        let prompt = format!("{}\n\n{asked}", asker.prompt());
        match grade(fleet, scorer, &prompt, &expected, &read).await {
            Ok(graded) => self.scores.push(graded.score),
            Err(_) => self.errors += 1,
        }
        // Interface: `exact_match` on classification runs only.
        if task.scoring_strategy == "classification" {
            self.exact
                .extend(Scorer::ExactMatch.score(&expected, &read));
        }
        Ok(())
    }

    /// Assumed (eval-result): the mean is over the rows that scored cleanly, the cost over those that were
    /// answered, rounded up to a whole micro-USD ("never floored").
    pub fn result(&self, id: &str, candidate: Candidate) -> Result<EvalResult, ServiceError> {
        let quality = interval(&self.scores, INTERVAL_SEED);
        let cost = u64::try_from(self.cost.get()).map_err(|_| ServiceError::Internal)?;
        let mean_cost = cost.div_ceil(self.answered.max(1));
        Ok(EvalResult {
            model_id: id.to_owned(),
            kind: candidate.kind().map(str::to_owned),
            quality_mean: quality.mean,
            quality_ci_low: quality.low,
            quality_ci_high: quality.high,
            mean_cost_micro_usd: MicroUsd::new(mean_cost).ok_or(ServiceError::Internal)?,
            n_succeeded: self.scores.len(),
            error_count: self.errors,
            exact_match: exact_match_rate(&self.exact),
        })
    }
}

#[cfg(test)]
mod tests;
