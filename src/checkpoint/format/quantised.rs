//! Recognising quantised weights, which are refused with a reason.

use serde_json::Value;

/// Suffixes that a quantising library puts in place of, or beside, `weight`, and whose they are.
const MARKS: [(&str, &str); 11] = [
    ("qweight", "packed as GPTQ and AWQ do"),
    ("qzeros", "packed as GPTQ and AWQ do"),
    ("weight.absmax", "packed as bitsandbytes does"),
    ("weight.quant_map", "packed as bitsandbytes does"),
    ("weight.SCB", "packed as bitsandbytes does"),
    ("SCB", "packed as bitsandbytes does"),
    ("weight_packed", "packed as compressed-tensors does"),
    ("weight_scale_inv", "in eight-bit floats with scales by block"),
    ("weight_scale", "in eight bits with scales"),
    ("weight_blocks", "in microscaled blocks"),
    (
        "weight.quant_state.bitsandbytes__nf4",
        "packed as bitsandbytes does",
    ),
];

/// How the weight `name` is quantised, judged by the tensors beside it.
pub(super) fn beside(name: &str, exists: impl Fn(&str) -> bool) -> Option<String> {
    let module = name.strip_suffix("weight")?;
    MARKS.iter().find_map(|(mark, whose)| {
        let tensor = format!("{module}{mark}");
        exists(&tensor).then(|| format!("{whose} (there is {tensor})"))
    })
}

/// The method that `config.json` states under `quantization_config`.
pub(super) fn method(config: &Value) -> Option<String> {
    let settings = config
        .get("quantization_config")
        .filter(|settings| !settings.is_null())?;
    let method = ["quant_method", "quant_type", "quantization_method"]
        .iter()
        .find_map(|key| settings.get(key)?.as_str())
        .unwrap_or("an unnamed method");
    Some(format!("by {method} (quantization_config in config.json)"))
}
