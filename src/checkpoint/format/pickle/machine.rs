//! The stack machine that a pickle's instructions are for, without those that run anything.

use std::collections::HashMap;

use super::{Id, Node, Pickle, PickleFault};

/// Objects, stack slots or memo slots at most; a tensor takes about twenty, so a checkpoint of a
/// hundred thousand tensors fits.
const MOST_OBJECTS: usize = 1 << 22;

/// The machine's state between two instructions.
pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node<'a>>,
    stack: Vec<Id>,
    /// Heights of the stack at its marks.
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    /// Items copied so far from one collection to another, the one way in which a pickle could
    /// describe more than it has bytes.
    copied: usize,
    allow: fn(&str, &str) -> bool,
}

type Step<T> = Result<T, PickleFault>;

fn malformed<T>(what: impl Into<String>) -> Step<T> {
    Err(PickleFault::Malformed(what.into()))
}

impl<'a> Machine<'a> {
    pub(super) fn new(bytes: &'a [u8], allow: fn(&str, &str) -> bool) -> Self {
        Self {
            bytes,
            at: 0,
            nodes: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            copied: 0,
            allow,
        }
    }

    /// Runs to the end mark.
    pub(super) fn run(mut self) -> Step<Pickle<'a>> {
        while self.step()? {
            if self.size() > MOST_OBJECTS {
                return malformed(format!("describes more than {MOST_OBJECTS} objects"));
            }
        }
        let root = self.pop()?;
        if !self.stack.is_empty() || !self.marks.is_empty() {
            return malformed("ends with objects left over");
        }
        Ok(Pickle {
            nodes: self.nodes,
            root,
            length: self.at,
        })
    }

    /// The longest of all that grows.
    fn size(&self) -> usize {
        let lengths = [
            self.nodes.len(),
            self.stack.len(),
            self.marks.len(),
            self.memo.len(),
            self.copied,
        ];
        lengths.into_iter().max().unwrap_or(0)
    }

    /// One instruction; false after the last.
    fn step(&mut self) -> Step<bool> {
        let at = self.at;
        match self.byte()? {
            // Framing
            0x80 => {
                let protocol = self.byte()?;
                if !(2..=5).contains(&protocol) {
                    return malformed(format!("is of protocol {protocol}, not 2 to 5"));
                }
            }
            0x95 => drop(self.array::<8>()?),
            b'.' => return Ok(false),
            // Plain values
            b'N' => self.push(Node::None),
            0x88 | 0x89 => self.push(Node::Other),
            b'J' => {
                let value = i32::from_le_bytes(self.array()?);
                self.push(Node::Int(value.into()));
            }
            b'K' => {
                let value = self.byte()?;
                self.push(Node::Int(value.into()));
            }
            b'M' => {
                let value = u16::from_le_bytes(self.array()?);
                self.push(Node::Int(value.into()));
            }
            0x8a => {
                let length = self.byte()?;
                self.long(length.into())?;
            }
            0x8b => {
                let length = self.length4()?;
                self.long(length)?;
            }
            b'G' => {
                self.array::<8>()?;
                self.push(Node::Other);
            }
            0x8c => {
                let length = self.byte()?;
                self.text(length.into())?;
            }
            b'X' => {
                let length = self.length4()?;
                self.text(length)?;
            }
            0x8d => {
                let length = self.length8()?;
                self.text(length)?;
            }
            // Strings of Python 2: text if they can be
            b'U' => {
                let length = self.byte()?;
                self.old_string(length.into())?;
            }
            b'T' => {
                let length = self.length4()?;
                self.old_string(length)?;
            }
            b'C' => {
                let length = self.byte()?;
                self.raw(length.into())?;
            }
            b'B' => {
                let length = self.length4()?;
                self.raw(length)?;
            }
            0x8e => {
                let length = self.length8()?;
                self.raw(length)?;
            }
            // Collections
            b'(' => self.marks.push(self.stack.len()),
            b')' => self.push(Node::Tuple(Vec::new())),
            0x85 => self.tuple_of(1)?,
            0x86 => self.tuple_of(2)?,
            0x87 => self.tuple_of(3)?,
            b't' => {
                let items = self.pop_mark()?;
                self.push(Node::Tuple(items));
            }
            b']' => self.push(Node::List(Vec::new())),
            b'l' => {
                let items = self.pop_mark()?;
                self.push(Node::List(items));
            }
            b'a' => {
                let item = self.pop()?;
                self.list()?.push(item);
            }
            b'e' => {
                let items = self.pop_mark()?;
                self.list()?.extend(items);
            }
            b'}' => self.push(Node::Dict(Vec::new())),
            b'd' => {
                let items = pairs(&self.pop_mark()?)?;
                self.push(Node::Dict(items));
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.dict()?.push((key, value));
            }
            b'u' => {
                let items = pairs(&self.pop_mark()?)?;
                self.dict()?.extend(items);
            }
            // Stack and memo
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_mark()?),
            b'2' => self.stack.push(self.top()?),
            b'q' => {
                let slot = self.byte()?;
                self.remember(slot.into())?;
            }
            b'r' => {
                let slot = u32::from_le_bytes(self.array()?);
                self.remember(slot)?;
            }
            0x94 => {
                let slot = self.memo.len() as u32;
                self.remember(slot)?;
            }
            b'h' => {
                let slot = self.byte()?;
                self.recall(slot.into())?;
            }
            b'j' => {
                let slot = u32::from_le_bytes(self.array()?);
                self.recall(slot)?;
            }
            // What Python would run
            b'c' => {
                let module = self.line()?;
                let name = self.line()?;
                self.global(module, name)?;
            }
            0x93 => {
                let name = self.pop()?;
                let module = self.pop()?;
                match (self.node(module), self.node(name)) {
                    (&Node::Text(module), &Node::Text(name)) => self.global(module, name)?,
                    _ => return malformed("names a global by something that is not text"),
                }
            }
            b'R' => self.call()?,
            b'b' => self.build()?,
            b'Q' => {
                let description = self.pop()?;
                self.push(Node::Persistent(description));
            }
            other => {
                return malformed(format!(
                    "uses instruction 0x{other:02x} at byte {at}, which no state dict needs"
                ));
            }
        }
        Ok(true)
    }

    fn byte(&mut self) -> Step<u8> {
        Ok(self.array::<1>()?[0])
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        let (array, _) = self.bytes[self.at..]
            .split_first_chunk()
            .ok_or(PickleFault::Truncated)?;
        self.at += N;
        Ok(*array)
    }

    fn slice(&mut self, length: usize) -> Step<&'a [u8]> {
        let (slice, _) = self.bytes[self.at..]
            .split_at_checked(length)
            .ok_or(PickleFault::Truncated)?;
        self.at += length;
        Ok(slice)
    }

    fn length4(&mut self) -> Step<usize> {
        // A signed length below zero is, unsigned, longer than any pickle that is read.
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    fn length8(&mut self) -> Step<usize> {
        usize::try_from(u64::from_le_bytes(self.array()?)).map_err(|_| PickleFault::Truncated)
    }

    /// Text up to a line feed.
    fn line(&mut self) -> Step<&'a str> {
        const LONGEST_LINE: usize = 1024;
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .take(LONGEST_LINE)
            .position(|&b| b == b'\n')
            .ok_or(PickleFault::Truncated)?;
        self.at += length + 1;
        std::str::from_utf8(&rest[..length]).or_else(|_| malformed("names a global that is not UTF-8"))
    }

    fn long(&mut self, length: usize) -> Step<()> {
        let bytes = self.slice(length)?;
        let node = if length <= 8 {
            let negative = bytes.last().is_some_and(|&b| b >= 0x80);
            let mut wide = [if negative { 0xff } else { 0 }; 8];
            wide[..length].copy_from_slice(bytes);
            Node::Int(i64::from_le_bytes(wide))
        } else {
            Node::Long(bytes)
        };
        self.push(node);
        Ok(())
    }

    fn text(&mut self, length: usize) -> Step<()> {
        let bytes = self.slice(length)?;
        let text = std::str::from_utf8(bytes).or_else(|_| malformed("holds text that is not UTF-8"))?;
        self.push(Node::Text(text));
        Ok(())
    }

    fn old_string(&mut self, length: usize) -> Step<()> {
        let bytes = self.slice(length)?;
        self.push(std::str::from_utf8(bytes).map_or(Node::Other, Node::Text));
        Ok(())
    }

    fn raw(&mut self, length: usize) -> Step<()> {
        self.slice(length)?;
        self.push(Node::Other);
        Ok(())
    }

    fn push(&mut self, node: Node<'a>) {
        // `run` keeps the count far below u32::MAX.
        self.stack.push(Id(self.nodes.len() as u32));
        self.nodes.push(node);
    }

    fn node(&self, id: Id) -> &Node<'a> {
        &self.nodes[id.0 as usize]
    }

    /// The top of the stack, not reaching below the last mark.
    fn top(&self) -> Step<Id> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(&id) if self.stack.len() > floor => Ok(id),
            _ => malformed("takes an object from an empty stack"),
        }
    }

    fn pop(&mut self) -> Step<Id> {
        let id = self.top()?;
        self.stack.pop();
        Ok(id)
    }

    fn pop_mark(&mut self) -> Step<Vec<Id>> {
        match self.marks.pop() {
            Some(height) => Ok(self.stack.split_off(height)),
            None => malformed("closes a collection that was never opened"),
        }
    }

    fn tuple_of(&mut self, length: usize) -> Step<()> {
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(self.pop()?);
        }
        items.reverse();
        self.push(Node::Tuple(items));
        Ok(())
    }

    fn list(&mut self) -> Step<&mut Vec<Id>> {
        let id = self.top()?;
        match &mut self.nodes[id.0 as usize] {
            Node::List(items) => Ok(items),
            _ => malformed("appends to something that is not a list"),
        }
    }

    fn dict(&mut self) -> Step<&mut Vec<(Id, Id)>> {
        let id = self.top()?;
        match &mut self.nodes[id.0 as usize] {
            Node::Dict(items) => Ok(items),
            _ => malformed("sets an item of something that is not a dict"),
        }
    }

    fn remember(&mut self, slot: u32) -> Step<()> {
        let id = self.top()?;
        self.memo.insert(slot, id);
        Ok(())
    }

    fn recall(&mut self, slot: u32) -> Step<()> {
        match self.memo.get(&slot) {
            Some(&id) => {
                self.stack.push(id);
                Ok(())
            }
            None => malformed(format!("refers to memo slot {slot}, which is empty")),
        }
    }

    fn global(&mut self, module: &'a str, name: &'a str) -> Step<()> {
        let ordered_dict = (module, name) == ("collections", "OrderedDict");
        if !ordered_dict && !(self.allow)(module, name) {
            return Err(PickleFault::ForbiddenGlobal(format!("{module}.{name}")));
        }
        self.push(Node::Global { module, name });
        Ok(())
    }

    /// Writes a call down; that of `OrderedDict` alone is evaluated, to the dict it gives.
    fn call(&mut self) -> Step<()> {
        let args = self.pop()?;
        let callable = self.pop()?;
        let node = match self.node(callable) {
            Node::Global {
                module: "collections",
                name: "OrderedDict",
            } => {
                let items = self.ordered_items(args)?;
                self.copied += items.len();
                Node::Dict(items)
            }
            Node::Global { .. } => Node::Call { callable, args },
            _ => return malformed("calls something that is not a function"),
        };
        self.push(node);
        Ok(())
    }

    /// The items of `OrderedDict(*args)`: none, or (as Python 2 wrote it) one list of pairs.
    fn ordered_items(&self, args: Id) -> Step<Vec<(Id, Id)>> {
        let Node::Tuple(args) = self.node(args) else {
            return malformed("calls OrderedDict without arguments");
        };
        let &[list] = args.as_slice() else {
            return if args.is_empty() {
                Ok(Vec::new())
            } else {
                malformed("calls OrderedDict with many arguments")
            };
        };
        let Node::List(items) = self.node(list) else {
            return malformed("makes an OrderedDict of no list");
        };
        items
            .iter()
            .map(|&item| match self.node(item) {
                Node::List(pair) | Node::Tuple(pair) if pair.len() == 2 => Ok((pair[0], pair[1])),
                _ => malformed("makes an OrderedDict of something that is not a pair"),
            })
            .collect()
    }

    /// Attributes set on a dict (torch keeps versions in `_metadata`) say nothing of its items.
    fn build(&mut self) -> Step<()> {
        self.pop()?;
        self.dict()
            .map(drop)
            .or_else(|_| malformed("sets the state of something that is not a dict"))
    }
}

fn pairs(items: &[Id]) -> Step<Vec<(Id, Id)>> {
    let (pairs, rest) = items.as_chunks::<2>();
    if !rest.is_empty() {
        return malformed("gives a dict a key without a value");
    }
    Ok(pairs.iter().map(|&[key, value]| (key, value)).collect())
}
