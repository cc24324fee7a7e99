//! Properties of the bilinear form and its scores.
//!
//! Tolerances: products in f32 of a few hundred standard normal terms are good to about 1e-6 of the largest
//! entry; 1e-5 leaves room for every order of summation. Excess sums divide by what norms have above a
//! threshold, which costs d two more digits: 1e-3.

use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use proptest::prelude::*;
use wqk::bilinear::{BilinearError, BilinearForm, Directionality, Heads, Moments, Path, SymmetryNull};
use wqk::random;

use crate::support::*;

fn same_s(a: &Moments, b: &Moments) -> Result<(), TestCaseError> {
    let (a, b) = (a.symmetry().unwrap(), b.symmetry().unwrap());
    prop_assert!((a - b).abs() < 1e-5, "s {} against {}", a, b);
    Ok(())
}

fn same_d(a: &Moments, b: &Moments, sign: f64) -> Result<(), TestCaseError> {
    if near_threshold(a) {
        return Ok(());
    }
    for (a, b) in directions(a).into_iter().zip(directions(b)) {
        prop_assert!((a - sign * b).abs() < 1e-3, "d {} against {}", a, b);
    }
    Ok(())
}

pub fn scores_are_queries_times_keys<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let (w_q, w_k) = factors(shape, seed);
        let x = Dense::random(seed, "x", 5, shape.d_model);
        let form = form::<B>(&w_q, &w_k, shape.heads);
        let mut sum = vec![0.0; 25];
        for (head, form) in form.heads().enumerate() {
            let r = shape.head_dim;
            let q = x.times(&w_q.block(head * r, r));
            let k = x.times(&w_k.block(shape.heads.group_of(head) * r, r));
            let scores = q.times(&k.transposed());
            close(&host(form.scores(x.tensor()).unwrap()), &scores.values, 1e-5)?;
            for (sum, score) in sum.iter_mut().zip(&scores.values) {
                *sum += score;
            }
        }
        close(&host(form.scores(x.tensor()).unwrap()), &sum, 1e-5)
    });
}

pub fn moments_are_those_of_the_matrix<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let (w_q, w_k) = factors(shape, seed);
        let form = form::<B>(&w_q, &w_k, shape.heads);
        let agree = |moments: Moments, m: &Dense| {
            let n = m.rows;
            let norms = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
                (0..n)
                    .map(|i| (0..n).map(|j| f(i, j).powi(2)).sum::<f64>().sqrt())
                    .collect()
            };
            let trace: f64 = (0..n)
                .map(|i| (0..n).map(|j| m.at(i, j) * m.at(j, i)).sum::<f64>())
                .sum();
            let square = m.norm().powi(2);
            prop_assert!(
                (moments.trace_of_square() - trace).abs() < 1e-5 * square,
                "trace {} against {}, of {}",
                moments.trace_of_square(),
                trace,
                square
            );
            // The factored path takes the roots of squared norms, which doubles a relative error near 0.
            close(&moments.row_norms(), &norms(&|i, j| m.at(i, j)), 1e-4)?;
            close(&moments.column_norms(), &norms(&|i, j| m.at(j, i)), 1e-4)?;
            close(&[moments.frobenius_norm()], &[m.norm()], 1e-5)
        };
        let m = layer_matrix(&w_q, &w_k, shape);
        close(&host(form.full()), &m.values, 1e-5)?;
        for path in [Path::Factored, Path::Dense] {
            agree(form.moments_by(path), &m)?;
        }
        agree(form.moments(), &m)?;
        let together = form.head_moments();
        prop_assert_eq!(together.len(), shape.heads.n_heads());
        for (head, (alone, together)) in form.heads().zip(together).enumerate() {
            let m = head_matrix(&w_q, &w_k, shape, head);
            agree(together, &m)?;
            for path in [Path::Factored, Path::Dense] {
                agree(alone.moments_by(path), &m)?;
            }
        }
        Ok(())
    });
}

pub fn scores_stay_in_range<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let (w_q, w_k) = factors(shape, seed);
        let form = form::<B>(&w_q, &w_k, shape.heads);
        for gamma in [-1.0, 0.0, 0.5, 2.0, 10.0] {
            let layer = form.measure(gamma, true).unwrap();
            let heads = layer.heads.unwrap();
            let all = heads
                .iter()
                .map(|head| (head.symmetry, head.directionality))
                .chain([(layer.symmetry, layer.directionality)]);
            for (symmetry, d) in all {
                for score in [symmetry.unwrap(), d.definition, d.excess] {
                    prop_assert!((-1.0..=1.0).contains(&score), "{}", score);
                }
            }
        }
        Ok(())
    });
}

