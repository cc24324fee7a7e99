//! Every claim to every verdict that it can have, by keeping and by breaking its assumptions.

use super::*;
use crate::bilinear::Heads;

fn verdicts(outcome: &Outcome) -> Vec<Verdict> {
    outcome.parts.iter().map(|part| part.verdict).collect()
}

use Verdict::{AssumptionsNotMet as NotMet, ConclusionFails as Fails, Holds};

#[test]
fn one_case_refutes_and_one_bears_out() {
    let part = |assumption: f64, conclusion: f64| {
        Part::new(
            "case",
            vec![Check::at_least("a", assumption, 1.0)],
            vec![Check::at_most("c", conclusion, 1.0)],
        )
    };
    assert_eq!(part(1.0, 1.0).verdict, Holds);
    assert_eq!(part(0.0, 2.0).verdict, NotMet);
    assert_eq!(part(1.0, 2.0).verdict, Fails);
    // What is no number meets nothing.
    assert_eq!(part(f64::NAN, 0.0).verdict, NotMet);
    assert_eq!(part(1.0, f64::NAN).verdict, Fails);
    let mut outcome = tail::synthetic(0);
    let mut with = |parts: Vec<Part>| {
        outcome.parts = parts;
        outcome.verdict()
    };
    assert_eq!(with(vec![part(0.0, 0.0), part(1.0, 0.0)]), Holds);
    assert_eq!(with(vec![part(1.0, 0.0), part(1.0, 2.0)]), Fails);
    assert_eq!(with(vec![part(0.0, 0.0)]), NotMet);
    assert_eq!([Holds, NotMet, Fails].map(Verdict::exit_code), [0, 3, 4]);
}

#[test]
fn claims_are_found_by_name() {
    for claim in Claim::ALL {
        assert_eq!(Claim::find(claim.name).unwrap(), claim);
    }
    let message = Claim::find("riemann").unwrap_err().to_string();
    assert!(
        message.contains("riemann") && message.contains("rank-one"),
        "{message}"
    );
}

#[test]
fn rank_one_each_way() {
    use rank_one::{Errors, Setting, with};
    let base = Setting::default();
    for seed in 0..5 {
        assert_eq!(verdicts(&with(base, seed)), [Holds, Holds]);
        let rotary = with(Setting { rotary: true, ..base }, seed);
        assert_eq!(verdicts(&rotary)[0], NotMet);
        let narrow = with(Setting { head_dim: 3, ..base }, seed);
        assert_eq!(verdicts(&narrow), [Holds, NotMet]);
        let dropped = with(
            Setting {
                errors: Errors::WithoutSoftmax,
                ..base
            },
            seed,
        );
        assert_eq!(dropped.verdict(), Fails);
    }
}

#[test]
fn context_each_way() {
    use context::{Setting, with};
    let base = Setting::default();
    for seed in 0..5 {
        assert_eq!(with(base, seed).verdict(), Holds);
        let twice = Setting {
            occurrences: 2,
            ..base
        };
        assert_eq!(with(twice, seed).verdict(), NotMet);
        let foreign = Setting {
            foreign_gradient: true,
            ..base
        };
        assert_eq!(with(foreign, seed).verdict(), Fails);
    }
}

#[test]
fn growth_each_way() {
    use growth::{Setting, spread, with};
    let base = Setting {
        draws: 4000,
        ..Setting::default()
    };
    assert_eq!(verdicts(&with(&base, 1)), [Holds, Holds]);
    // A context token that is not isotropic, predicted tokens that are, sides that depend on each other.
    for broken in [
        Setting {
            context: spread(32, 8.0),
            ..base.clone()
        },
        Setting {
            predicted: vec![1.0; 32],
            ..base.clone()
        },
        Setting {
            dependent: true,
            ..base.clone()
        },
    ] {
        assert_eq!(verdicts(&with(&broken, 1)), [NotMet, NotMet], "{broken:?}");
    }
}

