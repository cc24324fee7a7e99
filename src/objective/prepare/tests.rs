use super::*;
use crate::random;

/// Special tokens 0 to 4, ordinary ones 5 to 29.
fn vocabulary() -> Vocabulary {
    Vocabulary {
        size: 30,
        pad: Some(0),
        unk: Some(1),
        cls: Some(2),
        sep: Some(3),
        mask: Some(4),
    }
}

fn rng(place: &str) -> Rng {
    random::stream(5, [place])
}

/// Ordinary tokens, each its own number, with a separator at every tenth position.
fn text(len: usize) -> Vec<u32> {
    (0..len)
        .map(|i| if i % 10 == 9 { 3 } else { 5 + (i * 7 % 25) as u32 })
        .collect()
}

/// Whether a count of successes lies within five standard deviations of its binomial mean.
fn assert_binomial(successes: usize, trials: usize, p: f64) {
    let (mean, deviation) = (trials as f64 * p, (trials as f64 * p * (1.0 - p)).sqrt());
    assert!(
        (successes as f64 - mean).abs() < 5.0 * deviation,
        "{successes} of {trials}, expected {mean} ± {deviation}"
    );
}

#[test]
fn next_tokens() {
    let tokens = [5, 6, 3, 7, 8, 0];
    let prepared = ObjectiveMode::autoregressive()
        .prepare(&tokens, 2, 3, &vocabulary(), &mut rng("next"))
        .unwrap();
    assert_eq!(prepared.inputs, tokens);
    // The separator is predicted, padding is not, and nothing crosses from one sequence to the next.
    assert_eq!(prepared.positions, [0, 1, 3]);
    assert_eq!(prepared.targets, [6, 3, 8]);
}

#[test]
fn a_prefix_is_given() {
    let tokens = [5, 6, 7, 8, 9, 10, 11, 12];
    let prepared = ObjectiveMode::prefix_lm(0.5)
        .unwrap()
        .prepare(&tokens, 2, 4, &vocabulary(), &mut rng("prefix"))
        .unwrap();
    assert_eq!(prepared.inputs, tokens);
    assert_eq!(prepared.positions, [1, 2, 5, 6]);
    assert_eq!(prepared.targets, [7, 8, 11, 12]);
}

#[test]
fn masking_frequencies() {
    let (batch, n, rate) = (500, 100, 0.15);
    let tokens = text(batch * n);
    let prepared = ObjectiveMode::masked(rate)
        .unwrap()
        .prepare(&tokens, batch, n, &vocabulary(), &mut rng("frequencies"))
        .unwrap();
    let ordinary = tokens.iter().filter(|&&token| token > 4).count();
    let selected = prepared.positions.len();
    assert_binomial(selected, ordinary, rate);

    let (mut masked, mut random, mut kept) = (0, 0, 0);
    let mut drawn = [0usize; 30];
    for (&position, &target) in prepared.positions.iter().zip(&prepared.targets) {
        let (before, after) = (tokens[position as usize], prepared.inputs[position as usize]);
        assert_eq!(target, before);
        assert!(before > 4, "special token {before} was selected");
        if after == 4 {
            masked += 1;
        } else if after == before {
            kept += 1;
        } else {
            random += 1;
            drawn[after as usize] += 1;
        }
    }
    assert_binomial(masked, selected, 0.8);
    // One in 25 random draws gives the token itself.
    assert_binomial(random, selected, 0.1 * 24.0 / 25.0);
    assert_binomial(kept, selected, 0.1 + 0.1 / 25.0);
    // Random tokens are ordinary, and evenly drawn.
    assert_eq!(drawn[..5], [0; 5]);
    for count in &drawn[5..] {
        assert_binomial(*count, random, 1.0 / 25.0);
    }
    // What was not selected is untouched.
    let changed = tokens
        .iter()
        .zip(&prepared.inputs)
        .filter(|(a, b)| a != b)
        .count();
    assert_eq!(changed, masked + random);
}

#[test]
fn corruption_is_configurable() {
    let tokens = text(1000);
    let prepare = |mask, random, vocabulary: &Vocabulary| {
        let masking = Masking::new(0.5, Corruption::new(mask, random).unwrap()).unwrap();
        ObjectiveMode::Masked(masking).prepare(&tokens, 10, 100, vocabulary, &mut rng("shares"))
    };
    let all_masked = prepare(1.0, 0.0, &vocabulary()).unwrap();
    assert!(
        all_masked
            .positions
            .iter()
            .all(|&p| all_masked.inputs[p as usize] == 4)
    );
    // Without corruption no mask token is needed.
    let none = Vocabulary {
        mask: None,
        ..vocabulary()
    };
    assert_eq!(prepare(0.0, 0.0, &none).unwrap().inputs, tokens);
    assert_eq!(prepare(0.8, 0.1, &none), Err(ObjectiveError::NoMaskToken));
}

