//! The whole report as JSON, in the shape of [`Report`](crate::checkpoint::Report), written as models come.

use serde_json::{Value, json};

use super::{Made, program};
use crate::checkpoint::{ModelReport, SCHEMA, Settings};

fn head() -> String {
    format!("{{\"schema\":{SCHEMA},\"models\":[")
}

pub(super) fn model(model: &ModelReport, first: bool) -> String {
    let before = if first { head() } else { ",".into() };
    let text = serde_json::to_string(model).expect("scores and names are always JSON");
    format!("{before}\n{text}")
}

pub(super) fn end(settings: &Settings, made: &Made, empty: bool) -> String {
    let head = if empty { head() } else { String::new() };
    let mut settings = serde_json::to_value(settings).expect("settings are always JSON");
    if let Value::Object(fields) = &mut settings {
        fields.insert("backend".into(), json!(made.backend));
        if let Some(simulation) = &made.simulation {
            fields.insert(
                "significance".into(),
                json!({ "draws": simulation.draws, "seed": simulation.seed }),
            );
        }
    }
    format!(
        "{head}\n],\"settings\":{settings},\"version\":{}}}\n",
        json!(program())
    )
}
