//! Properties of the initialisations.

use burn::nn::attention::MultiHeadAttentionConfig;
use burn::tensor::backend::Backend;
use proptest::prelude::*;
use wqk::attention::init::{draw, initialise, initialise_burn};
use wqk::attention::{
    AttentionError, AttentionInit, ControlInit, IndependentInit, MimeticInit, SelfAttention,
    SelfAttentionConfig, SymmetricInit,
};
use wqk::bilinear::{BilinearForm, SymmetryNull};
use wqk::random;

use crate::support::*;

fn layer<B: Backend>(shape: Shape, init: impl Into<AttentionInit>, seed: u64) -> SelfAttention<B> {
    SelfAttentionConfig::new(shape.d_model, shape.heads.n_heads())
        .with_n_kv_heads(shape.heads.n_kv_heads())
        .with_head_dim(shape.head_dim)
        .with_init(init)
        .init(&Default::default(), &mut random::stream(seed, ["init"]))
        .expect("valid settings")
}

pub fn tied_is_symmetric_in_every_head<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        for init in [SymmetricInit::tied(), SymmetricInit::copied()] {
            let form = layer::<B>(shape, init, seed).form().unwrap();
            let all = form.heads().chain([form.clone()]);
            for s in all.map(|form| form.symmetry().unwrap()) {
                // W_k and W_q S are rounded to f32 apart, which takes about ε from s, and the sums some more.
                prop_assert!(s > 1.0 - 1e-5, "{:?}: {}", init, s);
            }
            let layer = form.measure(2.0, true).unwrap();
            prop_assert!(
                layer
                    .heads
                    .unwrap()
                    .iter()
                    .all(|head| head.symmetry.unwrap() > 1.0 - 1e-5)
            );
        }
        // Heads that share a key are distinct, unless copies were asked for.
        if shape.heads.heads_per_group() > 1 {
            let norms = |init| {
                let form = layer::<B>(shape, init, seed).form().unwrap();
                let [a, b] = [0, 1].map(|h| Dense::of(form.head(h).unwrap().full()));
                let difference = Dense::from_fn(a.rows, a.columns, |i, j| a.at(i, j) - b.at(i, j));
                difference.norm() / a.norm()
            };
            prop_assert_eq!(norms(SymmetricInit::copied()), 0.0);
            prop_assert!(norms(SymmetricInit::tied()) > 0.1);
        }
        Ok(())
    });
}

pub fn control_keeps_the_singular_values_alone<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let tied = layer::<B>(shape, SymmetricInit::tied(), seed).form().unwrap();
        let control = layer::<B>(shape, ControlInit::new(), seed).form().unwrap();
        let pairs = tied
            .heads()
            .chain([tied.clone()])
            .zip(control.heads().chain([control.clone()]));
        for (tied, control) in pairs {
            let values = |form: &BilinearForm<B>| form.spectrum().unwrap().singular_values;
            // Both sets come from weights rounded to f32.
            close(&values(&control), &values(&tied), 1e-5)?;
        }
        // A turned form has no direction that its transpose prefers: s has the spread of a random matrix, for the
        // layer; seven standard deviations leave room for the narrow spectrum of a single wide factor.
        let null = SymmetryNull::new(shape.d_model);
        let z = null.z(control.symmetry().unwrap());
        prop_assert!(z.abs() < 7.0, "z = {}", z);
        Ok(())
    });
}

pub fn arms_share_what_they_do_not_set<B: Backend>(profile: &Profile) {
    check(profile, |shape, seed| {
        let arms: [AttentionInit; 4] = [
            AttentionInit::default(),
            SymmetricInit::tied().into(),
            ControlInit::new().into(),
            IndependentInit {
                key_std: Some(1.0),
                ..IndependentInit::default()
            }
            .into(),
        ];
        let [independent, tied, control, scaled] = arms.map(|init| layer::<B>(shape, init, seed));
        let value = |layer: &SelfAttention<B>| host(layer.value.weight.val());
        let output = |layer: &SelfAttention<B>| host(layer.output.weight.val());
        let query = |layer: &SelfAttention<B>| host(layer.query.weight.val());
        for other in [&tied, &control, &scaled] {
            prop_assert_eq!(value(other), value(&independent));
            prop_assert_eq!(output(other), output(&independent));
        }
        prop_assert_eq!(query(&tied), query(&control));
        prop_assert_eq!(query(&scaled), query(&independent));
        // N(0, 0.02) scaled to N(0, 1): the same draws, each rounded to f32.
        let key: Vec<_> = host(independent.key.weight.val())
            .iter()
            .map(|x| x * 50.0)
            .collect();
        close(&host(scaled.key.weight.val()), &key, 1e-6)?;
        prop_assert!(host(tied.query.bias.unwrap().val()).iter().all(|&b| b == 0.0));

        // What the backend holds is what the host drew, to the bit.
        let projections = SelfAttentionConfig::new(shape.d_model, shape.heads.n_heads())
            .with_n_kv_heads(shape.heads.n_kv_heads())
            .with_head_dim(shape.head_dim)
            .projections()
            .unwrap();
        let mut rng = random::stream(seed, ["init"]);
        let weights = draw(&arms[0], &projections, 0.02, &mut rng).unwrap();
        let drawn: Vec<f64> = weights.query.values.iter().map(|&x| f64::from(x)).collect();
        prop_assert_eq!(query(&independent), drawn);
        Ok(())
    });
}

