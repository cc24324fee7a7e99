//! The formats against what a hand would write.

use super::*;
use crate::bilinear::{DirectionalityScores, HeadScores, LayerScores};
use crate::checkpoint::family::StackKind;
use crate::checkpoint::{LayerReport, Report, summarise};

/// A layer whose scores are simple functions of its index: symmetry i/4, excess −i/8, definition −i/16; head h has
/// symmetry h/100 and excess −h/100.
fn layer(stack: StackKind, index: usize, n_heads: usize) -> LayerReport {
    let d = |excess: f64| DirectionalityScores {
        definition: excess / 2.0,
        excess,
    };
    let head = |h: usize| HeadScores {
        symmetry: Some(0.01 * h as f64),
        directionality: d(-0.01 * h as f64),
    };
    LayerReport {
        stack,
        index,
        module: format!("layers.{index}.attn"),
        repeats: 1,
        scores: LayerScores {
            d_model: 8 * n_heads,
            n_heads,
            n_kv_heads: n_heads,
            head_dim: 8,
            gamma: 2.0,
            symmetry: Some(0.25 * index as f64),
            directionality: d(-0.125 * index as f64),
            heads: Some((0..n_heads).map(head).collect()),
        },
        folded_norm: None,
        as_published: None,
        significance: None,
    }
}

fn model(layers: usize, n_heads: usize) -> ModelReport {
    let layers: Vec<_> = (0..layers)
        .map(|i| layer(StackKind::Encoder, i, n_heads))
        .collect();
    ModelReport {
        name: "tiny|_model".into(),
        step: None,
        family: "BERT".into(),
        parameters: 1_234_567,
        digest: "0123456789abcdef".repeat(4),
        summary: summarise(&layers),
        layers,
        notes: Vec::new(),
    }
}

fn write(format: Format, models: &[ModelReport], screen: Screen) -> String {
    let made = Made {
        backend: "flex".into(),
        simulation: None,
    };
    let mut writer = Writer::new(format, Settings::default(), made, screen);
    let mut text: String = models.iter().map(|model| writer.model(model)).collect();
    text += &writer.finish();
    text
}

#[test]
fn json_is_the_report_and_keeps_to_its_schema() {
    for n in 0..3 {
        let models = vec![model(3, 2); n];
        let text = write(Format::Json, &models, Screen::default());
        let report: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(report.models, models);
    }
    let json: serde_json::Value =
        serde_json::from_str(&write(Format::Json, &[model(3, 2)], Screen::default())).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(
        (&json["settings"]["gamma"], &json["settings"]["backend"]),
        (&2.0.into(), &"flex".into())
    );
    assert_eq!(
        (&json["settings"]["offset"], &json["settings"]["fold_norm"]),
        (&0.into(), &false.into())
    );
    let model = &json["models"][0];
    assert_eq!(model["parameters"], 1_234_567);
    // Layers 0, 1 and 2 have symmetry 0, 1/4 and 1/2: type-7 quartiles lie halfway between.
    let summary = &model["summary"]["encoder"];
    let symmetry = ["median", "q25", "q75"].map(|part| summary["symmetry"][part].as_f64().unwrap());
    assert_eq!(symmetry, [0.25, 0.125, 0.375]);
    assert_eq!(summary["directionality"]["excess"]["median"], -0.125);
    assert_eq!(summary["directionality"]["definition"]["median"], -0.0625);
    let layer = &model["layers"][1];
    for field in [
        "stack",
        "index",
        "module",
        "d_model",
        "n_heads",
        "n_kv_heads",
        "head_dim",
        "symmetry",
    ] {
        assert!(!layer[field].is_null(), "{field}");
    }
    assert_eq!(layer["directionality"]["excess"], -0.125);
    assert_eq!(layer["heads"][1]["symmetry"], 0.01);
    assert_eq!(layer["heads"][1]["directionality"]["definition"], -0.005);
}