pub fn parts_are_symmetric_and_skew<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let (w_q, w_k) = factors(shape, seed);
        let form = form::<B>(&w_q, &w_k, shape.heads);
        let (symmetric, skew) = (Dense::of(form.symmetric_part()), Dense::of(form.skew_part()));
        let n = shape.d_model;
        for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
            prop_assert_eq!(symmetric.at(i, j), symmetric.at(j, i));
            prop_assert_eq!(skew.at(i, j), -skew.at(j, i));
        }
        let moments = form.moments();
        close(&[moments.symmetric_norm()], &[symmetric.norm()], 1e-4)?;
        close(&[moments.skew_norm()], &[skew.norm()], 1e-4)
    });
}

pub fn transposition_keeps_s_and_negates_d<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let (w_q, w_k) = factors(shape, seed);
        let m = layer_matrix(&w_q, &w_k, shape);
        let (straight, turned) = (
            form_of::<B>(&m).moments(),
            form_of::<B>(&m.transposed()).moments(),
        );
        same_s(&straight, &turned)?;
        same_d(&straight, &turned, -1.0)
    });
}

pub fn scaling_changes_no_score<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let (w_q, w_k) = factors(shape, seed);
        let before = form::<B>(&w_q, &w_k, shape.heads);
        // 1e-15 and 1e12 put the squares of the entries, or their sums, outside of f32.
        for factor in [-3.0, 1e-15, 1e12] {
            let scaled = Dense::from_fn(w_q.rows, w_q.columns, |i, j| factor * w_q.at(i, j));
            let after = form::<B>(&scaled, &w_k, shape.heads);
            for path in [Path::Factored, Path::Dense] {
                same_s(&before.moments_by(path), &after.moments_by(path))?;
                same_d(&before.moments_by(path), &after.moments_by(path), 1.0)?;
            }
            for (before, after) in before.head_moments().iter().zip(&after.head_moments()) {
                same_s(before, after)?;
                same_d(before, after, 1.0)?;
                let norm = before.frobenius_norm() * factor.abs();
                close(&[after.frobenius_norm()], &[norm], 1e-5)?;
            }
        }
        Ok(())
    });
}

pub fn signed_permutations_change_no_score<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let (w_q, w_k) = factors(shape, seed);
        // A permutation of the basis by sorting random keys, and its signs.
        let keys = Dense::random(seed, "permutation", shape.d_model, 1).values;
        let mut order: Vec<usize> = (0..shape.d_model).collect();
        order.sort_by(|&a, &b| keys[a].total_cmp(&keys[b]));
        let turn = |w: &Dense| Dense::from_fn(w.rows, w.columns, |i, j| w.at(order[i], j) * keys[i].signum());
        let before = form::<B>(&w_q, &w_k, shape.heads).moments();
        let after = form::<B>(&turn(&w_q), &turn(&w_k), shape.heads).moments();
        same_s(&before, &after)?;
        same_d(&before, &after, 1.0)
    });
}

pub fn rotations_keep_s_but_not_d<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let n = shape.d_model;
        let (w_q, w_k) = factors(shape, seed);
        let u = Dense::orthogonal(seed, n);
        let before = form::<B>(&w_q, &w_k, shape.heads).moments();
        let after = form::<B>(&u.times(&w_q), &u.times(&w_k), shape.heads).moments();
        same_s(&before, &after)?;
        // M = e₀ 1ᵀ has one row, which alone exceeds, and equal columns: d = 1. The reflection H that swaps e₀ and
        // 1/√n makes it 1 e₀ᵀ, one column: d = −1.
        let root = (n as f64).sqrt();
        let axis = |i: usize| f64::from(i == 0) - 1.0 / root;
        let reflection = Dense::from_fn(n, n, |i, j| {
            f64::from(i == j) - axis(i) * axis(j) / (1.0 - 1.0 / root)
        });
        let row = Dense::from_fn(n, n, |i, _| f64::from(i == 0));
        let turned = reflection.times(&row).times(&reflection.transposed());
        prop_assert_eq!(directions(&form_of::<B>(&row).moments()), [1.0, 1.0]);
        prop_assert_eq!(directions(&form_of::<B>(&turned).moments()), [-1.0, -1.0]);
        Ok(())
    });
}

