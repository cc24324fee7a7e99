//! What runs have in common, from their recipes.

use std::path::Path;

use toml::{Table, Value};

/// What the runs of a group have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Whether it is about images.
    pub vision: bool,
    /// Number of layers.
    pub layers: usize,
    /// What was trained on, as the papers call it where they do.
    pub data: String,
    /// `encoder`, `decoder`, or another objective's name; `ViT` for images.
    pub mode: String,
    /// Where several groups share all of the above: the fields in which they differ, with their values.
    pub differing: Vec<(String, String)>,
    /// Every setting but the name, the seed, the initialisation, and what only watches the run.
    pub(super) rest: Table,
}

/// What two runs may differ in and still be compared.
const APART: [&str; 8] = [
    "name",
    "seeds",
    "init",
    "score",
    "updates",
    "checkpoint",
    "about",
    "log",
];

impl Setting {
    /// Reads the setting of a run off its recipe.
    pub(super) fn new(recipe: &Table, layers: Option<usize>, data_sha256: &str) -> Self {
        let mut rest = recipe.clone();
        for field in APART {
            rest.remove(field);
        }
        rest.insert("data_sha256".to_owned(), Value::String(data_sha256.to_owned()));
        let text = |section: &str, field: &str| recipe.get(section)?.get(field)?.as_str();
        let model = text("model", "kind").unwrap_or("text");
        let vision = model != "text";
        Self {
            vision,
            layers: layers.or_else(|| named_layers(recipe)).unwrap_or(0),
            data: data_name(recipe.get("data")),
            mode: match text("objective", "kind") {
                Some("masked") => "encoder".to_owned(),
                Some("autoregressive") => "decoder".to_owned(),
                Some(other) => other.replace('_', " "),
                None if vision => "ViT".to_owned(),
                None => "model".to_owned(),
            },
            differing: Vec::new(),
            rest,
        }
    }

    /// Whether runs of both can be called by the same name.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.vision, self.layers, &self.data, &self.mode)
            == (other.vision, other.layers, &other.data, &other.mode)
    }

    /// The model in words: `4-layer encoder`.
    pub fn model(&self) -> String {
        format!("{}-layer {}", self.layers, self.mode)
    }

    /// All of it in words: `4-layer encoder on Wikipedia`.
    pub fn label(&self) -> String {
        let differing: Vec<String> = self
            .differing
            .iter()
            .map(|(field, value)| format!("{field} = {value}"))
            .collect();
        match differing.as_slice() {
            [] => format!("{} on {}", self.model(), self.data),
            some => format!("{} on {}, {}", self.model(), self.data, some.join(", ")),
        }
    }

    /// The same as part of a file's name.
    pub(super) fn slug(&self) -> String {
        slug(&self.label())
    }
}

/// A text as part of a file's name.
pub(super) fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.to_lowercase().chars() {
        if c.is_alphanumeric() {
            slug.push(c);
        } else if !slug.ends_with('_') {
            slug.push('_');
        }
    }
    slug.trim_matches('_').to_owned()
}

/// Layers of the sizes that have names.
fn named_layers(recipe: &Table) -> Option<usize> {
    let model = recipe.get("model")?;
    if let Some(layers) = model.get("n_layers").and_then(Value::as_integer) {
        return usize::try_from(layers).ok();
    }
    match model.get("size")?.as_str()? {
        "mini" => Some(4),
        "base" => Some(12),
        "large" => Some(24),
        _ => None,
    }
}

/// What the data are called.
fn data_name(data: Option<&Value>) -> String {
    let text = |field: &str| data?.get(field)?.as_str();
    let kind = text("kind").unwrap_or("unknown data");
    match kind {
        "bundled" => return "Wikipedia (bundled)".to_owned(),
        "cifar10" => return "CIFAR-10".to_owned(),
        _ => {}
    }
    let paths = data.and_then(|data| data.get("paths").or_else(|| data.get("path")));
    let first = match paths {
        Some(Value::Array(paths)) => paths.first().and_then(Value::as_str),
        Some(path) => path.as_str(),
        None => None,
    };
    let Some(path) = first else {
        return kind.to_owned();
    };
    let known = path.to_lowercase().replace(['_', '-', ' '], "");
    for (part, name) in [
        ("jigsaw", "Jigsaw"),
        ("redpajama", "Red Pajama"),
        ("wikipedia", "Wikipedia"),
        ("wiki", "Wikipedia"),
        ("imagenet", "ImageNet-1k"),
        ("cifar10", "CIFAR-10"),
    ] {
        if known.contains(part) {
            return name.to_owned();
        }
    }
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    if name.contains(['*', '?']) {
        path.to_owned()
    } else {
        name.into_owned()
    }
}