#[test]
fn csv_by_hand() {
    let text = write(Format::Csv, &[model(2, 1)], Screen::default());
    let digest = "0123456789abcdef".repeat(4);
    let lead = "tiny|_model,BERT,1234567,encoder";
    let expected = format!(
        "model,family,parameters,stack,layer,module,head,d_model,n_heads,n_kv_heads,head_dim,symmetry,\
         directionality_definition,directionality_excess,gamma,offset,fold_norm,digest,step\n\
         {lead},0,layers.0.attn,,8,1,1,8,0,0,0,2,0,false,{digest},\n\
         {lead},0,layers.0.attn,0,8,1,1,8,0,0,0,2,0,false,{digest},\n\
         {lead},1,layers.1.attn,,8,1,1,8,0.25,-0.0625,-0.125,2,0,false,{digest},\n\
         {lead},1,layers.1.attn,0,8,1,1,8,0,0,0,2,0,false,{digest},\n"
    );
    assert_eq!(text, expected);
    assert_eq!(write(Format::Csv, &[], Screen::default()).lines().count(), 1);
}

#[test]
fn the_papers_table_by_hand() {
    // Symmetry 0, 1/4, 1/2: 0.25 with quartiles 0.125 away, which rounds to even as 0.12.
    let markdown = write(Format::Markdown, &[model(3, 2)], Screen::default());
    let row = "| tiny\\|\\_model | encoder | 1.2M | 3 | 0.25 ± \\[0.12, 0.12\\] | \
               -0.12 ± \\[0.06, 0.06\\] | -0.06 ± \\[0.03, 0.03\\] |";
    assert_eq!(markdown.lines().nth(2), Some(row));
    let latex = write(Format::Latex, &[model(3, 2), model(3, 2)], Screen::default());
    assert_eq!(
        latex
            .matches("tiny|\\_model & encoder & 1.2M & 3 & 0.25 $\\pm$ [0.12, 0.12]")
            .count(),
        2
    );
    assert_eq!(
        (
            latex.matches("\\begin{tabular}").count(),
            latex.matches("\\end{tabular}").count()
        ),
        (1, 1)
    );
}

#[test]
fn a_deep_model_is_cut_on_a_terminal_only() {
    let deep = [model(126, 2)];
    let file = write(Format::Table, &deep, Screen::default());
    for index in 0..126 {
        assert!(
            file.lines()
                .any(|line| line.trim_start().starts_with(&format!("{index} "))),
            "layer {index}"
        );
    }
    let terminal = write(
        Format::Table,
        &deep,
        Screen {
            width: 80,
            cut: true,
            bold: false,
        },
    );
    assert!(terminal.contains("⋮  102 more layers"), "{terminal}");
    assert!(terminal.lines().count() < 110, "{}", terminal.lines().count());
    assert!(terminal.contains("median [quartiles] over 126 layers"));
}

#[test]
fn many_heads_wrap_to_the_width() {
    let wide = write(
        Format::Table,
        &[model(2, 128)],
        Screen {
            width: 80,
            cut: true,
            bold: false,
        },
    );
    assert!(
        wide.lines().all(|line| line.chars().count() <= 110),
        "the table of layers is the widest"
    );
    let heads = wide.split("symmetry of each head").nth(1).unwrap();
    assert!(heads.starts_with(", 10 in a line"), "{heads}");
    assert!(
        heads
            .lines()
            .skip(1)
            .take(20)
            .all(|line| line.chars().count() <= 80),
        "{heads}"
    );
}

#[test]
fn escape_codes_come_only_when_asked_for() {
    let plain = write(Format::Table, &[model(2, 2)], Screen::default());
    assert!(!plain.contains('\x1b'));
    assert!(
        write(
            Format::Table,
            &[model(2, 2)],
            Screen {
                bold: true,
                ..Screen::default()
            }
        )
        .contains("\x1b[1m")
    );
}