pub fn inner_changes_of_basis_change_nothing<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        // One key head a query head, and for each the change R = D E: D scales the columns, E = I + c e₁ e₀ᵀ adds c
        // times column 1 to column 0. Then R⁻ᵀ = D⁻¹ E⁻ᵀ with E⁻ᵀ = I − c e₀ e₁ᵀ.
        let heads = Heads::multi(shape.heads.n_heads());
        let r = shape.head_dim;
        let (w_q, w_k) = factors(Shape { heads, ..shape }, seed);
        let (c, scale) = (0.7, |j: usize| if j.is_multiple_of(2) { 2.0 } else { 0.5 });
        let q = Dense::from_fn(w_q.rows, w_q.columns, |i, j| {
            let added = if j % r == 0 && r > 1 {
                c * scale(1) * w_q.at(i, j + 1)
            } else {
                0.0
            };
            scale(j % r) * w_q.at(i, j) + added
        });
        let k = Dense::from_fn(w_k.rows, w_k.columns, |i, j| {
            let added = if j % r == 1 {
                -c * w_k.at(i, j - 1) / scale(0)
            } else {
                0.0
            };
            w_k.at(i, j) / scale(j % r) + added
        });
        let (before, after) = (form::<B>(&w_q, &w_k, heads), form::<B>(&q, &k, heads));
        close(&host(after.full()), &host(before.full()), 1e-5)?;
        for (before, after) in before.head_moments().iter().zip(&after.head_moments()) {
            same_s(before, after)?;
            same_d(before, after, 1.0)?;
        }
        Ok(())
    });
}

pub fn symmetric_and_skew_forms_score_one<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let a = Dense::random(seed, "a", shape.d_model, 1);
        let b = Dense::random(seed, "b", shape.d_model, 1);
        let side = |x: &Dense, y: &Dense, sign: f64| {
            Dense::from_fn(
                x.rows,
                2,
                |i, j| if j == 0 { x.at(i, 0) } else { sign * y.at(i, 0) },
            )
        };
        // a bᵀ ± b aᵀ, as one head of width 2 and as two of width 1.
        for heads in [Heads::multi(1), Heads::multi(2)] {
            for sign in [1.0, -1.0] {
                let form = form::<B>(&side(&a, &b, 1.0), &side(&b, &a, sign), heads);
                for path in [Path::Factored, Path::Dense] {
                    let s = form.moments_by(path).symmetry().unwrap();
                    prop_assert!((s - sign).abs() < 1e-5, "{}", s);
                }
            }
        }
        Ok(())
    });
}

pub fn degenerate_forms<B: Backend>(profile: &Profile) {
    let n = profile.shapes[0].d_model;
    let d = |form: &BilinearForm<B>| directions(&form.moments());

    let zero = form_of::<B>(&Dense::from_fn(n, n, |_, _| 0.0));
    assert_eq!(zero.symmetry(), Err(BilinearError::Zero));
    assert_eq!(d(&zero), [0.0, 0.0]);
    let scores = zero.measure(2.0, true).unwrap();
    assert_eq!(scores.symmetry, None);

    // All norms of an orthogonal matrix are 1, up to rounding.
    for seed in 0..4 {
        let form = form_of::<B>(&Dense::orthogonal(seed, n));
        assert_eq!(d(&form), [0.0, 0.0]);
        assert_eq!(directions(&form.moments_by(Path::Factored)), [0.0, 0.0]);
    }

    // One dimension: s = 1 and no spread.
    let one = form_of::<B>(&Dense::from_fn(1, 1, |_, _| -2.0));
    assert_eq!(one.symmetry(), Ok(1.0));
    assert_eq!(d(&one), [0.0, 0.0]);

    // A head of zeros beside one that is none.
    let (w, mut v) = (Dense::random(1, "w", n, 2), Dense::random(1, "v", n, 2));
    (0..n).for_each(|i| v.values[2 * i] = 0.0);
    let heads = form::<B>(&w, &v, Heads::multi(2))
        .measure(2.0, true)
        .unwrap()
        .heads
        .unwrap();
    assert_eq!(heads[0].symmetry, None);
    assert!(heads[1].symmetry.is_some());
}

pub fn spectrum_agrees_with_the_moments<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let (w_q, w_k) = factors(shape, seed);
        for (head, form) in form::<B>(&w_q, &w_k, shape.heads).heads().enumerate() {
            let spectrum = form.spectrum().unwrap();
            let moments = form.moments();
            // ‖M‖² = Σ σ², Tr M = Σ λ, Tr(MM) = Σ λ².
            let norm = spectrum.singular_values.iter().map(|s| s * s).sum::<f64>().sqrt();
            close(&[moments.frobenius_norm()], &[norm], 1e-5)?;
            let m = head_matrix(&w_q, &w_k, shape, head);
            let trace: f64 = (0..m.rows).map(|i| m.at(i, i)).sum();
            let sum: f64 = spectrum.eigenvalues.iter().map(|z| z.0).sum();
            prop_assert!((trace - sum).abs() < 1e-5 * norm, "{} against {}", trace, sum);
            let squares: f64 = spectrum.eigenvalues.iter().map(|z| z.0 * z.0 - z.1 * z.1).sum();
            prop_assert!((moments.trace_of_square() - squares).abs() < 1e-5 * norm * norm);
        }
        // A Gram matrix has real eigenvalues, equal to its singular values.
        let gram = form::<B>(&w_k, &w_k, Heads::multi(1)).spectrum().unwrap();
        let summary = gram.summary().unwrap();
        prop_assert!((summary.positivity - 1.0).abs() < 1e-5 && summary.imaginary < 1e-5);
        let largest = gram.singular_values[0];
        prop_assert!((summary.spectral_radius / largest - 1.0).abs() < 1e-5);
        Ok(())
    });
}

