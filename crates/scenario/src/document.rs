// SPDX-License-Identifier: Apache-2.0
//! The TOML document before it is typed: a tree whose every value knows where it was written, so
//! that an error found late still names its line.

use indexmap::IndexMap;
use toml::de::{DeTable, DeValue};

use super::error::{Origin, Problem};

/// A value and where its key (of an array's element: the value) was written.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it was written.
    pub at: Origin,
}

/// The values of TOML but dates, which no scenario has.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    String(String),
    /// An integer.
    Integer(i64),
    /// A float.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// An array.
    Array(Vec<Node>),
    /// A table.
    Table(IndexMap<String, Node>),
    /// What has been found to fail and is left out; it keeps its place in a list.
    Void,
}

impl Value {
    /// Whether it is left out.
    pub const fn is_void(&self) -> bool {
        matches!(self, Value::Void)
    }
}

impl Node {
    /// An empty table.
    pub fn table(at: Origin) -> Node {
        Node {
            value: Value::Table(IndexMap::new()),
            at,
        }
    }

    /// What stands at `key`, if this is a table that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(table) => table.get(key),
            _ => None,
        }
    }

    /// Text, if it is a string.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.value, Value::Table(_))
    }

    /// The keys, if this is a table.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        match &self.value {
            Value::Table(table) => Some(table.keys()),
            _ => None,
        }
        .into_iter()
        .flatten()
    }

    /// The elements, if this is an array.
    pub fn elements(&self) -> impl Iterator<Item = &Node> {
        match &self.value {
            Value::Array(elements) => elements.as_slice(),
            _ => &[],
        }
        .iter()
    }

    /// Puts `node` at `key`, if this is a table.
    pub fn insert(&mut self, key: &str, node: Node) {
        if let Value::Table(table) = &mut self.value {
            table.insert(key.to_owned(), node);
        }
    }

    /// The same, all of it known to come from elsewhere.
    pub fn written_at(mut self, at: Origin) -> Node {
        self.relocate(at);
        self
    }

    fn relocate(&mut self, at: Origin) {
        self.at = at;
        match &mut self.value {
            Value::Table(table) => table.values_mut().for_each(|node| node.relocate(at)),
            Value::Array(elements) => elements.iter_mut().for_each(|node| node.relocate(at)),
            _ => {}
        }
    }

    /// Where the value at the dotted `path`, as in `schemes[2]`, was written, or the nearest table around it.
    pub fn locate(&self, path: &str) -> Origin {
        let mut node = self;
        for part in path.split('.') {
            let (key, index) = part.split_once('[').unwrap_or((part, ""));
            let Some(next) = node.get(key) else { break };
            node = match index.trim_end_matches(']').parse() {
                Ok(index) => next.elements().nth(index).unwrap_or(next),
                Err(_) => next,
            };
        }
        node.at
    }

    /// What is at `path`, whose parts are keys and, as in `[2]`, places in a list.
    pub fn at_mut(&mut self, path: &[String]) -> Option<&mut Node> {
        let Some((part, rest)) = path.split_first() else {
            return Some(self);
        };
        let index = |part: &str| part.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
        match &mut self.value {
            Value::Table(table) => table.get_mut(part),
            Value::Array(elements) => index(part).and_then(|index: usize| elements.get_mut(index)),
            _ => None,
        }
        .and_then(|node| node.at_mut(rest))
    }

    /// Puts `over` on top: tables merge key by key, anything else replaces. A table of another
    /// `kind` replaces too, for its keys mean something else.
    pub fn merge(&mut self, over: Node) {
        let other_kind = match (self.get("kind"), over.get("kind")) {
            (Some(mine), Some(theirs)) => mine.text() != theirs.text(),
            _ => false,
        };
        match (&mut self.value, over.value) {
            (Value::Table(mine), Value::Table(theirs)) if !other_kind => {
                for (key, node) in theirs {
                    match mine.get_mut(&key) {
                        Some(existing) => existing.merge(node),
                        None => drop(mine.insert(key, node)),
                    }
                }
            }
            (_, value) => self.value = value,
        }
        self.at = over.at;
    }

    /// Puts `value` at the dotted `path`, making the tables on the way. Fails, with the part of
    /// the path, where something on the way is no table.
    pub fn set(&mut self, path: &str, value: Value, at: Origin) -> Result<(), String> {
        let mut node = self;
        let mut passed = String::new();
        for key in path.split('.') {
            let Value::Table(table) = &mut node.value else {
                return Err(format!("\"{passed}\" is no table"));
            };
            passed = if passed.is_empty() {
                key.to_owned()
            } else {
                format!("{passed}.{key}")
            };
            node = table
                .entry(key.to_owned())
                .or_insert_with(|| Node::table(at));
        }
        *node = Node { value, at }.written_at(at);
        Ok(())
    }
}

