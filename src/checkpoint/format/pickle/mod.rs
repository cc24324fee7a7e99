//! Python's pickle as a description of objects, never as a program.
//!
//! A pickle is a list of instructions that may call any Python function. This reader knows the
//! instructions that `torch.save` emits for plain data and refuses the others; a call is written
//! down as a node, not made; and a function or class can be named only if the caller allows it.
//! Objects lie in one list and refer to each other by number, so that no depth of nesting, sharing
//! or cycle costs more than the bytes that describe it.
//!
//! Source: CPython's `Lib/pickletools.py`, protocols 2 to 5.

mod machine;

use self::machine::Machine;

/// The number of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(u32);

/// An object that a pickle describes.
#[derive(Debug)]
pub(super) enum Node<'a> {
    None,
    Int(i64),
    /// An integer of more than eight bytes, as its little-endian two's complement.
    Long(&'a [u8]),
    Text(&'a str),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    /// A `dict` or an `OrderedDict`, in order, repeated keys included.
    Dict(Vec<(Id, Id)>),
    /// A function or class that the caller allows.
    Global {
        module: &'a str,
        name: &'a str,
    },
    /// A truth value, a float or bytes, of which no tensor is made.
    Other,
    /// A call that Python would make.
    Call {
        callable: Id,
        args: Id,
    },
    /// An object kept outside the pickle, under this description.
    Persistent(Id),
}

/// The objects of one pickle.
#[derive(Debug)]
pub(super) struct Pickle<'a> {
    nodes: Vec<Node<'a>>,
    root: Id,
    /// Bytes up to and with the end mark.
    pub length: usize,
}

/// Why a pickle was refused.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum PickleFault {
    #[error("the pickle ends within an instruction")]
    Truncated,
    #[error("the pickle asks for {0}")]
    ForbiddenGlobal(String),
    #[error("the pickle {0}")]
    Malformed(String),
}

impl<'a> Pickle<'a> {
    /// Reads the pickle at the start of `bytes`. A `GLOBAL` that `allow(module, name)` denies ends it.
    pub(super) fn read(bytes: &'a [u8], allow: fn(&str, &str) -> bool) -> Result<Self, PickleFault> {
        Machine::new(bytes, allow).run()
    }

    /// The object that the pickle as a whole is.
    pub(super) fn root(&self) -> Id {
        self.root
    }

    /// An object by number.
    pub(super) fn get(&self, id: Id) -> &Node<'a> {
        &self.nodes[id.0 as usize]
    }

    /// The numbers of all objects.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        (0..self.nodes.len() as u32).map(Id)
    }
}
