//! The values of tensors: types, slices, and what is not a weight.

use half::{bf16, f16};

use super::*;

/// A folder's store with one tensor `w` of the shape and type.
fn one(dtype: &str, shape: &str, data: &[u8]) -> (Folder, Store) {
    let folder = Folder::new();
    let header = format!(
        r#"{{"w":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[0,{}]}}}}"#,
        data.len()
    );
    let path = folder.write("model.safetensors", safetensors(&header, data));
    let store = Store::open(&path).unwrap();
    (folder, store)
}

#[test]
fn every_half_is_read_as_itself() {
    // All 2^16 patterns, in rows of 256 so that those which are not finite lie in rows of their own.
    for (dtype, exponent, to_f32) in [
        (
            "F16",
            0x7c00u16,
            (|bits| f16::from_bits(bits).to_f32()) as fn(u16) -> f32,
        ),
        ("BF16", 0x7f80, |bits| bf16::from_bits(bits).to_f32()),
    ] {
        let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
        let (_folder, store) = one(dtype, "256,256", &bytes);
        for row in 0..256u16 {
            let bits = row << 8..=row << 8 | 0xff;
            let expected: Vec<f32> = bits.clone().map(to_f32).collect();
            let read = store.read_rows_f32("w", row.into()..usize::from(row) + 1);
            if bits.clone().any(|bits| bits & exponent == exponent) {
                message(read, &["tensor \"w\" holds", "no score"]);
            } else {
                assert_eq!(read.unwrap(), expected);
            }
        }
    }
}

#[test]
fn large_tensors_are_read_by_several_threads_alike() {
    let values: Vec<f32> = (0..1_000_003).map(|i| i as f32 / 8.0).collect();
    let (_folder, store) = one("F32", "1000003", &f32_bytes(&values));
    assert_eq!(store.read_f32("w").unwrap(), values);

    let mut broken = values;
    broken[900_000] = f32::NAN;
    broken[700_000] = f32::INFINITY;
    let (_folder, store) = one("F32", "1000003", &f32_bytes(&broken));
    message(store.read_f32("w"), &["holds inf at [700000]"]);
}

#[test]
fn not_finite_names_tensor_and_index() {
    for (value, text) in [
        (f32::NAN, "NaN"),
        (f32::INFINITY, "inf"),
        (f32::NEG_INFINITY, "-inf"),
    ] {
        let (_folder, store) = one("F32", "2,3", &f32_bytes(&[0.0, 1.0, 2.0, 3.0, 4.0, value]));
        let expected = format!("tensor \"w\" holds {text} at [1, 2]");
        message(store.read_f32("w"), &[&expected, "model.safetensors"]);
        message(store.read_rows_f32("w", 1..2), &[&expected]);
        message(store.read_slice_f32("w", 1, 1..3), &[&expected]);
        assert_eq!(store.read_rows_f32("w", 0..1).unwrap(), [0.0, 1.0, 2.0]);
    }
}

#[test]
fn doubles_beyond_single_precision() {
    let bytes: Vec<u8> = [0.5f64, 1e300].iter().flat_map(|v| v.to_le_bytes()).collect();
    let (_folder, store) = one("F64", "2", &bytes);
    message(store.read_f32("w"), &["holds 1000000", "at [1]"]);
    assert_eq!(store.read_rows_f32("w", 0..1).unwrap(), [0.5]);
}

#[test]
fn slices() {
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let (_folder, store) = one("F32", "2,3,4", &f32_bytes(&values));
    assert_eq!(store.read_rows_f32("w", 1..2).unwrap(), values[12..]);
    assert_eq!(
        store.read_slice_f32("w", 1, 1..3).unwrap(),
        [
            4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0, 22.0, 23.0
        ]
    );
    assert_eq!(
        store.read_slice_f32("w", 2, 3..4).unwrap(),
        [3.0, 7.0, 11.0, 15.0, 19.0, 23.0]
    );
    assert_eq!(store.read_rows_f32("w", 2..2).unwrap(), [0.0; 0]);
    for (axis, range) in [(0, 1..3), (3, 0..1), (2, 5..6), (0, usize::MAX - 1..usize::MAX)] {
        message(
            store.read_slice_f32("w", axis, range),
            &["tensor \"w\" of shape [2, 3, 4] has no indices"],
        );
    }
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = 2..1;
    message(store.read_rows_f32("w", reversed), &["has no indices 2..1"]);
}