/// The fields in which tables differ, with their values in each.
pub(super) fn differing(tables: &[&Table]) -> Vec<(String, Vec<String>)> {
    let leaves: Vec<_> = tables.iter().map(|table| leaves(table)).collect();
    let mut names: Vec<&String> = leaves.iter().flat_map(|leaves| leaves.keys()).collect();
    names.sort();
    names.dedup();
    let values = |name: &String| -> Vec<String> {
        leaves
            .iter()
            .map(|leaves| leaves.get(name).cloned().unwrap_or_else(|| "not set".to_owned()))
            .collect()
    };
    names
        .into_iter()
        .map(|name| (name.clone(), values(name)))
        .filter(|(_, values)| values.iter().any(|value| *value != values[0]))
        .collect()
}

fn leaves(table: &Table) -> std::collections::BTreeMap<String, String> {
    fn walk(table: &Table, path: &str, into: &mut std::collections::BTreeMap<String, String>) {
        for (name, value) in table {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            match value {
                Value::Table(table) => walk(table, &path, into),
                Value::String(text) => drop(into.insert(path, text.clone())),
                value => drop(into.insert(path, value.to_string())),
            }
        }
    }
    let mut into = std::collections::BTreeMap::new();
    walk(table, "", &mut into);
    into
}

/// Whether a setting, or a table of them, asks for nothing.
fn is_off(value: &Value) -> bool {
    match value {
        Value::Boolean(on) => !on,
        Value::Table(table) => table.values().all(is_off),
        _ => false,
    }
}

/// What an initialisation is called: the paper's words, and whatever is set beside the scheme.
pub(super) fn init_name(init: Option<&Value>) -> String {
    let Some(Value::Table(init)) = init else {
        return "independent".to_owned();
    };
    let scheme = init
        .get("scheme")
        .and_then(Value::as_str)
        .unwrap_or("independent");
    let name = if scheme == "tied" { "symmetric" } else { scheme };
    let others: Vec<String> = init
        .iter()
        .filter(|(field, value)| *field != "scheme" && !is_off(value))
        .map(|(field, value)| match value {
            Value::Boolean(true) => field.clone(),
            value => format!("{field} = {value}"),
        })
        .collect();
    match others.as_slice() {
        [] => name.to_owned(),
        others => format!("{name}, {}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    #[test]
    fn names_from_recipes() {
        for (recipe, label) in [
            (
                "model = { kind = 'text', size = 'base' }\nobjective = { kind = 'masked', rate = 0.15 }\ndata = { kind = 'text', paths = ['data/wikipedia/*.parquet'] }",
                "12-layer encoder on Wikipedia",
            ),
            (
                "model = { kind = 'text', n_layers = 3 }\nobjective = { kind = 'autoregressive' }\ndata = { kind = 'text', paths = 'x/RedPajama-V2/a.json.gz' }",
                "3-layer decoder on Red Pajama",
            ),
            (
                "model = { kind = 'text', size = 'mini' }\nobjective = { kind = 'masked_causal', rate = 0.15 }\ndata = { kind = 'bundled' }",
                "4-layer masked causal on Wikipedia (bundled)",
            ),
            (
                "model = { kind = 'vit', n_layers = 6 }\ndata = { kind = 'cifar10', path = 'x' }",
                "6-layer ViT on CIFAR-10",
            ),
            (
                "model = { kind = 'text', n_layers = 1 }\nobjective = { kind = 'masked' }\ndata = { kind = 'text', paths = ['a/my texts.txt'] }",
                "1-layer encoder on my texts.txt",
            ),
        ] {
            assert_eq!(Setting::new(&table(recipe), None, "").label(), label);
        }
        assert_eq!(
            slug("4-layer encoder on Wikipedia (bundled)"),
            "4_layer_encoder_on_wikipedia_bundled"
        );
    }

    #[test]
    fn initialisations_by_name() {
        for (init, name) in [
            ("", "independent"),
            ("init = { scheme = 'independent' }", "independent"),
            ("init = { scheme = 'tied', copy = false }", "symmetric"),
            ("init = { scheme = 'tied', copy = true }", "symmetric, copy"),
            ("init = { scheme = 'control' }", "control"),
            ("init = { scheme = 'control', of = { copy = false } }", "control"),
            (
                "init = { scheme = 'independent', query_std = 0.1 }",
                "independent, query_std = 0.1",
            ),
        ] {
            assert_eq!(init_name(table(init).get("init")), name);
        }
    }

    #[test]
    fn what_differs_is_named() {
        let (a, b) = (
            table("train = { steps = 10, rate = 1 }\nx = 1"),
            table("train = { steps = 20, rate = 1 }"),
        );
        let found = differing(&[&a, &b]);
        let expected = [("train.steps", ["10", "20"]), ("x", ["1", "not set"])];
        assert_eq!(found.len(), 2);
        for ((field, values), (name, expected)) in found.iter().zip(expected) {
            assert_eq!(field, name);
            assert_eq!(values, &expected);
        }
    }
}