#[test]
fn counting_each_way() {
    use counting::{Setting, with};
    let base = Setting {
        sequences: 1500,
        ..Setting::default()
    };
    assert_eq!(verdicts(&with(&base, 2)), [Holds, Holds]);
    let anywhere = Setting {
        probabilities: vec![0.1; 32],
        ..base.clone()
    };
    assert_eq!(verdicts(&with(&anywhere, 2)), [NotMet, Holds]);
    let chosen = Setting {
        own_rate: 0.6,
        ..base
    };
    assert_eq!(verdicts(&with(&chosen, 2)), [Holds, NotMet]);
}

#[test]
fn directionality_fails_where_its_proof_says() {
    use directionality::{Anisotropy, Setting, with};
    let case = |anisotropy| Setting {
        anisotropy,
        repeats: 6,
        ..Setting::default()
    };
    let outcome = directionality::synthetic(3);
    assert_eq!(verdicts(&outcome), [Fails, NotMet, NotMet]);
    assert_eq!(outcome.verdict(), Fails);
    let d = |part: &Part| part.conclusions[1].value;
    // The ratio is as printed, and rows dominate by far; with the anisotropy on the other side columns do.
    assert!(
        outcome.parts[0].conclusions[0].met && d(&outcome.parts[0]) > 0.7,
        "{outcome:?}"
    );
    assert!(d(&outcome.parts[1]) < -0.7);
    assert!(d(&outcome.parts[2]).abs() < 0.5);
    let late = Setting {
        early: false,
        ..case(Anisotropy::Predicted)
    };
    let neither = case(Anisotropy::Neither);
    let others = with(&[("late", late), ("isotropic", neither)], 3);
    assert_eq!(others.verdict(), NotMet);
}

#[test]
fn bidirectional_each_way() {
    use bidirectional::{Queries, Setting, with};
    assert_eq!(bidirectional::synthetic(4).verdict(), Holds);
    let masks = Setting {
        queries: Queries::Masks,
        ..Setting::default()
    };
    let outcome = with(masks, 4);
    assert_eq!(outcome.verdict(), NotMet);
    assert!(outcome.parts[0].conclusions.iter().any(|check| !check.met));
}

#[test]
fn symmetry_each_way() {
    use symmetry::{Setting, with};
    let outcome = symmetry::synthetic(5);
    assert_eq!(verdicts(&outcome), [Holds, Holds, Holds, NotMet, NotMet, NotMet]);
    let base = Setting::default();
    let noisy = Setting { noise: 1.0, ..base };
    assert_eq!(with(&[("noisy", noisy)], 5).verdict(), NotMet);
    let crossed = Setting {
        crossed: true,
        ..base
    };
    assert_eq!(with(&[("crossed", crossed)], 5).verdict(), Fails);
}

#[test]
fn symmetry_score_each_way() {
    use symmetry_score::{Setting, with};
    let base = Setting {
        draws: 200,
        ..Setting::default()
    };
    let outcome = with(&base, 6);
    // Range without the factor, with it, orthogonality, 8/n, 1/n.
    assert_eq!(verdicts(&outcome), [Holds, Fails, Holds, Fails, Holds]);
    let shifted = with(&Setting { mean: 1.0, ..base }, 6);
    assert_eq!(verdicts(&shifted)[3..], [NotMet, NotMet]);
}

#[test]
fn directionality_score_each_way() {
    use directionality_score::{Setting, with};
    let base = Setting {
        sizes: vec![48, 192],
        draws: 60,
        ..Setting::default()
    };
    assert_eq!(verdicts(&with(&base, 7)), [Holds; 3]);
    let uneven = Setting {
        row_factor: 4.0,
        ..base
    };
    assert_eq!(verdicts(&with(&uneven, 7))[1..], [NotMet, NotMet]);
}

