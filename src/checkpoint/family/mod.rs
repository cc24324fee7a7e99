//! The registry of families: which architectures can be read, as data.
//!
//! `families.toml` has one entry a family; its header explains the keys. An entry says where the queries and keys
//! of each stack of layers are and how they lie there. An architecture that is not listed can be described in the
//! same terms at run time, by [`Options`](super::Options).

mod condition;
mod config;
mod entry;
mod pattern;

use std::sync::LazyLock;

pub use condition::Alternatives;
pub(crate) use config::{Config, Size};
pub use entry::{Family, Layout, Stack, StackKind};
pub(crate) use pattern::{Pattern, Place};

static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    parse(include_str!("families.toml")).expect("the embedded registry parses: a test reads it")
});

/// All families, in the order of `families.toml`.
pub fn families() -> &'static [Family] {
    &FAMILIES
}

/// The family that answers for a `model_type` of `config.json`.
pub fn by_model_type(model_type: &str) -> Option<&'static Family> {
    families()
        .iter()
        .find(|family| family.types.iter().any(|t| t == model_type))
}

/// The family of a name, or of a `model_type`; upper and lower case are the same.
pub fn by_name(name: &str) -> Option<&'static Family> {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    families()
        .iter()
        .find(|family| same(&family.name) || family.types.iter().any(|t| same(t)))
}

/// Parses a registry, and gives families that are like another its stacks.
fn parse(text: &str) -> Result<Vec<Family>, String> {
    #[derive(serde::Deserialize)]
    struct Registry {
        family: Vec<Family>,
    }
    let Registry { mut family } = toml::from_str(text).map_err(|e| e.to_string())?;
    for i in 0..family.len() {
        let Some(model) = &family[i].like else { continue };
        let stacks = family
            .iter()
            .find(|other| other.name == *model)
            .map(|other| other.stacks.clone());
        let stacks =
            stacks.ok_or_else(|| format!("{} is like {model}, which is not there", family[i].name))?;
        family[i].stacks.extend(stacks);
    }
    Ok(family)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_registry_is_sound() {
        let families = parse(include_str!("families.toml")).unwrap();
        let mut types = HashSet::new();
        for family in &families {
            assert!(
                !family.stacks.is_empty() && !family.types.is_empty(),
                "{}",
                family.name
            );
            for t in &family.types {
                assert!(types.insert(t.clone()), "{t} is listed twice");
            }
            for stack in &family.stacks {
                let all = || stack.query.all().chain(stack.key.all());
                assert!(
                    all().all(|p| p.contains("{l}")),
                    "{}: a projection without {{l}}",
                    family.name
                );
                let needs_key = matches!(stack.layout, Layout::Separate | Layout::Latent);
                assert_eq!(!stack.key.is_empty(), needs_key, "{}", family.name);
                assert!(
                    stack.rotary.all().all(|r| r == "half" || r == "interleaved"),
                    "{}: unknown rotary convention",
                    family.name
                );
            }
        }
    }

    #[test]
    fn the_families_of_the_structure_paper_are_there() {
        for name in [
            "bert",
            "roberta",
            "xlm-roberta",
            "distilbert",
            "albert",
            "electra",
            "mpnet",
            "modernbert",
            "deberta",
            "deberta-v2",
            "openai-gpt",
            "gpt2",
            "gpt_neo",
            "gptj",
            "gpt_neox",
            "opt",
            "bloom",
            "mpt",
            "falcon",
            "gpt_bigcode",
            "starcoder2",
            "llama",
            "mistral",
            "mixtral",
            "mobilellm",
            "qwen2",
            "qwen3",
            "gemma",
            "gemma2",
            "gemma3",
            "gemma3_text",
            "phi",
            "phi3",
            "olmo2",
            "deepseek_v2",
            "deepseek_v3",
            "t5",
            "mt5",
            "bart",
            "mbart",
            "whisper",
            "speecht5",
            "speech_to_text",
            "detr",
            "mask2former",
            "musicgen",
            "vit",
            "deit",
            "vit_mae",
            "beit",
            "dinov2",
            "imagegpt",
            "clip",
            "siglip",
            "git",
            "sam",
            "mllama",
            "hubert",
            "wav2vec2",
            "wavlm",
            "unispeech",
            "unispeech-sat",
        ] {
            assert!(by_model_type(name).is_some(), "{name}");
        }
        assert!(by_name("gpt-2").is_some() && by_model_type("GPT2").is_none());
    }
}