/// The structure paper's decoder mode: the masking of the encoder, predicted one position earlier.
#[test]
fn masked_causal_is_masking_shifted() {
    let (batch, n) = (20, 10);
    let tokens = text(batch * n);
    let prepare = |mode: ObjectiveMode| {
        mode.prepare(&tokens, batch, n, &vocabulary(), &mut rng("shifted"))
            .unwrap()
    };
    let masked = prepare(ObjectiveMode::masked(0.3).unwrap());
    let shifted = prepare(ObjectiveMode::masked_causal(0.3).unwrap());
    assert_eq!(shifted.inputs, masked.inputs);
    let expected: Vec<(u32, u32)> = masked
        .positions
        .iter()
        .zip(&masked.targets)
        .filter(|(position, _)| !(**position as usize).is_multiple_of(n))
        .map(|(position, target)| (position - 1, *target))
        .collect();
    assert!(
        expected.len() < masked.positions.len(),
        "some first token was selected"
    );
    let got: Vec<(u32, u32)> = shifted.positions.into_iter().zip(shifted.targets).collect();
    assert_eq!(got, expected);
}

#[test]
fn something_is_always_predicted() {
    // At this rate a draw over four tokens selects nothing in all but one of 25 million.
    let rate = 1e-8;
    let mut seen = [0usize; 4];
    let mut rng = rng("at least one");
    for _ in 0..300 {
        for mode in [
            ObjectiveMode::masked(rate).unwrap(),
            ObjectiveMode::masked_causal(rate).unwrap(),
        ] {
            let prepared = mode
                .prepare(&[5, 6, 3, 7], 1, 4, &vocabulary(), &mut rng)
                .unwrap();
            assert_eq!(prepared.positions.len(), 1);
            if mode.name() == "masked" {
                seen[prepared.positions[0] as usize] += 1;
            } else {
                assert!(
                    [0, 2].contains(&prepared.positions[0]),
                    "{:?}",
                    prepared.positions
                );
            }
        }
    }
    assert_eq!(seen[2], 0, "a special token was selected");
    for count in [seen[0], seen[1], seen[3]] {
        assert_binomial(count, 300, 1.0 / 3.0);
    }
}

#[test]
fn each_token_masked_in_turn() {
    let tokens = [5, 3, 6, 7, 8, 9];
    let prepared = ObjectiveMode::pseudo_likelihood()
        .prepare(&tokens, 2, 3, &vocabulary(), &mut rng("turn"))
        .unwrap();
    assert_eq!(prepared.batch, 5);
    assert_eq!(prepared.inputs, [4, 3, 6, 5, 3, 4, 4, 8, 9, 7, 4, 9, 7, 8, 4]);
    assert_eq!(prepared.positions, [0, 5, 6, 10, 14]);
    assert_eq!(prepared.targets, [5, 6, 7, 8, 9]);

    let chunks: Vec<Prepared> = prepared.chunks(2).collect();
    assert_eq!(chunks.iter().map(|c| c.batch).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(chunks[1].inputs, [4, 8, 9, 7, 4, 9]);
    assert_eq!(chunks[1].positions, [0, 4]);
    assert_eq!(chunks[1].targets, [7, 8]);
    assert_eq!(chunks[2].positions, [2]);
    assert_eq!(prepared.chunks(0).count(), 5);
    // A piece in which nothing is predicted is left out.
    let sparse = Prepared {
        inputs: vec![5; 6],
        positions: vec![5],
        targets: vec![5],
        batch: 3,
        n: 2,
    };
    assert_eq!(sparse.chunks(1).count(), 1);
    assert_eq!(sparse.chunks(1).next().unwrap().positions, [1]);
}

#[test]
fn the_stream_decides() {
    let tokens = text(200);
    let mode = ObjectiveMode::masked(0.15).unwrap();
    let draw = |place| {
        mode.prepare(&tokens, 2, 100, &vocabulary(), &mut rng(place))
            .unwrap()
    };
    assert_eq!(draw("a"), draw("a"));
    assert_ne!(draw("a"), draw("b"));
}

#[test]
fn tokens_that_do_not_fit() {
    let prepare = |tokens: &[u32], batch, n| {
        ObjectiveMode::masked(0.15)
            .unwrap()
            .prepare(tokens, batch, n, &vocabulary(), &mut rng("bad"))
    };
    assert_eq!(
        prepare(&[5; 5], 2, 3),
        Err(ObjectiveError::Shape {
            tokens: 5,
            batch: 2,
            n: 3
        })
    );
    assert!(matches!(prepare(&[], 0, 3), Err(ObjectiveError::Shape { .. })));
    assert_eq!(prepare(&[5; 3], 3, 1), Err(ObjectiveError::TooShort(1)));
    assert_eq!(
        prepare(&[5, 6, 30], 1, 3),
        Err(ObjectiveError::UnknownToken {
            token: 30,
            position: 2,
            size: 30
        })
    );
    assert_eq!(
        prepare(&[3, 2, 0], 1, 3),
        Err(ObjectiveError::NothingToPredict { tokens: 3 })
    );
    let padding = ObjectiveMode::autoregressive().prepare(&[5, 0], 1, 2, &vocabulary(), &mut rng("bad"));
    assert_eq!(padding, Err(ObjectiveError::NothingToPredict { tokens: 2 }));
}

#[test]
fn what_positions_hold_and_predict() {
    let prepared = Prepared {
        inputs: vec![5, 6, 4, 8],
        positions: vec![0, 2],
        targets: vec![6, 7],
        batch: 2,
        n: 2,
    };
    assert_eq!(prepared.held(), [Some(5), Some(6), Some(4), Some(8)]);
    assert_eq!(prepared.predicted(), [Some(6), None, Some(7), None]);
}
