//! Pickles that try to run code or to exhaust memory, in both containers; each refused, none run.

use super::hostile_zip::{Member, zip};
use super::*;

/// `GLOBAL`.
fn global(module: &str, name: &str) -> Vec<u8> {
    format!("c{module}\n{name}\n").into_bytes()
}

/// `BINUNICODE`.
fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// `LONG1`, of eight bytes.
fn int(n: i64) -> Vec<u8> {
    [&[0x8a, 8][..], &n.to_le_bytes()].concat()
}

/// A tuple.
fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [b"(", items.concat().as_slice(), b"t"].concat()
}

/// What a view says of itself.
struct View<'a> {
    class: &'a str,
    key: &'a str,
    elements: i64,
    offset: i64,
    shape: &'a [i64],
    strides: &'a [i64],
}

/// Two floats in a storage of two.
const PLAIN: View = View {
    class: "FloatStorage",
    key: "0",
    elements: 2,
    offset: 0,
    shape: &[2],
    strides: &[1],
};

impl View<'_> {
    fn pickled(&self) -> Vec<u8> {
        let class = global("torch", self.class);
        let storage = tuple(&[
            text("storage"),
            class,
            text(self.key),
            text("cpu"),
            int(self.elements),
        ]);
        let ints = |of: &[i64]| tuple(&of.iter().map(|&n| int(n)).collect::<Vec<_>>());
        let view = [
            [storage, b"Q".to_vec()].concat(),
            int(self.offset),
            ints(self.shape),
            ints(self.strides),
            vec![0x89],
            vec![b'N'],
        ];
        [
            global("torch._utils", "_rebuild_tensor_v2"),
            tuple(&view),
            b"R".to_vec(),
        ]
        .concat()
    }
}

/// A whole pickle of a dict with these items.
fn dict(items: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let items: Vec<u8> = items
        .iter()
        .flat_map(|(key, value)| [text(key), value.clone()].concat())
        .collect();
    [b"\x80\x02}(", items.as_slice(), b"u."].concat()
}

/// The archive with this pickle and a storage of two floats.
fn archive(pickle: &[u8]) -> Vec<u8> {
    zip(&[
        Member::stored("m/data.pkl", pickle),
        Member::stored("m/data/0", &f32_bytes(&[1.0, 2.0])),
    ])
}

/// The older file with this pickle, these keys and these bytes of storages.
fn legacy(pickle: &[u8], keys: &[&str], data: &[u8]) -> Vec<u8> {
    let keys: Vec<u8> = keys.iter().flat_map(|key| text(key)).collect();
    let head = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.";
    [&head[..], pickle, b"\x80\x02](", &keys, b"e.", data].concat()
}

/// A storage of two floats, behind its length.
fn two_floats() -> Vec<u8> {
    [&2u64.to_le_bytes()[..], &f32_bytes(&[1.0, 2.0])].concat()
}

/// A pickle must be refused in either container.
#[track_caller]
fn refused_pickle(pickle: &[u8], parts: &[&str]) {
    let folder = Folder::new();
    refused(&folder.write("model.pt", archive(pickle)), parts);
    refused(
        &folder.write("model.bin", legacy(pickle, &["0"], &two_floats())),
        parts,
    );
}

#[test]
fn the_builders_build_what_is_read() {
    let pickle = dict(&[("w", PLAIN.pickled())]);
    let folder = Folder::new();
    for bytes in [archive(&pickle), legacy(&pickle, &["0"], &two_floats())] {
        let path = folder.write("model.pt", bytes);
        assert_eq!(Store::open(&path).unwrap().read_f32("w").unwrap(), [1.0, 2.0]);
    }
}

#[test]
fn code_is_not_run() {
    let folder = Folder::new();
    let witness = folder.path().join("witness");
    let command = format!("touch {}", witness.display());
    for (module, name) in [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "exec"),
        ("subprocess", "Popen"),
    ] {
        let call = [global(module, name), tuple(&[text(&command)]), b"R".to_vec()].concat();
        refused_pickle(
            &dict(&[("w", call)]),
            &[&format!("{module}.{name}"), "refused, nothing was run"],
        );
    }
    // The same by way of the stack, as protocol 4 does.
    let call = [
        text("os"),
        text("system"),
        vec![0x93],
        tuple(&[text(&command)]),
        b"R".to_vec(),
    ]
    .concat();
    refused_pickle(&dict(&[("w", call)]), &["os.system"]);
    // By an allowed module, and by an attribute path.
    refused_pickle(&dict(&[("w", global("torch", "load"))]), &["torch.load"]);
    refused_pickle(
        &dict(&[("w", global("collections", "OrderedDict.__reduce__"))]),
        &["OrderedDict.__reduce__"],
    );
    refused_pickle(
        &dict(&[("w", global("torch._utils", "_rebuild_qtensor"))]),
        &["_rebuild_qtensor"],
    );
    assert!(!witness.exists());
}

