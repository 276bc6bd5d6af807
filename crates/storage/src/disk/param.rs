//! The parameter files of DiskSim 4 (libparam), as they are written: blocks of named values, lists, and files within
//! files.
//!
//! `type name { long name = value, ... }` defines a block; a value is a number, a word, a list in brackets, or a block
//! (`type { ... }`, `type name { ... }`). `source FILE` stands for the content of a file. A type may be the name of a
//! block before: its values are inherited. `instantiate [a, b] as name` and `topology type name [ ... ]` say what is
//! there and what hangs on what. `#` begins a comment.

use std::fmt;

/// Files within files: more than this is a file that contains itself.
const DEPTH_MAX: usize = 32;

/// Blocks and lists within each other.
const NESTING_MAX: usize = 64;

/// An error in a parameter file: one line that names file, line and the expected content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamError(pub String);

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParamError {}

/// A value with its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    pub what: ParamKind,
    /// "file, line n".
    pub place: String,
}

/// The kind of a value.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamKind {
    Int(i64),
    Real(f64),
    Word(String),
    List(Vec<Value>),
    Block(Block),
    /// Type, name and what hangs on it.
    Node(String, String, Vec<Value>),
}

/// A block of named values.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// The type at its root: that of the block that it inherits from, and so on.
    pub kind: String,
    pub name: Option<String>,
    pub place: String,
    pub values: Vec<(String, Value)>,
}

/// A file and all that it contains.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Document {
    /// Blocks of the outermost level, in order.
    pub blocks: Vec<Block>,
    /// (instance, name of its block).
    pub instances: Vec<(String, String)>,
    /// The roots of what hangs on what.
    pub topology: Vec<Value>,
}

impl Document {
    /// The block of that name.
    pub fn named(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name.as_deref() == Some(name))
    }
}

impl Block {
    /// The value of that name, if it is there.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The value of that name.
    pub fn need(&self, name: &str) -> Result<&Value, ParamError> {
        let missing = || ParamError(format!("{}: {} has no {name:?}", self.place, self.kind));
        self.get(name).ok_or_else(missing)
    }
}

impl Value {
    pub fn wrong(&self, name: &str, expected: &str) -> ParamError {
        let what = match &self.what {
            ParamKind::Int(n) => n.to_string(),
            ParamKind::Real(n) => n.to_string(),
            ParamKind::Word(word) => format!("{word:?}"),
            ParamKind::List(_) => "a list".to_owned(),
            ParamKind::Block(_) | ParamKind::Node(..) => "a block".to_owned(),
        };
        ParamError(format!("{}: {name} = {what}: expected {expected}", self.place))
    }

    /// A whole number within a range.
    pub fn whole(&self, name: &str, least: i64, most: i64) -> Result<i64, ParamError> {
        let value = match self.what {
            ParamKind::Int(n) => Some(n),
            // DiskSim's own files write some whole numbers with a point (skews, offsets).
            ParamKind::Real(n) if n.fract() == 0.0 && n.abs() < 1e15 => Some(n as i64),
            _ => None,
        };
        let found = value.filter(|n| (least..=most).contains(n));
        found.ok_or_else(|| self.wrong(name, &format!("a whole number from {least} to {most}")))
    }

    /// A number.
    pub fn real(&self, name: &str) -> Result<f64, ParamError> {
        match self.what {
            ParamKind::Int(n) => Ok(n as f64),
            ParamKind::Real(n) if n.is_finite() => Ok(n),
            _ => Err(self.wrong(name, "a number")),
        }
    }

    /// A time in ms, not negative, as ns. Range: to 10^9 ms.
    pub fn ms(&self, name: &str) -> Result<u64, ParamError> {
        let ms = self.real(name)?;
        if !(0.0..=1e9).contains(&ms) {
            return Err(self.wrong(name, "a time in ms, from 0 to 1e9"));
        }
        Ok((ms * 1e6).round() as u64)
    }

    /// A time in ms that may be negative, as ns. Range: to 10^9 ms either way.
    pub fn ms_signed(&self, name: &str) -> Result<i64, ParamError> {
        let ms = self.real(name)?;
        if !(-1e9..=1e9).contains(&ms) {
            return Err(self.wrong(name, "a time in ms, from -1e9 to 1e9"));
        }
        Ok((ms * 1e6).round() as i64)
    }

