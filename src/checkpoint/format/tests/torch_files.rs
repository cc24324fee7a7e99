//! Files that PyTorch itself wrote, `tests/fixtures/torch/make.py`; their values have a closed form.

use super::super::folder::{self, Kind};
use super::super::tensor::Entry;
use super::super::torch;
use super::*;

/// A file among the fixtures.
fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/torch")
        .join(name)
}

/// The element `i` of every fixture tensor, as `make.py` defines it.
fn ramp(i: usize) -> f32 {
    i as f32 / 8.0 - 1.0
}

fn ramps(of: impl IntoIterator<Item = usize>) -> Vec<f32> {
    of.into_iter().map(ramp).collect()
}

#[test]
fn every_container_and_protocol_gives_the_same_tensors() {
    for name in ["zip.pt", "zip-protocol-4.pt", "legacy.pt"] {
        let store = Store::open(&fixture(name)).unwrap();
        assert_eq!(store.names().count(), 15, "{name}");
        let shape = |tensor: &str| store.info(tensor).unwrap().shape.clone();
        let read = |tensor: &str| store.read_f32(tensor).unwrap();
        for tensor in ["f32", "tied", "f64", "f16", "bf16"] {
            assert_eq!(shape(tensor), [3, 4], "{name} {tensor}");
            assert_eq!(read(tensor), ramps(0..12), "{name} {tensor}");
        }
        assert_eq!(shape("transposed"), [4, 3]);
        assert_eq!(read("transposed"), ramps([0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]));
        assert_eq!(
            store.read_rows_f32("transposed", 1..3).unwrap(),
            ramps([1, 5, 9, 2, 6, 10])
        );
        assert_eq!(read("block"), ramps([5, 6, 9, 10]));
        assert_eq!(store.read_slice_f32("block", 1, 1..2).unwrap(), ramps([6, 10]));
        assert_eq!(read("offset"), ramps(8..16));
        assert_eq!(shape("cube"), [4, 2, 3]);
        let cube = (0..4).flat_map(|k| (0..2).flat_map(move |i| (0..3).map(move |j| (i * 3 + j) * 4 + k)));
        assert_eq!(read("cube"), ramps(cube));
        assert_eq!(read("parameter"), ramps(0..5));
        assert_eq!(shape("scalar"), [0; 0]);
        assert_eq!(read("scalar"), [0.5]);
        assert_eq!(shape("empty"), [0, 3]);
        assert_eq!(read("empty"), [0.0; 0]);
        message(store.read_f32("integer"), &["tensor \"integer\" holds I64"]);
        message(store.read_f32("truth"), &["tensor \"truth\" holds BOOL"]);
        message(
            store.read_f32("broadcast"),
            &["tensor \"broadcast\" is a broadcast view", "contiguous()"],
        );
        message(store.digest(&["broadcast"]), &["is a broadcast view"]);
    }
}

#[test]
fn tied_tensors_count_once() {
    let store = Store::open(&fixture("zip.pt")).unwrap();
    let (f32, tied) = (store.info("f32").unwrap(), store.info("tied").unwrap());
    assert_eq!((&f32.file, &f32.bytes), (&tied.file, &tied.bytes));
    // f32, tied and transposed are one; block and offset are views of a fourth tensor that is not
    // itself in the dict; the broadcast one has a thousand elements, if one value.
    assert_eq!(store.parameters(), 12 + 4 + 8 + 3 * 12 + 24 + 5 + 1 + 1000);
}