#[test]
fn tail_each_way() {
    use tail::{Law, part};
    assert_eq!(verdicts(&tail::synthetic(0)), [Holds, Fails, Fails]);
    let same = Law::Laplace(0.0, 1.0);
    assert_eq!(part("same variance", &same, &same, 1.0).verdict, NotMet);
    let moved = Law::Laplace(1.0, 2.0);
    assert_eq!(part("other mean", &moved, &same, 1.0).verdict, NotMet);
}

#[test]
fn convex_hull_each_way() {
    use convex_hull::{Setting, with};
    let base = Setting::default();
    assert_eq!(verdicts(&with(base, 8)), [Holds, NotMet, NotMet]);
    let negative = Setting { scale: -0.4, ..base };
    assert_eq!(with(negative, 8).verdict(), NotMet);
    let linear = Setting { linear: true, ..base };
    assert_eq!(with(linear, 8).verdict(), Fails);
}

#[test]
fn likelihood_each_way() {
    use likelihood::{Setting, with};
    let base = Setting::default();
    for seed in 0..3 {
        assert_eq!(verdicts(&with(base, seed)), [Holds, Holds, NotMet, NotMet]);
    }
    let cyclic = &with(base, 0).parts[2];
    assert!(!cyclic.conclusions[0].met);
    assert_eq!(with(Setting { mass: 0.9, ..base }, 0).verdict(), Fails);
}

#[test]
fn tables_have_a_row_for_every_check() {
    for claim in Claim::ALL {
        let outcome = claim.on_synthetic(0);
        let checks: usize = outcome
            .parts
            .iter()
            .map(|part| part.assumptions.len() + part.conclusions.len())
            .sum();
        assert_eq!(outcome.table().rows().len(), checks, "{}", claim.name);
        let svg = outcome.figure.to_svg();
        let drawn = svg.contains("<circle") || svg.contains("<path");
        assert!(drawn && !svg.contains("no values"), "{}", claim.name);
        // A seed decides everything.
        assert_eq!(claim.on_synthetic(0), outcome, "{}", claim.name);
    }
}

/// Two tiny models on the bundled text, and every claim on them.
#[cfg(feature = "flex")]
#[test]
fn every_claim_on_trained_models() {
    use crate::backend::{Autodiff, Flex};
    use crate::data::bundled;

    let documents: Vec<_> = bundled::documents()
        .unwrap()
        .take(4)
        .collect::<Result<_, _>>()
        .unwrap();
    let settings = TextSettings {
        steps: 12,
        sequence: 16,
        width: 16,
        heads: 2,
        batch: 8,
        ..TextSettings::default()
    };
    let evidence = TextEvidence::train::<Autodiff<Flex>>(
        &documents,
        "four articles",
        &settings,
        &Default::default(),
        &|_, _| {},
    )
    .unwrap();
    assert_eq!(evidence.models[0].layers[0].heads, Heads::multi(2));
    for claim in Claim::ALL {
        let outcome = claim.on_text(&evidence);
        assert!(!outcome.parts.is_empty(), "{}", claim.name);
        let values = outcome
            .parts
            .iter()
            .flat_map(|part| part.assumptions.iter().chain(&part.conclusions));
        for check in values {
            assert!(check.value.is_finite(), "{}: {check:?}", claim.name);
        }
    }
    let on = |name: &str| Claim::find(name).unwrap().on_text(&evidence);
    // The identities hold in every layer of every model; the printed score does not.
    let rank_one = on("rank-one");
    for part in rank_one
        .parts
        .iter()
        .filter(|part| part.name.ends_with("gradient"))
    {
        assert_eq!(part.verdict, Holds, "{part:?}");
    }
    assert_eq!(on("context").verdict(), Holds);
    assert_eq!(on("symmetry-score").verdict(), Fails);
    assert_eq!(verdicts(&on("likelihood")), [NotMet, Holds]);
    assert_eq!(on("convex-hull").verdict(), Holds);
}