pub fn mimetic_is_close_to_the_identity<B: Backend>(profile: &Profile) {
    // One head as wide as the model truncates nothing: W_q W_kᵀ = α₁ Z + β₁ I and W_v W_o = α₂ Z − β₂ I exactly,
    // with Z of variance 1/d. The mean of the diagonal has the standard error α/d, and the squares off it sum to
    // α²(d − 1) with the relative standard error √2/d; five of each are allowed.
    let d = profile.shapes[0].d_model;
    let shape = Shape {
        d_model: d,
        heads: wqk::bilinear::Heads::multi(1),
        head_dim: d,
    };
    let init = MimeticInit::default();
    let layer = layer::<B>(shape, init, 3);
    let check = |product: Dense, noise: f64, identity: f64| {
        let diagonal = (0..d).map(|i| product.at(i, i)).sum::<f64>() / d as f64;
        assert!(
            (diagonal - identity).abs() < 5.0 * noise / d as f64,
            "diagonal {diagonal} against {identity}"
        );
        let squares: f64 = product.norm().powi(2) - (0..d).map(|i| product.at(i, i).powi(2)).sum::<f64>();
        let expected = noise * noise * (d - 1) as f64;
        assert!(
            (squares / expected - 1.0).abs() < 5.0 * 2f64.sqrt() / d as f64,
            "off the diagonal {squares} against {expected}"
        );
    };
    check(
        Dense::of(layer.form().unwrap().full()),
        init.query_key_noise,
        init.query_key_identity,
    );
    check(
        Dense::of(layer.value.weight.val().matmul(layer.output.weight.val())),
        init.value_output_noise,
        -init.value_output_identity,
    );

    // Narrow heads keep the largest part of the target: trace and symmetry are positive in each.
    for &shape in profile.shapes.iter().filter(|shape| shape.d_model < 100) {
        let form = self::layer::<B>(shape, init, 4).form().unwrap();
        for head in form.heads() {
            assert!(head.symmetry().unwrap() > 0.0);
            assert_eq!(
                head.spectrum().unwrap().singular_values.len(),
                shape.head_dim.min(shape.d_model)
            );
        }
    }
}

pub fn existing_layers_are_drawn_alike<B: Backend>(_: &Profile) {
    let device = Default::default();
    let shape = Shape {
        d_model: 16,
        heads: wqk::bilinear::Heads::multi(4),
        head_dim: 4,
    };
    for init in [
        SymmetricInit::tied().into(),
        AttentionInit::default(),
        ControlInit::new().into(),
    ] {
        let fresh = layer::<B>(shape, init, 9);
        let mut ours = layer::<B>(shape, AttentionInit::default(), 1);
        let id = ours.query.weight.id;
        initialise(&mut ours, &init, 0.02, &mut random::stream(9, ["init"])).unwrap();
        let mut burns = MultiHeadAttentionConfig::new(16, 4).init::<B>(&device);
        initialise_burn(&mut burns, &init, 0.02, &mut random::stream(9, ["init"])).unwrap();
        for (a, b, c) in [
            (&fresh.query, &ours.query, &burns.query),
            (&fresh.key, &ours.key, &burns.key),
            (&fresh.value, &ours.value, &burns.value),
            (&fresh.output, &ours.output, &burns.output),
        ] {
            assert_eq!(host(a.weight.val()), host(b.weight.val()));
            assert_eq!(host(a.weight.val()), host(c.weight.val()));
            assert!(host(c.bias.as_ref().unwrap().val()).iter().all(|&x| x == 0.0));
        }
        assert_eq!(ours.query.weight.id, id, "an optimiser's state would be lost");
        let forms = [fresh.form(), BilinearForm::try_from(&burns)].map(|form| host(form.unwrap().full()));
        assert_eq!(forms[0], forms[1]);
    }
}

pub fn bad_settings_are_named<B: Backend>(_: &Profile) {
    let init = |config: SelfAttentionConfig| {
        config
            .init::<B>(&Default::default(), &mut random::stream(0, ["init"]))
            .expect_err("invalid settings")
    };
    let config = SelfAttentionConfig::new;
    assert_eq!(
        init(config(10, 4)),
        AttentionError::HeadWidth {
            d_model: 10,
            n_heads: 4
        }
    );
    assert_eq!(init(config(0, 4)), AttentionError::Zero("d_model"));
    assert_eq!(
        init(config(8, 4).with_head_dim(0)),
        AttentionError::Zero("head_dim")
    );
    assert!(matches!(init(config(8, 0)), AttentionError::Heads(_)));
    assert!(matches!(
        init(config(8, 4).with_n_kv_heads(3)),
        AttentionError::Heads(_)
    ));
    for bad in [
        config(8, 4).with_dropout(1.0),
        config(8, 4).with_dropout(f64::NAN),
        config(8, 4).with_std(-1.0),
        config(8, 4).with_inverse_temperature(f64::INFINITY),
        config(8, 4).with_init(IndependentInit::with_std(f64::NAN)),
    ] {
        assert!(matches!(init(bad), AttentionError::OutOfRange { .. }));
    }
}
