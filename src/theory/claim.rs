//! The claims by name.

use super::{Outcome, TextEvidence, TheoryError};

/// One of the claims of the structure paper.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// How the command knows it.
    pub name: &'static str,
    /// Where it stands in the paper.
    pub place: &'static str,
    /// What it says.
    pub statement: &'static str,
    synthetic: fn(u64) -> Outcome,
    on_text: fn(&TextEvidence) -> Outcome,
}

macro_rules! claims {
    ($($module:ident: $name:literal, $place:literal);+ $(;)?) => {
        [$(Claim {
            name: $name,
            place: $place,
            statement: super::$module::STATEMENT,
            synthetic: super::$module::synthetic,
            on_text: super::$module::on_text,
        }),+]
    };
}

impl PartialEq for Claim {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Claim {
    /// All of them, in the order of the paper.
    pub const ALL: [Self; 12] = claims! {
        rank_one: "rank-one", "proposition: the implicit weight update as sum of rank-1 matrices";
        context: "context", "proposition: different implicit updates for context and prediction";
        growth: "growth", "proposition and corollary: asymmetric growth of columns and rows";
        counting: "counting", "proposition and remark: ratio of expected counts";
        directionality: "directionality", "theorem: autoregressive training induces directionality";
        bidirectional: "bidirectional", "corollary: bidirectional training does not induce directionality";
        symmetry: "symmetry", "theorem: bidirectional training induces symmetry; remark on masking";
        symmetry_score: "symmetry-score", "definition, lemma and proposition: the symmetry score";
        directionality_score: "directionality-score", "definition and proposition: the directionality score";
        tail: "tail", "lemma: tails of distributions with the same mean and different variances";
        convex_hull: "convex-hull", "section 2 and remark: softmax keeps order, outputs lie in the convex hull";
        likelihood: "likelihood", "remark: likelihood and pseudo-likelihood";
    };

    /// The claim of a name.
    ///
    /// # Errors
    /// [`TheoryError::Unknown`], with the names that there are.
    pub fn find(name: &str) -> Result<Self, TheoryError> {
        let found = Self::ALL.into_iter().find(|claim| claim.name == name);
        found.ok_or_else(|| TheoryError::Unknown {
            name: name.to_owned(),
            known: Self::ALL.map(|claim| claim.name).join(", "),
        })
    }

    /// Tries it on data that are made to meet its assumptions.
    pub fn on_synthetic(self, seed: u64) -> Outcome {
        (self.synthetic)(seed)
    }

    /// Tries it on trained models and real text.
    pub fn on_text(self, evidence: &TextEvidence) -> Outcome {
        (self.on_text)(evidence)
    }
}
