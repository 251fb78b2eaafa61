//! What was billed by day, as bars: an SVG that is drawn here, so that the page needs no script for it.
//!
//! Promise: a day in which anything was billed has a bar that is seen; lengths are integers, and no amount is rounded
//! but to a length. What the bars show is said in words, too.

use super::html::{Escaped, Html};
use super::sums::AppSums;
use crate::ledger::MicroUsdSum;

/// Height of the bars, and the width of a day with its gap, in units of the drawing.
const HEIGHT: u128 = 96;
const DAY_WIDTH: usize = 20;
const GAP: usize = 4;

/// One bar for each day, of these apps in their colours, the first at the foot.
pub fn draw(html: &mut Html, days: &[String], apps: &[AppSums]) {
    let sum_of = |at: usize| {
        let mut sum = MicroUsdSum::default();
        for app in apps {
            sum.merge(app.days.get(at).copied().unwrap_or_default());
        }
        sum
    };
    let sums: Vec<MicroUsdSum> = (0..days.len()).map(sum_of).collect();
    let Some((highest_at, highest)) = sums.iter().enumerate().max_by_key(|(_, sum)| **sum) else {
        return;
    };
    if highest.is_zero() {
        return html.paragraph("muted", "Nothing was billed in these days.");
    }
    let width = days.len() * DAY_WIDTH;
    let (first, last) = (day(days, 0), day(days, days.len() - 1));
    let said = format!(
        "Billed by day, {first} to {last}; the most was {highest} on {}",
        day(days, highest_at)
    );
    html.line(format_args!(
        "<figure>\n<svg class=\"chart\" viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{}\">",
        Escaped(&said)
    ));
    for (at, sum) in sums.iter().enumerate() {
        bar(html, at, *highest, day(days, at), *sum, apps);
    }
    html.line(format_args!(
        "</svg>\n<figcaption><span>{}</span><span>most: {highest} on {}</span><span>{}</span></figcaption>\n</figure>",
        Escaped(first),
        Escaped(day(days, highest_at)),
        Escaped(last)
    ));
}

fn bar(
    html: &mut Html,
    at: usize,
    highest: MicroUsdSum,
    day: &str,
    sum: MicroUsdSum,
    apps: &[AppSums],
) {
    let x = at * DAY_WIDTH + GAP / 2;
    let width = DAY_WIDTH - GAP;
    html.line(format_args!("<g><title>{}: {sum}</title>", Escaped(day)));
    // A line at the foot, for days without anything.
    html.line(format_args!(
        "<rect class=\"foot\" x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"1\"/>",
        HEIGHT - 1
    ));
    let mut below = MicroUsdSum::default();
    for (colour, app) in apps.iter().enumerate() {
        let part = app.days.get(at).copied().unwrap_or_default();
        if part.is_zero() {
            continue;
        }
        let foot = length(below, highest);
        below.merge(part);
        let top = length(below, highest);
        // The lengths of the sums, not of the parts: so the parts make the whole.
        let height = top.saturating_sub(foot);
        if height > 0 {
            html.line(format_args!(
                "<rect class=\"c{colour}\" x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"{height}\"/>",
                HEIGHT.saturating_sub(top)
            ));
        }
    }
    html.line("</g>");
}

/// Rounded up: what is not nothing is seen.
fn length(sum: MicroUsdSum, highest: MicroUsdSum) -> u128 {
    let scaled = sum.get().saturating_mul(HEIGHT);
    scaled.div_ceil(highest.get().max(1)).min(HEIGHT)
}

fn day(days: &[String], at: usize) -> &str {
    days.get(at).map_or("", String::as_str)
}