    pub fn list(&self, name: &str) -> Result<&[Value], ParamError> {
        match &self.what {
            ParamKind::List(values) => Ok(values),
            _ => Err(self.wrong(name, "a list in brackets")),
        }
    }

    pub fn block(&self, name: &str) -> Result<&Block, ParamError> {
        match &self.what {
            ParamKind::Block(block) => Ok(block),
            _ => Err(self.wrong(name, "a block in braces")),
        }
    }

    pub fn word(&self, name: &str) -> Result<&str, ParamError> {
        match &self.what {
            ParamKind::Word(word) => Ok(word),
            _ => Err(self.wrong(name, "a word")),
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Word(String),
    Mark(u8),
}

/// Reads the text of the file `name`. `open` gives the text of a file that another names: (its name as written, the
/// file that names it) to (the name for messages and for files in it, text).
///
/// # Errors
/// The first thing that is wrong, with file and line.
pub fn parse(name: &str, text: &str, open: &mut Open<'_>) -> Result<Document, ParamError> {
    let mut tokens = Vec::new();
    scan(name, text, open, 0, &mut tokens)?;
    let mut parser = Parser { tokens, at: 0, document: Document::default(), end: name.to_owned() };
    parser.document()?;
    Ok(parser.document)
}

/// Finds files within files.
pub type Open<'a> = dyn FnMut(&str, &str) -> Result<(String, String), String> + 'a;

fn scan(
    name: &str,
    text: &str,
    open: &mut Open<'_>,
    depth: usize,
    tokens: &mut Vec<(Token, String)>,
) -> Result<(), ParamError> {
    let mut sourced = false;
    for (number, line) in text.lines().enumerate() {
        let place = format!("{name}, line {}", number + 1);
        let line = line.split('#').next().unwrap_or("");
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            if first.is_whitespace() {
                rest = &rest[first.len_utf8()..];
                continue;
            }
            if ";{},[]:?=".contains(first) {
                tokens.push((Token::Mark(first as u8), place.clone()));
                rest = &rest[1..];
                continue;
            }
            let end = rest.find(|c: char| c.is_whitespace() || ";{},[]:?=".contains(c)).unwrap_or(rest.len());
            let word = &rest[..end];
            rest = &rest[end..];
            if sourced {
                sourced = false;
                if depth == DEPTH_MAX {
                    return Err(ParamError(format!("{place}: source {word}: files within files, {DEPTH_MAX} deep")));
                }
                let (inner, text) =
                    open(word, name).map_err(|reason| ParamError(format!("{place}: source {word}: {reason}")))?;
                scan(&inner, &text, open, depth + 1, tokens)?;
            } else if word == "source" {
                sourced = true;
            } else {
                tokens.push((Token::Word(word.to_owned()), place.clone()));
            }
        }
    }
    if sourced {
        return Err(ParamError(format!("{name}: \"source\" at the end of the file: name a file after it")));
    }
    Ok(())
}

struct Parser {
    tokens: Vec<(Token, String)>,
    at: usize,
    document: Document,
    /// The outermost file: the place of an end that comes too early.
    end: String,
}

impl Parser {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|(token, _)| token)
    }

    fn place(&self) -> String {
        self.tokens.get(self.at).map_or_else(|| format!("{}, at its end", self.end), |(_, place)| place.clone())
    }

    fn wrong(&self, expected: &str) -> ParamError {
        let found = match self.peek(0) {
            Some(Token::Word(word)) => format!("{word:?}"),
            Some(Token::Mark(mark)) => format!("{:?}", char::from(*mark)),
            None => "nothing (is the file cut off?)".to_owned(),
        };
        ParamError(format!("{}: expected {expected}, found {found}", self.place()))
    }

    fn word(&mut self, expected: &str) -> Result<String, ParamError> {
        match self.peek(0) {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.wrong(expected)),
        }
    }

    fn takes(&mut self, mark: u8) -> bool {
        let there = self.peek(0) == Some(&Token::Mark(mark));
        self.at += usize::from(there);
        there
    }

    fn document(&mut self) -> Result<(), ParamError> {
        while let Some(token) = self.peek(0).cloned() {
            match token {
                Token::Mark(b';' | b',') => self.at += 1,
                Token::Word(word) if word == "topology" => {
                    self.at += 1;
                    let root = self.value(0)?;
                    if !matches!(root.what, ParamKind::Node(..)) {
                        return Err(ParamError(format!("{}: topology: expected \"type name [ ... ]\"", root.place)));
                    }
                    self.document.topology.push(root);
                }
                Token::Word(word) if word == "instantiate" => {
                    self.at += 1;
                    self.instantiate()?;
                }
                _ => {
                    let value = self.value(0)?;
                    let ParamKind::Block(block) = value.what else {
                        let text = "\"type name { ... }\", \"instantiate\" or \"topology\"";
                        return Err(ParamError(format!("{}: expected {text}", value.place)));
                    };
                    self.document.blocks.push(block);
                }
            }
        }
        Ok(())
    }

    fn instantiate(&mut self) -> Result<(), ParamError> {
        let list = self.value(0)?;
        let names = list.list("instantiate")?.to_vec();
        if self.word("\"as\"")? != "as" {
            self.at -= 1;
            return Err(self.wrong("\"as\""));
        }
        let kind = self.word("the name of a block")?;
        for name in names {
            self.document.instances.push((name.word("instantiate")?.to_owned(), kind.clone()));
        }
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Value, ParamError> {
        if depth == NESTING_MAX {
            return Err(self.wrong(&format!("blocks and lists at most {NESTING_MAX} deep")));
        }
        let place = self.place();
        if self.takes(b'[') {
            let mut values = Vec::new();
            while !self.takes(b']') {
                if self.takes(b',') {
                    continue;
                }
                let value = self.value(depth + 1)?;
                match (&value.what, self.peek(0)) {
                    (ParamKind::Word(first), Some(Token::Word(dots))) if dots == ".." => {
                        let first = first.clone();
                        self.at += 1;
                        let last = self.word("the end of a range, such as disk0 .. disk3")?;
                        let names = range(&first, &last).ok_or_else(|| {
                            ParamError(format!("{place}: {first} .. {last}: expected a range such as disk0 .. disk3"))
                        })?;
                        values.extend(
                            names.into_iter().map(|n| Value { what: ParamKind::Word(n), place: place.clone() }),
                        );
                    }
                    _ => values.push(value),
                }
            }
            return Ok(Value { what: ParamKind::List(values), place });
        }
        let first = self.word("a value")?;
        let what = match (self.peek(0), self.peek(1)) {
            (Some(Token::Mark(b'{')), _) => ParamKind::Block(self.block(first, None, &place, depth)?),
            (Some(Token::Word(name)), Some(Token::Mark(b'{'))) => {
                let name = name.clone();
                self.at += 1;
                ParamKind::Block(self.block(first, Some(name), &place, depth)?)
            }
            (Some(Token::Word(name)), Some(Token::Mark(b'['))) => {
                let name = name.clone();
                self.at += 1;
                let list = self.value(depth + 1)?;
                ParamKind::Node(first, name, list.list("topology")?.to_vec())
            }
            _ => number(&first).unwrap_or(ParamKind::Word(first)),
        };
        Ok(Value { what, place })
    }

    fn block(&mut self, kind: String, name: Option<String>, place: &str, depth: usize) -> Result<Block, ParamError> {
        self.at += 1;
        let parent = self.document.named(&kind).cloned();
        let mut block = match parent {
            Some(parent) => Block { name, place: place.to_owned(), ..parent },
            None => Block { kind, name, place: place.to_owned(), values: Vec::new() },
        };
        let mut own = Vec::new();
        while !self.takes(b'}') {
            if self.takes(b',') || self.takes(b';') {
                continue;
            }
            let mut names = Vec::new();
            if self.peek(0) == Some(&Token::Mark(b'[')) {
                // [a, b] = value gives both the value.
                for one in self.value(depth + 1)?.list("names")? {
                    names.push(one.word("a name")?.to_owned());
                }
            } else {
                let mut words = vec![self.word("a name, or \"}\"")?];
                while let Some(Token::Word(word)) = self.peek(0) {
                    words.push(word.clone());
                    self.at += 1;
                }
                names.push(words.join(" "));
            }
            if !self.takes(b'=') {
                return Err(self.wrong(&format!("\"=\" after {:?}", names.join(", "))));
            }
            let value = self.value(depth + 1)?;
            own.extend(names.into_iter().map(|name| (name, value.clone())));
        }
        // A block's own values come before inherited ones.
        own.append(&mut block.values);
        block.values = own;
        Ok(block)
    }
}