#[test]
fn the_digest_ignores_the_container_and_the_memory_layout() {
    let zip = Store::open(&fixture("zip.pt")).unwrap();
    let legacy = Store::open(&fixture("legacy.pt")).unwrap();
    let names = ["f32", "transposed", "bf16", "cube", "empty"];
    assert_eq!(zip.digest(&names).unwrap(), legacy.digest(&names).unwrap());

    let header = r#"{"transposed":{"dtype":"F32","shape":[4,3],"data_offsets":[0,48]}}"#;
    let folder = Folder::new();
    let values = ramps([0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
    let path = folder.write("model.safetensors", safetensors(header, &f32_bytes(&values)));
    let safetensors = Store::open(&path).unwrap();
    assert_eq!(
        safetensors.digest(&["transposed"]).unwrap(),
        zip.digest(&["transposed"]).unwrap()
    );
}

#[test]
fn state_dicts_within_a_training_checkpoint() {
    for name in ["nested.pt", "nested-legacy.pt"] {
        let store = Store::open(&fixture(name)).unwrap();
        assert_eq!(store.names().collect::<Vec<_>>(), ["w"], "{name}");
        assert_eq!(store.read_f32("w").unwrap(), ramps(0..4), "{name}");
    }
    refused(
        &fixture("no-tensors.pt"),
        &[
            "holds no tensors by name",
            "state_dict, model_state_dict",
            "\"epoch\"",
        ],
    );
}

#[test]
fn eight_bit_floats_are_named() {
    let store = Store::open(&fixture("float8.pt")).unwrap();
    message(
        store.read_f32("w"),
        &["tensor \"w\" holds F8_E4M3", "unquantised revision"],
    );
}

#[test]
fn whole_modules_and_programs_are_refused() {
    refused(
        &fixture("module.pt"),
        &[
            "torch.nn.modules.linear.Linear",
            "refused, nothing was run",
            "state_dict()",
        ],
    );
    refused(&fixture("torchscript.pt"), &["TorchScript", "torch.jit.load"]);
}

#[test]
fn any_truncation_of_a_real_file_is_refused() {
    for name in ["zip.pt", "legacy.pt", "linear.pt"] {
        let whole = std::fs::read(fixture(name)).unwrap();
        assert!(entries(&whole).is_ok());
        for length in 0..whole.len() {
            message(entries(&whole[..length]), &[]);
        }
    }
}

#[test]
fn any_changed_byte_of_a_real_file_leaves_the_tensors_within_it() {
    for name in ["legacy.pt", "linear.pt", "nested-legacy.pt"] {
        let mut bytes = std::fs::read(fixture(name)).unwrap();
        for at in 0..bytes.len() {
            let original = bytes[at];
            for changed in [0, original ^ 1, original ^ 0x80, 0xff] {
                bytes[at] = changed;
                for entry in entries(&bytes).unwrap_or_default() {
                    assert!(
                        entry.bytes.start <= entry.bytes.end && entry.bytes.end <= bytes.len(),
                        "{name} {at}"
                    );
                }
            }
            bytes[at] = original;
        }
    }
}

/// The entries of a file in memory.
fn entries(bytes: &[u8]) -> Result<Vec<Entry>, FormatError> {
    let path = Path::new("/model.bin");
    match folder::kind(path, bytes)? {
        Kind::TorchZip => torch::zip_entries(path, bytes),
        Kind::TorchLegacy => torch::legacy_entries(path, bytes),
        Kind::Safetensors => super::super::safetensors::entries(path, bytes),
    }
}

#[test]
fn a_real_models_pickle_holds_what_its_safetensors_does() {
    let Some(shared) = shared("models/rxnmapper-albert") else {
        return;
    };
    let safe = Store::open(&shared).unwrap();
    let pickled = Store::open(&shared.join("original")).unwrap();
    let names: Vec<_> = safe.names().collect();
    assert_eq!(names, pickled.names().collect::<Vec<_>>());
    for name in names {
        assert_eq!(
            safe.info(name).unwrap().shape,
            pickled.info(name).unwrap().shape,
            "{name}"
        );
        assert_eq!(
            safe.digest(&[name]).unwrap(),
            pickled.digest(&[name]).unwrap(),
            "{name}"
        );
        if safe.info(name).unwrap().dtype.is_float() {
            assert_eq!(
                safe.read_f32(name).unwrap(),
                pickled.read_f32(name).unwrap(),
                "{name}"
            );
        }
    }
}

#[test]
fn a_real_sharded_checkpoint_in_bf16() {
    let Some(shared) = shared("zoo/llama-sharded-bf16") else {
        return;
    };
    let store = Store::open(&shared).unwrap();
    // As the index's own metadata state.
    assert_eq!(store.parameters(), 69552);
    for name in store.names() {
        let values = store.read_f32(name).unwrap();
        assert!(
            values.iter().all(|value| value.to_bits() & 0xffff == 0),
            "{name} is not bf16"
        );
    }
}

/// A folder of the real models, if they are at hand.
fn shared(folder: &str) -> Option<PathBuf> {
    let root = std::env::var_os("WQK_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"));
    let path = root.join(folder);
    if !path.exists() {
        eprintln!("skipped: no {}", path.display());
        return None;
    }
    Some(path)
}