#[test]
fn other_instructions_that_run_code() {
    // INST, OBJ, NEWOBJ, NEWOBJ_EX, EXT1, BINGET of nothing, BUILD of a class.
    for (code, part) in [
        (&b"(S'x'\nios\nsystem\n"[..], "instruction 0x53"),
        (b"(ios\nsystem\n", "instruction 0x69"),
        (b"(o", "instruction 0x6f"),
        (b"ctorch\nSize\n)\x81", "instruction 0x81"),
        (b"ctorch\nSize\n)}\x92", "instruction 0x92"),
        (b"\x82\x01", "instruction 0x82"),
        (b"h\x07", "memo slot 7"),
        (
            b"ctorch\nSize\n}b",
            "sets the state of something that is not a dict",
        ),
        (b"K\x01)R", "calls something that is not a function"),
    ] {
        refused_pickle(&[b"\x80\x02", code, b"."].concat(), &[part]);
    }
}

#[test]
fn nesting_without_end() {
    // A million lists in one another, and as many tuples: read in a loop, dropped in a loop.
    let lists = [
        b"\x80\x02",
        "]".repeat(1_000_000).as_bytes(),
        "a".repeat(999_999).as_bytes(),
        b".",
    ]
    .concat();
    refused_pickle(&lists, &["no dict of tensors"]);
    let tuples = [b"\x80\x02)".to_vec(), vec![0x85; 1_000_000], b".".to_vec()].concat();
    refused_pickle(&tuples, &["no dict of tensors"]);
    let marks = [b"\x80\x02", "(".repeat(5_000_000).as_bytes(), b"."].concat();
    refused_pickle(&marks, &["more than 4194304 objects"]);
    // A dict that is its own state dict.
    refused_pickle(
        b"\x80\x02}q\x00X\x0a\x00\x00\x00state_dicth\x00s.",
        &["holds no tensors by name"],
    );
}

#[test]
fn a_huge_memo_and_huge_lengths() {
    // The highest slot of the memo costs one slot.
    let pickle = [
        b"\x80\x02Nr\xff\xff\xff\xff0",
        &dict(&[("w", PLAIN.pickled())])[2..],
    ]
    .concat();
    let folder = Folder::new();
    Store::open(&folder.write("model.pt", archive(&pickle))).unwrap();

    for code in [
        &b"\x8b\xff\xff\xff\x7f"[..],            // LONG4 of 2 GiB
        b"\x8b\xff\xff\xff\xff",                 // LONG4 of −1
        b"X\xff\xff\xff\xff",                    // BINUNICODE of 4 GiB
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff", // BINUNICODE8 of 16 EiB
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", // BINBYTES8
        b"B\xff\xff\xff\xff",                    // BINBYTES
    ] {
        let pickle = [b"\x80\x02", code, b"."].concat();
        let folder = Folder::new();
        refused(
            &folder.write("model.pt", archive(&pickle)),
            &["the pickle ends within an instruction"],
        );
    }
    // An integer of a million bytes is never computed with.
    let long = [
        b"\x80\x02\x8b\x40\x42\x0f\x00",
        vec![7; 1_000_000].as_slice(),
        b".",
    ]
    .concat();
    refused_pickle(&long, &["no dict of tensors"]);
}

#[test]
fn a_list_copied_many_times() {
    // OrderedDict(list) is the one call that copies: a list of 10^5 pairs, by 10^5 calls of 7 bytes.
    let pairs = "h\x01".repeat(100_000);
    let calls = "h\x02h\x03R0".repeat(100_000);
    let pickle = [
        b"\x80\x02NN\x86q\x010](",
        pairs.as_bytes(),
        b"e\x85q\x030ccollections\nOrderedDict\nq\x020",
        calls.as_bytes(),
        b"N.",
    ]
    .concat();
    refused_pickle(&pickle, &["more than 4194304 objects"]);
}

#[test]
fn stack_underflow() {
    for code in [
        &b"."[..],
        b"0",
        b"a",
        b"s",
        b"u",
        b"e",
        b"t",
        b"\x85",
        b"R",
        b"Q",
        b"(a",
        b"](K\x01s",
        b"q\x00",
        b"2",
    ] {
        refused_pickle(&[b"\x80\x02", code, b"."].concat(), &["the pickle"]);
    }
    refused_pickle(b"\x80\x02}}.", &["ends with objects left over"]);
    refused_pickle(b"\x80\x02}(K\x01u.", &["a key without a value"]);
    refused_pickle(b"\x80\x02]K\x01K\x02s.", &["not a dict"]);
    refused_pickle(b"\x80\x02)K\x01a.", &["not a list"]);
}

