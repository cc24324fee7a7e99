//! From folders to groups of runs.

use std::collections::HashMap;
use std::path::PathBuf;

use toml::Table;

use super::setting::{differing, init_name};
use super::{Comparison, Group, InitArm, Member, Setting, SmoothLoss};
use crate::train::{Run, RunFolder, RunInfo, RunStatus, sha256};

/// What cannot be as `wqk train` wrote it, in the files of a run.
fn damage(recipe: &str, info: &RunInfo, run: &Run) -> Option<String> {
    /// Layers of the deepest model that a recipe may hold.
    const DEEPEST: usize = 1 << 14;
    if sha256(recipe.as_bytes()) != info.recipe_sha256 {
        return Some("its recipe.toml is not the one that it ran".to_owned());
    }
    if let Some((_, row)) = (1..).zip(&run.steps).find(|(step, row)| row.step != *step) {
        return Some(format!("its steps.csv is damaged at update {}", row.step));
    }
    let steps = run.steps.iter().map(|row| ("steps.csv", row.step, row.loss));
    let held_out = run
        .held_out
        .iter()
        .map(|row| ("held_out.csv", row.step, row.loss));
    let scores = run.scores.iter().map(|row| ("scores.csv", row.step, 0.0));
    let updates = run.updates.iter().map(|row| ("updates.csv", row.step, 0.0));
    let beyond = |&(_, step, loss): &(_, usize, f64)| step > info.steps || !loss.is_finite();
    let mut rows = steps.chain(held_out).chain(scores).chain(updates);
    if let Some((file, step, _)) = rows.find(beyond) {
        return Some(format!("its {file} is damaged at update {step}"));
    }
    if let Some(row) = run.scores.iter().find(|row| row.layer >= DEEPEST) {
        return Some(format!("its scores.csv is damaged at layer {}", row.layer));
    }
    // A run that came to its end was evaluated and scored there, and its last update taken apart where any were.
    let watched = run.updates.last().map(|row| ("updates.csv", Some(row.step)));
    let ends = [
        ("steps.csv", run.steps.last().map(|row| row.step)),
        ("held_out.csv", run.held_out.last().map(|row| row.step)),
        ("scores.csv", run.scores.last().map(|row| row.step)),
    ];
    let (file, _) = ends
        .into_iter()
        .chain(watched)
        .filter(|_| info.status == RunStatus::Finished)
        .find(|(_, end)| *end != Some(info.steps))?;
    Some(format!("its {file} lacks the end of the run"))
}

impl Comparison {
    /// Reads runs: folders of runs, or folders of such folders.
    ///
    /// What is no run, was given twice, is not finished, or finds nothing to be compared with is said in
    /// the notes; nothing of it is an error.
    pub fn read(paths: &[PathBuf]) -> Self {
        let mut comparison = Self::default();
        let mut met: HashMap<PathBuf, String> = HashMap::new();
        for path in paths {
            let folders = match RunFolder::find(path) {
                Ok(folders) => folders,
                Err(error) => {
                    comparison.notes.push(format!("{error}: it is left out"));
                    continue;
                }
            };
            for folder in folders {
                let shown = folder.path().display().to_string();
                let whole = std::fs::canonicalize(folder.path()).unwrap_or_else(|_| folder.path().to_owned());
                if let Some(first) = met.insert(whole, shown.clone()) {
                    comparison
                        .notes
                        .push(format!("{shown}: the same folder as {first}: it counts once"));
                    continue;
                }
                if let Err(problem) = comparison.add(&folder) {
                    comparison.notes.push(format!("{problem}: it is left out"));
                }
            }
        }
        comparison.sort();
        comparison.note_lengths();
        comparison.note_pairs();
        comparison
    }

    /// Number of runs.
    pub fn n_runs(&self) -> usize {
        self.members().count()
    }