#[test]
fn scalars_and_empty_tensors() {
    let (_folder, store) = one("F32", "", &f32_bytes(&[3.0]));
    assert_eq!(store.read_f32("w").unwrap(), [3.0]);
    message(store.read_rows_f32("w", 0..1), &["has no indices"]);
    let (_folder, store) = one("F32", "0,3", &[]);
    assert_eq!(store.read_f32("w").unwrap(), [0.0; 0]);
    assert_eq!(store.read_slice_f32("w", 1, 0..2).unwrap(), [0.0; 0]);
}

#[test]
fn misaligned_data_are_read() {
    // A header of odd length, and one byte before the floats.
    let header = r#"{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}}"#;
    let folder = Folder::new();
    let data = [&[7][..], &f32_bytes(&[1.5, -2.5])].concat();
    let path = folder.write("model.safetensors", safetensors(header, &data));
    assert_eq!(Store::open(&path).unwrap().read_f32("w").unwrap(), [1.5, -2.5]);
}

#[test]
fn integers_are_not_weights() {
    for (dtype, size) in [
        ("I64", 8),
        ("I8", 1),
        ("U8", 1),
        ("BOOL", 1),
        ("F8_E4M3", 1),
        ("F8_E5M2", 1),
        ("C64", 8),
    ] {
        let (_folder, store) = one(dtype, "2", &vec![0; 2 * size]);
        message(
            store.read_f32("w"),
            &[
                &format!("tensor \"w\" holds {dtype}"),
                "de-quantise the model first, or load its unquantised revision",
            ],
        );
        assert_eq!(store.parameters(), 0);
    }
    let (_folder, store) = one("F4", "2,2", &[0; 2]);
    message(store.read_f32("w"), &["holds F4"]);
    store.digest(&["w"]).unwrap();
}

#[test]
fn quantised_layouts_are_recognised() {
    for (present, scheme) in [
        ("q.qweight", "GPTQ and AWQ"),
        ("q.weight.absmax", "bitsandbytes"),
        ("q.SCB", "bitsandbytes"),
        ("q.weight_packed", "compressed-tensors"),
    ] {
        let folder = Folder::new();
        folder.write("model.safetensors", two_values(&[present]));
        let store = Store::open(folder.path()).unwrap();
        let expected = [
            "tensor \"q.weight\" is quantised",
            scheme,
            present,
            "unquantised revision",
        ];
        message(store.read_f32("q.weight"), &expected);
        assert!(store.quantised("q.weight").unwrap().contains(scheme));
        message(store.read_f32("k.weight"), &["there is no tensor \"k.weight\""]);
    }
}

#[test]
fn quantisation_stated_by_the_config() {
    let folder = Folder::new();
    let header = r#"{"q.weight":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"k.weight":{"dtype":"F16","shape":[1],"data_offsets":[1,3]}}"#;
    folder.write("model.safetensors", safetensors(header, &[0; 3]));
    folder.write("config.json", r#"{"quantization_config":{"quant_method":"fp8"}}"#);
    let store = Store::open(folder.path()).unwrap();
    message(
        store.read_f32("q.weight"),
        &["is quantised, by fp8 (quantization_config in config.json)"],
    );
    // A weight that was left as it was is read.
    assert_eq!(store.read_f32("k.weight").unwrap(), [0.0]);
    assert_eq!(store.quantised("k.weight"), None);
}

#[test]
fn the_digest_depends_on_names_types_shapes_and_values_alone() {
    let folder = Folder::new();
    folder.write("model.safetensors", two_values(&["a", "b"]));
    let store = Store::open(folder.path()).unwrap();
    let of = |names: &[&str]| store.digest(names).unwrap();
    assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
    assert_ne!(of(&["a"]), of(&["b"]));
    assert_ne!(of(&["a", "b"]), of(&["b", "a"]));

    let (_folder, column) = one("F32", "2,1", &f32_bytes(&[1.0, 2.0]));
    let (_folder, row) = one("F32", "1,2", &f32_bytes(&[1.0, 2.0]));
    let (_folder, other) = one("F32", "1,2", &f32_bytes(&[1.0, 3.0]));
    assert_ne!(column.digest(&["w"]).unwrap(), row.digest(&["w"]).unwrap());
    assert_ne!(other.digest(&["w"]).unwrap(), row.digest(&["w"]).unwrap());
    message(row.digest(&["v"]), &["there is no tensor \"v\""]);
}

#[test]
fn a_published_digest() {
    // Computed with Python's hashlib from the definition in the documentation of `digest`.
    let (_folder, store) = one("F32", "2", &f32_bytes(&[1.0, 2.0]));
    let hex: String = store
        .digest(&["w"])
        .unwrap()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(
        hex,
        "68bef09b28479d20409de9a67f40d68ac4fb27df4361282dae5d896b2910627d"
    );
}
