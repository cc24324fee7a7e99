//! Properties that hold on every backend: each is generic over `B` and runs once for each backend that the
//! build holds.
//!
//! Weights are drawn on the host from a seed that `proptest` chooses, shapes from the list of the backend: wgpu
//! compiles kernels for each shape, so it gets two shapes and few cases.

#[path = "properties/attention.rs"]
mod attention;
#[path = "properties/bilinear.rs"]
mod bilinear;
#[path = "properties/init.rs"]
mod init;
#[path = "properties/signal.rs"]
mod signal;
#[path = "properties/support.rs"]
mod support;
#[cfg(feature = "flex")]
#[path = "properties/training.rs"]
mod training;
#[path = "properties/updates.rs"]
mod updates;

macro_rules! properties {
    ($backend:ident, $B:ty, $profile:expr, [$($module:ident :: $property:ident),* $(,)?]) => {
        mod $backend {
            $(#[test] fn $property() { crate::$module::$property::<$B>(&$profile); })*
        }
    };
}

macro_rules! on_backend {
    ($backend:ident, $B:ty, $profile:expr) => {
        properties!(
            $backend,
            $B,
            $profile,
            [
                bilinear::scores_are_queries_times_keys,
                bilinear::moments_are_those_of_the_matrix,
                bilinear::scores_stay_in_range,
                bilinear::parts_are_symmetric_and_skew,
                bilinear::transposition_keeps_s_and_negates_d,
                bilinear::scaling_changes_no_score,
                bilinear::signed_permutations_change_no_score,
                bilinear::rotations_keep_s_but_not_d,
                bilinear::inner_changes_of_basis_change_nothing,
                bilinear::symmetric_and_skew_forms_score_one,
                bilinear::degenerate_forms,
                bilinear::spectrum_agrees_with_the_moments,
                bilinear::random_forms_follow_the_null_law,
                bilinear::bad_input_is_named,
                attention::output_is_that_of_the_formula,
                attention::detailed_is_the_same,
                attention::grouped_is_multi_head_with_shared_keys,
                attention::agrees_with_burn,
                attention::causal_is_blind_to_the_future,
                attention::padding_is_never_seen,
                attention::fully_masked_rows_are_zero,
                attention::dropout_acts_after_the_softmax,
                attention::gradients_are_those_of_the_raw_scores,
                updates::parts_of_either_side_sum_to_the_gradient,
                updates::symmetric_errors_give_a_symmetric_gradient_not_update,
                updates::exact_updates_are_differences,
                updates::first_order_updates_follow_from_the_gradient,
                updates::bad_gradients_are_named,
                updates::model_gradients_are_those_of_autodiff,
                init::tied_is_symmetric_in_every_head,
                init::control_keeps_the_singular_values_alone,
                init::arms_share_what_they_do_not_set,
                init::mimetic_is_close_to_the_identity,
                init::existing_layers_are_drawn_alike,
                init::bad_settings_are_named,
                signal::identical_tokens_silence_queries_and_keys,
                signal::strengths_and_temperature_are_factors,
                signal::probes_are_of_the_model,
            ]
        );
    };
}

#[cfg(feature = "flex")]
on_backend!(flex, wqk::backend::Flex, crate::support::CPU);
#[cfg(feature = "ndarray")]
on_backend!(ndarray, wqk::backend::NdArray, crate::support::CPU);
#[cfg(feature = "tch")]
on_backend!(tch, wqk::backend::Tch, crate::support::CPU);
#[cfg(feature = "wgpu")]
on_backend!(wgpu, wqk::backend::Wgpu, crate::support::GPU);

/// The loss and the gradients of a layer, and a run of a model, on one backend against another.
#[cfg(feature = "flex")]
mod across {
    #[cfg(feature = "ndarray")]
    #[test]
    fn ndarray_agrees_with_flex() {
        crate::attention::backends_agree::<wqk::backend::Flex, wqk::backend::NdArray>();
        crate::training::runs_agree::<wqk::backend::Flex, wqk::backend::NdArray>();
    }

    #[cfg(feature = "tch")]
    #[test]
    fn tch_agrees_with_flex() {
        crate::attention::backends_agree::<wqk::backend::Flex, wqk::backend::Tch>();
        crate::training::runs_agree::<wqk::backend::Flex, wqk::backend::Tch>();
    }

    #[cfg(feature = "wgpu")]
    #[test]
    fn wgpu_agrees_with_flex() {
        crate::attention::backends_agree::<wqk::backend::Flex, wqk::backend::Wgpu>();
        crate::training::runs_agree::<wqk::backend::Flex, wqk::backend::Wgpu>();
    }
}