    /// All runs, in the order of their groups.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.groups.iter().flat_map(Group::runs)
    }

    fn add(&mut self, folder: &RunFolder) -> Result<(), String> {
        let shown = folder.path().display().to_string();
        let text = folder.recipe_text().map_err(|error| error.to_string())?;
        let recipe: Table = text.parse().map_err(|error: toml::de::Error| {
            format!("{shown}: its recipe.toml is not TOML ({})", error.message())
        })?;
        let run = folder.read().map_err(|error| error.to_string())?;
        let info = folder.info().clone();
        let done = run.steps.last().map_or(0, |row| row.step);
        if done == 0 {
            return Err(format!("{shown}: no update is logged yet"));
        }
        if let Some(damage) = damage(&text, &info, &run) {
            return Err(format!("{shown}: {damage}: restore it, or run it again"));
        }
        let finished = info.status == RunStatus::Finished && done == info.steps;
        if !finished {
            self.notes.push(unfinished(&shown, &info, done));
        }
        let layers = run.scores.iter().map(|row| row.layer + 1).max();
        let setting = Setting::new(&recipe, layers, &info.data_sha256);
        let name = init_name(recipe.get("init"));
        let losses: Vec<f64> = run.steps.iter().map(|row| row.loss).collect();
        let member = Member {
            folder: shown,
            loss: SmoothLoss::of(&losses, info.steps),
            info,
            run,
            finished,
        };
        let place = self
            .groups
            .iter()
            .position(|group| group.setting.rest == setting.rest && group.setting.is_like(&setting));
        let group = match place {
            Some(place) => &mut self.groups[place],
            None => {
                self.groups.push(Group {
                    setting,
                    arms: Vec::new(),
                });
                let last = self.groups.len() - 1;
                &mut self.groups[last]
            }
        };
        let place = group.arms.iter().position(|arm| arm.name == name);
        let arm = match place {
            Some(place) => &mut group.arms[place],
            None => {
                group.arms.push(InitArm {
                    is_baseline: name == "independent",
                    name,
                    runs: Vec::new(),
                });
                let last = group.arms.len() - 1;
                &mut group.arms[last]
            }
        };
        // The better known of two runs of one recipe and seed is the one that is finished.
        match arm
            .runs
            .iter_mut()
            .find(|other| other.run.seed == member.run.seed)
        {
            None => arm.runs.push(member),
            Some(other) => {
                let (kept, left) = if member.finished && !other.finished {
                    let kept = member.folder.clone();
                    let left = std::mem::replace(other, member);
                    (kept, left.folder)
                } else {
                    (other.folder.clone(), member.folder)
                };
                return Err(format!("{left}: the same recipe and seed as {kept}"));
            }
        }
        Ok(())
    }

    fn sort(&mut self) {
        for group in &mut self.groups {
            group
                .arms
                .sort_by(|a, b| b.is_baseline.cmp(&a.is_baseline).then(a.name.cmp(&b.name)));
            for arm in &mut group.arms {
                arm.runs.sort_by_key(|run| run.run.seed);
            }
        }
        let order = |group: &Group| {
            let setting = &group.setting;
            (
                setting.vision,
                setting.layers,
                setting.data.clone(),
                setting.mode.clone(),
            )
        };
        self.groups.sort_by_key(|group| {
            let (vision, layers, data, mode) = order(group);
            // Encoders before decoders.
            (vision, layers, data, mode != "encoder", mode)
        });
        // Groups that would be called alike are told apart by what differs.
        let settings: Vec<Setting> = self.groups.iter().map(|group| group.setting.clone()).collect();
        for (i, group) in self.groups.iter_mut().enumerate() {
            let like: Vec<usize> = (0..settings.len())
                .filter(|&j| settings[j].is_like(&settings[i]))
                .collect();
            let tables: Vec<&Table> = like.iter().map(|&j| &settings[j].rest).collect();
            let own = like.iter().position(|&j| j == i).unwrap_or(0);
            let fields = differing(&tables).into_iter();
            group.setting.differing = fields
                .map(|(field, values)| (field, short(&values[own])))
                .collect();
        }
    }

    /// Groups that look alike and are not compared.
    fn note_lengths(&mut self) {
        let mut said: Vec<usize> = Vec::new();
        for i in 0..self.groups.len() {
            if said.contains(&i) {
                continue;
            }
            let first = &self.groups[i].setting;
            let like: Vec<usize> = (i..self.groups.len())
                .filter(|&j| self.groups[j].setting.is_like(first))
                .collect();
            if like.len() > 1 {
                let tables: Vec<&Table> = like.iter().map(|&j| &self.groups[j].setting.rest).collect();
                let fields: Vec<String> = differing(&tables)
                    .into_iter()
                    .map(|(field, values)| {
                        let values: Vec<String> = values.iter().map(|value| short(value)).collect();
                        format!("{field} ({})", values.join(" against "))
                    })
                    .collect();
                self.notes.push(format!(
                    "{} on {}: {} groups of runs are not compared with each other, they differ in {}",
                    first.model(),
                    first.data,
                    like.len(),
                    fields.join(", ")
                ));
            }
            said.extend(like);
        }
    }

    /// Arms without a baseline, and seeds without a partner.
    fn note_pairs(&mut self) {
        let mut notes = Vec::new();
        for group in &self.groups {
            let label = group.setting.label();
            let Some(baseline) = group.baseline() else {
                let names: Vec<&str> = group.arms.iter().map(|arm| arm.name.as_str()).collect();
                notes.push(format!(
                    "{label}: no run with independent initialisation to compare with ({} only)",
                    names.join(", ")
                ));
                continue;
            };
            let seeds = |arm: &InitArm| -> Vec<u64> { arm.finished().map(|run| run.run.seed).collect() };
            let base = seeds(baseline);
            for arm in group.arms.iter().filter(|arm| !arm.is_baseline) {
                let own = seeds(arm);
                for (has, lacks, missing) in [
                    (&arm.name, &baseline.name, without(&own, &base)),
                    (&baseline.name, &arm.name, without(&base, &own)),
                ] {
                    if !missing.is_empty() {
                        notes.push(format!(
                            "{label}: {} {} finished as {has} and not as {lacks}: no pair",
                            if missing.len() == 1 { "seed" } else { "seeds" },
                            missing.join(", ")
                        ));
                    }
                }
            }
        }
        self.notes.extend(notes);
    }
}

fn without(these: &[u64], those: &[u64]) -> Vec<String> {
    let missing = these.iter().filter(|seed| !those.contains(seed));
    missing.map(u64::to_string).collect()
}

fn unfinished(folder: &str, info: &crate::train::RunInfo, done: usize) -> String {
    let how = match (info.status, &info.error) {
        (RunStatus::Failed, Some(error)) => format!("failed ({})", error.replace('\n', " ")),
        (RunStatus::Failed, None) => "failed".to_owned(),
        (RunStatus::Stopped, _) => "stopped".to_owned(),
        _ => "not finished".to_owned(),
    };
    format!(
        "{folder}: {how} after {done} of {} updates: its curves are drawn, it counts in no table",
        info.steps
    )
}

/// A value, or the beginning of a long one such as a hash.
fn short(value: &str) -> String {
    const SHOWN: usize = 12;
    if value.chars().count() <= 40 {
        return value.to_owned();
    }
    value.chars().take(SHOWN).chain(['…']).collect()
}
