//! The tensors that a pickle of `torch.save` describes.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::super::Dtype;
use super::super::error::Quoted;
use super::super::pickle::{Id, Node, Pickle};
use super::super::tensor::{Entry, Layout, elements};

/// Keys under which training programs keep the state dict, within a larger dict.
const NESTS: [&str; 5] = ["state_dict", "model_state_dict", "model", "module", "net"];

/// How far a state dict may be nested.
const DEEPEST: usize = 4;

/// Axes of a tensor at most, as in PyTorch.
const MOST_AXES: usize = 64;

/// What a state dict needs beyond plain data and `OrderedDict`: functions that rebuild tensors,
/// storage classes, element types, and two harmless value types.
pub(in super::super) fn allowed(module: &str, name: &str) -> bool {
    match module {
        "torch._utils" => rebuild(name).is_some() || name == "_rebuild_parameter",
        "torch" => matches!(name, "Size" | "device") || Dtype::from_torch(name).is_some(),
        "torch.storage" => name == "UntypedStorage",
        _ => false,
    }
}

/// Which arguments of a rebuilding function are the view, and where its element type is, if it is
/// not the storage's.
fn rebuild(name: &str) -> Option<(usize, Option<usize>)> {
    match name {
        "_rebuild_tensor" => Some((4, None)),
        "_rebuild_tensor_v2" => Some((6, None)),
        "_rebuild_tensor_v3" => Some((7, Some(6))),
        _ => None,
    }
}

/// A storage as the pickle describes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Storage<'a> {
    pub key: &'a str,
    pub dtype: Dtype,
    pub elements: usize,
}

impl Storage<'_> {
    /// Its bytes, if they can be counted.
    pub(super) fn bytes(&self) -> Option<usize> {
        self.elements.checked_mul(self.dtype.size())
    }
}

/// A tensor as a view of a storage.
#[derive(Debug)]
pub(in super::super) struct View<'a> {
    pub name: &'a str,
    pub storage: Storage<'a>,
    dtype: Dtype,
    offset: usize,
    shape: Vec<usize>,
    strides: Vec<usize>,
}

impl View<'_> {
    /// The view's place, given its storage's; `None` if it reaches beyond.
    pub(super) fn entry(self, storage: Range<usize>, big_endian: bool) -> Option<Entry> {
        let count = elements(&self.shape, self.dtype)?;
        let size = self.dtype.size();
        // In elements of the view: an untyped storage counts bytes.
        let available = self.storage.bytes()? / size;
        let span = if count == 0 {
            0
        } else {
            let reach = self
                .shape
                .iter()
                .zip(&self.strides)
                .try_fold(0usize, |reach, (&length, &stride)| {
                    reach.checked_add((length - 1).checked_mul(stride)?)
                })?;
            reach.checked_add(1)?
        };
        if self.offset.checked_add(span)? > available {
            return None;
        }
        let start = storage.start + self.offset * size;
        let layout = Layout {
            strides: self.strides,
            big_endian,
            repeats: count > span,
        };
        Some(Entry {
            name: self.name.to_owned(),
            dtype: self.dtype,
            shape: self.shape,
            bytes: start..start + span * size,
            layout,
        })
    }
}

/// The tensors of the state dict in a pickle.
pub(in super::super) fn views<'a>(pickle: &Pickle<'a>) -> Result<Vec<View<'a>>, String> {
    let items = state_dict(pickle)?;
    let mut seen = HashSet::with_capacity(items.len());
    let mut views = Vec::with_capacity(items.len());
    for &(key, value) in items {
        let &Node::Text(name) = pickle.get(key) else {
            continue;
        };
        let Some(view) = view(pickle, name, value) else {
            continue;
        };
        views.push(view.map_err(|what| format!("tensor {} {what}", Quoted(name)))?);
        if !seen.insert(name) {
            return Err(format!("tensor {} occurs twice", Quoted(name)));
        }
    }
    Ok(views)
}

/// The dict of named tensors: the outermost one, or what it holds under one of the usual keys.
fn state_dict<'p>(pickle: &'p Pickle<'_>) -> Result<&'p [(Id, Id)], String> {
    let mut dict = dict(pickle, pickle.root()).ok_or("the file holds no dict of tensors by name")?;
    for _ in 0..DEEPEST {
        let inner = NESTS.iter().find_map(|nest| {
            let named = |(key, _): &&(Id, Id)| matches!(pickle.get(*key), Node::Text(text) if text == nest);
            self::dict(pickle, dict.iter().find(named)?.1)
        });
        match inner {
            Some(inner) => dict = inner,
            None => break,
        }
    }
    if dict
        .iter()
        .any(|&(_, value)| tensor_call(pickle, value).is_some())
    {
        return Ok(dict);
    }
    let keys: Vec<String> = dict
        .iter()
        .filter_map(|&(key, _)| match pickle.get(key) {
            Node::Text(text) => Some(Quoted(text).to_string()),
            _ => None,
        })
        .take(6)
        .collect();
    Err(format!(
        "the file holds no tensors by name, nor a dict of them under {}; its keys begin {}",
        NESTS.join(", "),
        keys.join(", ")
    ))
}

fn dict<'p>(pickle: &'p Pickle<'_>, id: Id) -> Option<&'p [(Id, Id)]> {
    match pickle.get(id) {
        Node::Dict(items) => Some(items),
        _ => None,
    }
}

fn tuple<'p>(pickle: &'p Pickle<'_>, id: Id) -> Option<&'p [Id]> {
    match pickle.get(id) {
        Node::Tuple(items) => Some(items),
        _ => None,
    }
}