/// Reads TOML.
///
/// # Errors
/// The first syntax error.
pub fn parse(text: &str) -> Result<Node, Problem> {
    let lines = Lines::new(text);
    let document = DeTable::parse(text).map_err(|error| Problem {
        at: Origin::Line(error.span().map_or(1, |span| lines.of(span.start))),
        key: String::new(),
        what: format!("not valid TOML: {}", error.message().replace('\n', ", ")),
    })?;
    Ok(Node {
        value: table(document.get_ref(), &lines)?,
        at: Origin::Line(1),
    })
}

/// Reads the right-hand side of an override: TOML, or else a bare string, so that `10 ms` needs
/// no quotes.
pub fn parse_value(text: &str) -> Value {
    let lines = Lines::new("");
    match DeValue::parse(text) {
        Ok(node) => value(node.get_ref(), &lines, 0, "").ok(),
        Err(_) => None,
    }
    .unwrap_or_else(|| Value::String(text.trim().to_owned()))
}

fn table(entries: &DeTable<'_>, lines: &Lines) -> Result<Value, Problem> {
    let mut table = IndexMap::with_capacity(entries.len());
    for (key, entry) in entries {
        let line = lines.of(key.span().start);
        let name = key.get_ref().to_string();
        let node = Node {
            value: value(entry.get_ref(), lines, line, &name)?,
            at: Origin::Line(line),
        };
        table.insert(name, node);
    }
    Ok(Value::Table(table))
}

fn value(from: &DeValue<'_>, lines: &Lines, line: usize, key: &str) -> Result<Value, Problem> {
    let problem = |what: &str| Problem {
        at: Origin::Line(line),
        key: key.to_owned(),
        what: what.to_owned(),
    };
    Ok(match from {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => Value::Integer(number),
            // No key takes so large an integer; which range its key has is known later.
            Err(_) => Value::Float(
                digits
                    .as_str()
                    .parse()
                    .map_err(|_| problem("is too large"))?,
            ),
        },
        DeValue::Float(digits) => Value::Float(
            digits
                .as_str()
                .parse()
                .map_err(|_| problem("is no number"))?,
        ),
        DeValue::Boolean(truth) => Value::Boolean(*truth),
        DeValue::Datetime(_) => return Err(problem("is a date; no key takes one")),
        DeValue::Array(elements) => Value::Array(
            elements
                .iter()
                .map(|element| {
                    let line = lines.of(element.span().start);
                    Ok(Node {
                        value: value(element.get_ref(), lines, line, key)?,
                        at: Origin::Line(line),
                    })
                })
                .collect::<Result<_, Problem>>()?,
        ),
        DeValue::Table(entries) => table(entries, lines)?,
    })
}

/// Where each line starts.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Lines {
        Lines(text.match_indices('\n').map(|(at, _)| at + 1).collect())
    }

    /// The line, from 1, of the byte at `offset`.
    fn of(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) + 1
    }
}