#[test]
fn protocols_that_are_not_read() {
    let folder = Folder::new();
    refused(
        &folder.write("model.pt", archive(b"(dp0\n.")),
        &["instruction 0x70"],
    );
    refused(&folder.write("model.pt", archive(b"\x80\x09}.")), &["protocol 9"]);
    refused(
        &folder.write("model.pkl", b"\x80\x04}."),
        &["a pickle, but not one that torch.save writes"],
    );
}

#[test]
fn views_that_reach_beyond_their_storage() {
    let beyond = ["tensor \"w\" has a shape or strides that reach beyond its storage"];
    for view in [
        View { shape: &[3], ..PLAIN },
        View { offset: 1, ..PLAIN },
        View {
            offset: i64::MAX,
            ..PLAIN
        },
        View {
            strides: &[2],
            ..PLAIN
        },
        View {
            strides: &[i64::MAX],
            ..PLAIN
        },
        View {
            shape: &[2, 2],
            strides: &[i64::MAX, i64::MAX],
            ..PLAIN
        },
        View {
            shape: &[1 << 40, 1 << 40],
            strides: &[0, 0],
            ..PLAIN
        },
        View {
            shape: &[0],
            offset: 3,
            ..PLAIN
        },
    ] {
        refused_pickle(&dict(&[("w", view.pickled())]), &beyond);
    }
    for (view, part) in [
        (View { offset: -1, ..PLAIN }, "has a negative offset"),
        (
            View {
                shape: &[-1],
                ..PLAIN
            },
            "has no shape",
        ),
        (
            View {
                strides: &[-1],
                ..PLAIN
            },
            "has no strides",
        ),
        (
            View {
                strides: &[1, 1],
                ..PLAIN
            },
            "has not one stride an axis",
        ),
        (
            View {
                shape: &[1; 65],
                strides: &[1; 65],
                ..PLAIN
            },
            "has no shape",
        ),
        (
            View {
                elements: -1,
                ..PLAIN
            },
            "negative length",
        ),
        (
            View {
                class: "Size",
                ..PLAIN
            },
            "not a storage",
        ),
    ] {
        refused_pickle(&dict(&[("w", view.pickled())]), &[part]);
    }
    // The storage itself is smaller than the pickle says.
    let folder = Folder::new();
    for elements in [3, i64::MAX] {
        let pickle = dict(&[("w", View { elements, ..PLAIN }.pickled())]);
        refused(
            &folder.write("model.pt", archive(&pickle)),
            &["8 bytes, fewer than stated", "truncated"],
        );
        refused(
            &folder.write("model.bin", legacy(&pickle, &["0"], &two_floats())),
            &["has not the length"],
        );
        let data = [&(elements as u64).to_le_bytes()[..], &[0; 8]].concat();
        refused(
            &folder.write("model.bin", legacy(&pickle, &["0"], &data)),
            &["beyond the end of the file"],
        );
    }
}

#[test]
fn a_broadcast_view_costs_nothing_until_read() {
    let view = View {
        shape: &[1 << 50],
        strides: &[0],
        ..PLAIN
    };
    let folder = Folder::new();
    let path = folder.write("model.pt", archive(&dict(&[("w", view.pickled())])));
    let store = Store::open(&path).unwrap();
    message(store.read_f32("w"), &["broadcast view"]);
    message(store.read_rows_f32("w", 0..1), &["broadcast view"]);
}

#[test]
fn a_tensor_named_twice() {
    let pickle = dict(&[("w", PLAIN.pickled()), ("w", PLAIN.pickled())]);
    refused_pickle(&pickle, &["tensor \"w\" occurs twice"]);
}

#[test]
fn keys_that_lead_elsewhere() {
    let folder = Folder::new();
    for key in ["../data.pkl", "1", "/etc/passwd", ""] {
        let pickle = dict(&[("w", View { key, ..PLAIN }.pickled())]);
        refused(
            &folder.write("model.pt", archive(&pickle)),
            &["data of tensor \"w\" are missing"],
        );
        refused(
            &folder.write("model.bin", legacy(&pickle, &["0"], &two_floats())),
            &["belongs to no tensor"],
        );
        refused(
            &folder.write("model.bin", legacy(&pickle, &[], &two_floats())),
            &["\"w\" are missing"],
        );
    }
    let pickle = dict(&[("w", PLAIN.pickled())]);
    let twice = [two_floats(), two_floats()].concat();
    refused(
        &folder.write("model.bin", legacy(&pickle, &["0", "0"], &twice)),
        &["listed twice"],
    );
    let two_ways = dict(&[
        ("w", PLAIN.pickled()),
        (
            "v",
            View {
                class: "IntStorage",
                ..PLAIN
            }
            .pickled(),
        ),
    ]);
    refused(
        &folder.write("model.bin", legacy(&two_ways, &["0"], &two_floats())),
        &["described in two ways"],
    );
}