/// Name and arguments of the `torch._utils` function that would make the object.
fn utils_call<'p, 'a>(pickle: &'p Pickle<'a>, id: Id) -> Option<(&'a str, &'p [Id])> {
    let &Node::Call { callable, args } = pickle.get(id) else {
        return None;
    };
    match *pickle.get(callable) {
        Node::Global {
            module: "torch._utils",
            name,
        } => Some((name, tuple(pickle, args)?)),
        _ => None,
    }
}

/// The call that rebuilds a tensor, looked for within a parameter too.
fn tensor_call<'p, 'a>(pickle: &'p Pickle<'a>, id: Id) -> Option<(&'a str, &'p [Id])> {
    match utils_call(pickle, id)? {
        ("_rebuild_parameter", args) => {
            utils_call(pickle, *args.first()?).filter(|(name, _)| rebuild(name).is_some())
        }
        call => Some(call),
    }
}

/// The view that an object is, if it is a tensor.
fn view<'a>(pickle: &Pickle<'a>, name: &'a str, id: Id) -> Option<Result<View<'a>, String>> {
    let (function, args) = tensor_call(pickle, id)?;
    Some(rebuilt(pickle, name, function, args))
}

fn rebuilt<'a>(pickle: &Pickle<'a>, name: &'a str, function: &str, args: &[Id]) -> Result<View<'a>, String> {
    let (arity, dtype_at) = rebuild(function).ok_or("is not rebuilt as a tensor")?;
    // Newer versions may append arguments, never drop them.
    if args.len() < arity {
        return Err(format!(
            "is rebuilt from {} values instead of {arity}",
            args.len()
        ));
    }
    let storage = storage(pickle, args[0])?;
    let dtype = match dtype_at {
        None if storage.untyped => return Err("is of a storage without element type".into()),
        None => storage.storage.dtype,
        Some(at) => match pickle.get(args[at]) {
            Node::Global {
                module: "torch",
                name,
            } => Dtype::from_torch(name).ok_or("has an unknown element type")?,
            _ => return Err("has no element type".into()),
        },
    };
    let &Node::Int(offset) = pickle.get(args[1]) else {
        return Err("has no offset".into());
    };
    let offset = usize::try_from(offset).map_err(|_| "has a negative offset")?;
    let shape = lengths(pickle, args[2]).ok_or("has no shape")?;
    let strides = lengths(pickle, args[3]).ok_or("has no strides")?;
    if shape.len() != strides.len() {
        return Err("has not one stride an axis".into());
    }
    Ok(View {
        name,
        storage: storage.storage,
        dtype,
        offset,
        shape,
        strides,
    })
}

/// A shape or strides: a tuple of whole numbers, or `torch.Size` of one.
fn lengths(pickle: &Pickle<'_>, id: Id) -> Option<Vec<usize>> {
    let items = match pickle.get(id) {
        &Node::Call { callable, args }
            if matches!(
                pickle.get(callable),
                Node::Global {
                    module: "torch",
                    name: "Size"
                }
            ) =>
        {
            tuple(pickle, *tuple(pickle, args)?.first()?)?
        }
        _ => tuple(pickle, id)?,
    };
    if items.len() > MOST_AXES {
        return None;
    }
    items
        .iter()
        .map(|&item| match pickle.get(item) {
            Node::Int(n) => usize::try_from(*n).ok(),
            _ => None,
        })
        .collect()
}

struct PersistentStorage<'a> {
    storage: Storage<'a>,
    untyped: bool,
}

/// A storage's description: `("storage", class, key, location, elements[, view])`.
fn storage<'a>(pickle: &Pickle<'a>, id: Id) -> Result<PersistentStorage<'a>, String> {
    const NOT_ONE: &str = "is a view of something that is not a storage";
    let &Node::Persistent(description) = pickle.get(id) else {
        return Err(NOT_ONE.into());
    };
    let parts = tuple(pickle, description).ok_or(NOT_ONE)?;
    let &[kind, class, key, _location, elements, ..] = parts else {
        return Err(NOT_ONE.into());
    };
    let (Node::Text("storage"), &Node::Global { name: class, .. }, &Node::Text(key), &Node::Int(elements)) = (
        pickle.get(kind),
        pickle.get(class),
        pickle.get(key),
        pickle.get(elements),
    ) else {
        return Err(NOT_ONE.into());
    };
    if parts
        .get(5)
        .is_some_and(|&view| !matches!(pickle.get(view), Node::None))
    {
        return Err("is of a storage that is part of another, as before PyTorch 0.4".into());
    }
    let dtype = Dtype::from_torch(class)
        .filter(|_| class.ends_with("Storage"))
        .ok_or(NOT_ONE)?;
    let elements = usize::try_from(elements).map_err(|_| "is of a storage of negative length")?;
    Ok(PersistentStorage {
        storage: Storage { key, dtype, elements },
        untyped: class == "UntypedStorage",
    })
}

/// All storages of a pickle by key, those outside the state dict too: in the older format each has
/// its place behind the ones before it.
pub(super) fn all_storages<'a>(pickle: &Pickle<'a>) -> Result<HashMap<&'a str, Storage<'a>>, String> {
    let mut storages = HashMap::new();
    for id in pickle
        .ids()
        .filter(|&id| matches!(pickle.get(id), Node::Persistent(_)))
    {
        let PersistentStorage { storage, .. } =
            storage(pickle, id).map_err(|what| format!("an object {what}"))?;
        if storages
            .insert(storage.key, storage)
            .is_some_and(|earlier| earlier != storage)
        {
            return Err(format!(
                "storage {} is described in two ways",
                Quoted(storage.key)
            ));
        }
    }
    Ok(storages)
}
