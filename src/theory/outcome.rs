//! What an experiment found.

use serde::Serialize;

use crate::report::plot::Figure;
use crate::report::table::{Align, Table};

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The assumptions are met, and the conclusion is found.
    Holds,
    /// The data do not meet the assumptions: they say nothing of the claim.
    AssumptionsNotMet,
    /// The assumptions are met, and the conclusion is not found.
    ConclusionFails,
}

impl Verdict {
    /// The exit code of `wqk theory` for it: 0, 3 or 4.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Holds => 0,
            Self::AssumptionsNotMet => 3,
            Self::ConclusionFails => 4,
        }
    }

    /// The verdict in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::AssumptionsNotMet => "assumptions not met",
            Self::ConclusionFails => "assumptions met, conclusion fails",
        }
    }
}

/// What a measured number must be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// From the first to the second.
    Between(f64, f64),
}

impl Rule {
    /// Whether a number is so; NaN never is.
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(low) => value >= low,
            Self::AtMost(high) => value <= high,
            Self::Between(low, high) => (low..=high).contains(&value),
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtLeast(low) => format!("≥ {}", short(low)),
            Self::AtMost(high) => format!("≤ {}", short(high)),
            Self::Between(low, high) => format!("{} to {}", short(low), short(high)),
        }
    }
}

/// A number that was measured, and what it must be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// What was measured.
    pub what: String,
    /// What it is.
    pub value: f64,
    /// What it must be.
    pub rule: Rule,
    /// Whether it is.
    pub met: bool,
}

impl Check {
    /// Judges a number.
    pub fn new(what: impl Into<String>, value: f64, rule: Rule) -> Self {
        Self {
            what: what.into(),
            value,
            rule,
            met: rule.is_met(value),
        }
    }

    /// The number must be at least `low`.
    pub fn at_least(what: impl Into<String>, value: f64, low: f64) -> Self {
        Self::new(what, value, Rule::AtLeast(low))
    }

    /// The number must be at most `high`.
    pub fn at_most(what: impl Into<String>, value: f64, high: f64) -> Self {
        Self::new(what, value, Rule::AtMost(high))
    }
}

/// One case of a claim: one setting, one layer, one version of a formula.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Which case.
    pub name: String,
    /// What the claim takes for granted, measured.
    pub assumptions: Vec<Check>,
    /// What it says follows, measured.
    pub conclusions: Vec<Check>,
    /// What came of it.
    pub verdict: Verdict,
}

impl Part {
    /// Judges a case. Without assumptions they count as met.
    pub fn new(name: impl Into<String>, assumptions: Vec<Check>, conclusions: Vec<Check>) -> Self {
        let all = |checks: &[Check]| checks.iter().all(|check| check.met);
        let verdict = match (all(&assumptions), all(&conclusions)) {
            (false, _) => Verdict::AssumptionsNotMet,
            (true, true) => Verdict::Holds,
            (true, false) => Verdict::ConclusionFails,
        };
        Self {
            name: name.into(),
            assumptions,
            conclusions,
            verdict,
        }
    }
}

impl Part {
    /// The case of a claim about a kind of model of which there is none.
    pub(super) fn without(kind: &str) -> Self {
        let models = Check::at_least(format!("number of models that are {kind}s"), 0.0, 1.0);
        Self::new(format!("no {kind}"), vec![models], Vec::new())
    }
}

/// What came of an experiment: cases, words, and a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What the claim says, in a sentence.
    pub statement: &'static str,
    /// What it was tried on.
    pub data: String,
    /// The cases.
    pub parts: Vec<Part>,
    /// What else is worth saying, figures included.
    pub notes: Vec<String>,
    /// A picture of what was measured.
    pub figure: Figure,
}

impl Outcome {
    /// The verdict over all cases: one case with the assumptions met and the conclusion missed refutes the claim; one
    /// that meets them and has it bears the claim out; without either the data say nothing of it.
    pub fn verdict(&self) -> Verdict {
        let any = |verdict| self.parts.iter().any(|part| part.verdict == verdict);
        if any(Verdict::ConclusionFails) {
            Verdict::ConclusionFails
        } else if any(Verdict::Holds) {
            Verdict::Holds
        } else {
            Verdict::AssumptionsNotMet
        }
    }

    /// Every number that was measured: a row a check, the case and its verdict at the first of its checks.
    pub fn table(&self) -> Table {
        self.rows(false)
    }

    /// The same with the case in every row, for a program to read.
    pub fn records(&self) -> Table {
        self.rows(true)
    }

    fn rows(&self, complete: bool) -> Table {
        let mut table = Table::new([
            ("case", Align::Left),
            ("verdict", Align::Left),
            ("kind", Align::Left),
            ("measured", Align::Left),
            ("value", Align::Right),
            ("required", Align::Right),
            ("met", Align::Left),
        ]);
        for part in &self.parts {
            let kinds = [
                ("assumption", &part.assumptions),
                ("conclusion", &part.conclusions),
            ];
            let mut first = true;
            for (kind, check) in kinds
                .into_iter()
                .flat_map(|(kind, checks)| checks.iter().map(move |check| (kind, check)))
            {
                let (name, verdict) = match std::mem::take(&mut first) || complete {
                    true => (part.name.clone(), part.verdict.words().to_owned()),
                    false => (String::new(), String::new()),
                };
                table.push([
                    name,
                    verdict,
                    kind.to_owned(),
                    check.what.clone(),
                    short(check.value),
                    check.rule.words(),
                    (if check.met { "yes" } else { "no" }).to_owned(),
                ]);
            }
        }
        table
    }
}

/// A number in four digits or so.
fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if size.is_finite() && !(1e-3..1e5).contains(&size) {
        format!("{value:.2e}")
    } else if value == value.round() {
        format!("{value:.0}")
    } else {
        format!("{value:.4}")
    }
}