fn number(text: &str) -> Option<ParamKind> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if let Some(hex) = unsigned.strip_prefix("0x") {
        let value = i64::from_str_radix(hex, 16).ok()?;
        return Some(ParamKind::Int(if unsigned == text { value } else { -value }));
    }
    let mut bytes = unsigned.bytes();
    if !bytes.next().is_some_and(|b| b.is_ascii_digit()) {
        return None;
    }
    if unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().map(ParamKind::Int);
    }
    text.parse().ok().map(ParamKind::Real)
}

/// disk0 .. disk3 as four names.
fn range(first: &str, last: &str) -> Option<Vec<String>> {
    let split = |text: &str| {
        let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (stem, number) = text.split_at(text.len() - digits);
        Some((stem.to_owned(), number.parse::<u32>().ok()?))
    };
    let ((stem, from), (other, to)) = (split(first)?, split(last)?);
    (stem == other && from <= to && to - from < 1 << 16).then(|| (from..=to).map(|n| format!("{stem}{n}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Document, String> {
        let mut open = |file: &str, _: &str| match file {
            "inner" => Ok(("inner".to_owned(), "kind inside {\n  Depth = 2 }".to_owned())),
            "loop" => Ok(("loop".to_owned(), "source loop".to_owned())),
            _ => Err("no such file".to_owned()),
        };
        parse("t", text, &mut open).map_err(|error| error.to_string())
    }

    #[test]
    fn parameter_blocks_lists_sources_and_topology() {
        let text = concat!(
            "kind a { # a comment\n Long name of it = 0.25, List = [1, -2, 0x1f, [x] ],\n [p, q] = w,",
            " Model = source inner\n}\na b { Long name of it = 7 }\n",
            "instantiate [ d0 .. d2, e ] as b\ntopology bus b0 [ ctlr c0 [ disk d0 [] ] ]\n",
        );
        let document = read(text).unwrap();
        let b = document.named("b").unwrap();
        assert_eq!(b.kind, "kind");
        assert_eq!(b.need("Long name of it").unwrap().real("x"), Ok(7.0));
        assert_eq!(b.need("List").unwrap().list("x").unwrap()[2].whole("x", 0, 99), Ok(31));
        assert_eq!(b.need("q").unwrap().word("q"), Ok("w"));
        assert_eq!(b.need("Model").unwrap().block("x").unwrap().need("Depth").unwrap().place, "inner, line 2");
        assert_eq!(document.instances.len(), 4);
        assert_eq!(document.instances[2], ("d2".to_owned(), "b".to_owned()));
        assert!(matches!(
            &document.topology[0].what,
            ParamKind::Node(kind, name, below) if kind == "bus" && name == "b0" && below.len() == 1
        ));
    }

    #[test]
    fn errors_name_file_line_and_expected_text() {
        for (text, part) in [
            ("kind a {\n x 1 }", "t, line 2: expected \"=\" after \"x 1\""),
            ("kind a {\n x = ", "t, at its end: expected a value, found nothing (is the file cut off?)"),
            ("kind a {\n x = [1, 2", "cut off"),
            ("source nowhere", "t, line 1: source nowhere: no such file"),
            ("source loop", "32 deep"),
            ("7", "expected \"type name"),
            ("instantiate [a] like b", "expected \"as\", found \"like\""),
            ("instantiate [ a1 .. b3 ] as c", "a range such as"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text:?} gives {error:?}, without {part:?}");
        }
        let document = read("kind a { x = y, n = 1.5 }").unwrap();
        let a = document.named("a").unwrap();
        let error = a.need("n").unwrap().whole("n", 0, 9).unwrap_err().to_string();
        assert_eq!(error, "t, line 1: n = 1.5: expected a whole number from 0 to 9");
        assert_eq!(a.need("z").unwrap_err().to_string(), "t, line 1: kind has no \"z\"");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(words in prop::collection::vec(prop::sample::select(vec![
            "kind", "a", "{", "}", "[", "]", ",", "=", "1", "-0.5", "0x", "0x1", "source", "inner", "loop",
            "..", "\n", "#", "instantiate", "topology", "as", ";", "é", "d0", "d9"]), 0..60)) {
            let _ = read(&words.join(" "));
        }
    }
}