pub fn random_forms_follow_the_null_law<B: Backend>(profile: &Profile) {
    // Mean 1/n and standard deviation about √2/n, for independent entries and for Gaussian factors of any inner
    // width and grouping. The mean of the draws has the standard error √2/n/√draws and their spread the relative
    // one 1/√(2 draws); five of each are allowed, and 5 % for "about".
    let n = profile.shapes[0].d_model * 2;
    let null = SymmetryNull::new(n);
    let layouts = [
        (Heads::multi(1), n),
        (Heads::multi(4), 3),
        (Heads::grouped(4, 2), 2),
    ];
    for (heads, head_dim) in layouts {
        let shape = Shape {
            d_model: n,
            heads,
            head_dim,
        };
        let scores: Vec<f64> = (0..profile.draws as u64)
            .map(|seed| {
                let (w_q, w_k) = factors(shape, seed);
                form::<B>(&w_q, &w_k, heads).symmetry().unwrap()
            })
            .collect();
        let draws = scores.len() as f64;
        let mean = scores.iter().sum::<f64>() / draws;
        let std = (scores.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (draws - 1.0)).sqrt();
        assert!(
            (mean - null.mean).abs() < 5.0 * null.std / draws.sqrt(),
            "{heads:?}: mean {mean} against {}",
            null.mean
        );
        let allowed = 5.0 / (2.0 * draws).sqrt() + 0.05;
        assert!(
            (std / null.std - 1.0).abs() < allowed,
            "{heads:?}: spread {std} against {}",
            null.std
        );
    }
}

pub fn bad_input_is_named<B: Backend>(_: &Profile) {
    let device = Default::default();
    let zeros = |rows, columns| Tensor::<B, 2>::zeros([rows, columns], &device);
    let new = |q, k, heads| BilinearForm::new(q, k, heads).unwrap_err();
    assert_eq!(
        new(zeros(4, 4), zeros(4, 4), Heads::multi(0)),
        BilinearError::NoHeads {
            n_heads: 0,
            n_kv_heads: 0
        }
    );
    assert_eq!(
        new(zeros(4, 6), zeros(4, 4), Heads::grouped(3, 2)),
        BilinearError::UnevenGroups {
            n_heads: 3,
            n_kv_heads: 2
        }
    );
    assert_eq!(
        new(zeros(4, 4), zeros(4, 5), Heads::multi(2)).to_string(),
        "w_k has shape [4, 5]: its columns do not divide among 2 heads"
    );
    assert!(matches!(
        new(zeros(4, 4), zeros(5, 4), Heads::multi(2)),
        BilinearError::Mismatch { .. }
    ));
    assert!(matches!(
        new(zeros(4, 4), zeros(4, 4), Heads::grouped(4, 2)),
        BilinearError::Mismatch { .. }
    ));
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let spoilt = Tensor::from_floats([[0.0, bad], [1.0, 2.0]], &device);
        assert_eq!(
            new(zeros(2, 2), spoilt, Heads::multi(1)),
            BilinearError::NotFinite {
                argument: "w_k",
                shape: [2, 2]
            }
        );
    }
    // Finite entries whose sum is not.
    let large = Tensor::<B, 2>::full([2, 2], 3e38, &device);
    let form = BilinearForm::new(large.clone(), large, Heads::multi(1)).unwrap();
    assert!((form.symmetry().unwrap() - 1.0).abs() < 1e-6);

    let x = Tensor::from_data(
        burn::tensor::TensorData::new(random::normal(&mut random::stream(0, ["x"]), 3, 1.0), [1, 3]),
        &device,
    );
    assert!(matches!(form.scores(x), Err(BilinearError::Tokens { .. })));
    assert!(matches!(
        form.head(1),
        Err(BilinearError::NoSuchHead { index: 1, n_heads: 1 })
    ));
    let nan = Directionality::excess().with_gamma(f64::NAN);
    assert!(matches!(form.directionality(nan), Err(BilinearError::Gamma(_))));
}
