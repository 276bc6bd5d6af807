//! A compiler's messages about an algorithm, in plain words: the line, the fault, and for the usual mistakes what
//! would be right.

use crate::problem::Problem;
use crate::source;

/// A compiler's grade of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grade {
    Error,
    Warning,
}

/// The errors, or the warnings, in a compiler's `output` about `file`, whose text is `code`.
pub(crate) fn problems(output: &str, file: &str, code: &str, grade: Grade) -> Vec<Problem> {
    let mut found: Vec<Problem> = vec![];
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(mut said) = Said::read(line, file).filter(|said| said.grade == Some(grade)) else { continue };
        // A mistake in the use of a macro is found in our header. The last place of its expansion is the file's.
        let mut detail = String::new();
        while let Some(note) = lines.next_if(|next| Said::read(next, file).is_none_or(|said| said.grade.is_none())) {
            let Some(note) = Said::read(note, file) else { continue };
            if note.text.starts_with("in expansion of macro") && said.outside && !note.outside {
                (said.line, said.outside) = (note.line, false);
            }
            if note.text.starts_with("(near initialization") || note.text.starts_with("expression evaluates to") {
                detail = note.text.to_owned();
            }
        }
        let text = without_option(said.text);
        // Of a hook that needs too much stack clang names the place where the hook's frame was made: CC_ALGORITHM.
        let frame = STACK.iter().any(|part| text.contains(part));
        let line = said.line.filter(|_| !said.outside && !frame);
        let shown = line.and_then(|n| code.lines().nth(n - 1)).unwrap_or_default();
        let (what, hint) = explained(text, &detail, shown, code);
        let problem = Problem { line, what, code: shown.to_owned(), hint };
        // One mistake is often reported twice: as what it is, then as what it leads to.
        let again = |p: &Problem| p.line == line && (line.is_some() || p.what == problem.what);
        if !found.iter().any(again) {
            found.push(problem);
        }
    }
    found
}

/// One line of a compiler that names a place.
struct Said<'a> {
    /// None for a note.
    grade: Option<Grade>,
    /// It names another file than the user's.
    outside: bool,
    line: Option<usize>,
    text: &'a str,
}

impl<'a> Said<'a> {
    fn read(line: &'a str, file: &str) -> Option<Said<'a>> {
        if let Some(at) = line.find("undefined reference to").or_else(|| line.find("undefined symbol")) {
            let number = line[..at].strip_prefix(file).and_then(|rest| rest.trim_matches([':', ' ']).parse().ok());
            return Some(Said {
                grade: Some(Grade::Error),
                outside: number.is_none(),
                line: number,
                text: &line[at..],
            });
        }
        // clang 16's back end, which then breaks off with a trace of itself.
        if let Some(rest) = line.strip_prefix("Error at line ") {
            let (number, text) = rest.split_once(": ")?;
            return Some(Said { grade: Some(Grade::Error), outside: false, line: number.parse().ok(), text });
        }
        // A message that something else failed says nothing of its own.
        if line.contains("command failed") || line.contains("ld returned") {
            return None;
        }
        let marks = [
            (": fatal error: ", Some(Grade::Error)),
            (": error: ", Some(Grade::Error)),
            (": warning: ", Some(Grade::Warning)),
            (": note: ", None),
        ];
        let (at, mark, grade) = marks.iter().find_map(|&(mark, grade)| line.find(mark).map(|at| (at, mark, grade)))?;
        let place = &line[..at];
        let mut numbers = place.strip_prefix(file).unwrap_or_default().split(':').skip(1);
        let number = numbers.next().and_then(|n| n.parse().ok());
        Some(Said { grade, outside: number.is_none(), line: number, text: &line[at + mark.len()..] })
    }
}

/// A message without the name of the option that asked for it.
fn without_option(text: &str) -> &str {
    text.rsplit_once(" [-W").map_or(text, |(before, _)| before).trim()
}

const INTEGERS: &str = "Integers only: the kernel has no floating point. Scale instead: a half is x / 2, seven tenths \
                        are x * 7 / 10 (multiply first).";
const NO_LIBRARY: &str =
    "An algorithm is linked with nothing: no library functions, no floating point. cc.h lists what \
                          there is.";
const PARAMETER: &str = "A parameter is (name, default, min, max, scale, unit, text), all integers: what a scenario \
                         writes, times scale.";

/// In clang's words for more on the stack than BPF has.
const STACK: [&str; 2] = ["stack limit", "Looks like the BPF stack"];

/// Returns the meaning of a message, and a hint.
fn explained(text: &str, detail: &str, line: &str, code: &str) -> (String, Option<String>) {
    let said = |part: &str| text.contains(part);
    let as_is = |hint: String| (text.to_owned(), Some(hint));
    let floating = ["poisoned", "from 'double'", "from 'float'", "floating-point", "SSE register", "general-regs-only"];
    if floating.iter().any(|part| said(part)) {
        return (format!("floating point ({text})"), Some(INTEGERS.into()));
    }
    if said("No such file or directory") || said("file not found") {
        let header = text.split([':', '\'']).find(|part| !part.trim().is_empty()).unwrap_or_default();
        let hint =
            "An algorithm includes cc.h and nothing else: what it may see and do is what the kernel would let it.";
        return (format!("there is no header {header}"), Some(hint.into()));
    }
    if said("undefined reference to") || said("undefined symbol") {
        let name = text.split(['`', '\'', ':']).nth(1).unwrap_or_default().trim();
        return (format!("{name} is not there ({text})"), Some(NO_LIBRARY.into()));
    }
    if let Some(name) = word_after(text, "cc_param_index_").or_else(|| word_after(text, "cc_param_")) {
        let known = source::parameters(code);
        let hint = match known.is_empty() {
            true => "The file declares no parameters: CC_PARAMS((...), ...) before their first use.".to_owned(),
            false => format!("CC_PARAMS declares {}.", known.join(", ")),
        };
        return (format!("no parameter is called {name}"), Some(hint));
    }
    if said("'cc_params'") || said("'cc_params_count'") {
        let hint = "Declare them with CC_PARAMS((...), ...), or write CC_NO_PARAMS; once, before their first use.";
        return ("the file says nothing about its parameters".into(), Some(hint.into()));
    }
    if said("at most 104 bytes") {
        let bytes = detail.split('\'').nth(1).and_then(|text| text.split(' ').next());
        let size = bytes.map_or(String::new(), |bytes| format!("; this one has {bytes}"));
        let hint =
            "Linux gives an algorithm no more (13 u64). Smaller types or fewer fields: u32 for windows, u8 for flags.";
        return (format!("state of a flow: at most 104 bytes{size}"), Some(hint.into()));
    }
    if said("min <= default <= max") {
        let what = text.find("parameter ").map_or(text, |at| text[at..].trim_end_matches('"'));
        return (what.to_owned(), Some(PARAMETER.into()));
    }
    if said("no member named") && said("cc_algorithm") || said("does not refer to any field") {
        let name = quoted(text).into_iter().find(|name| !name.contains(' ')).unwrap_or_default();
        return (format!("no hook is called {name}{}", suggestion(text)), Some(hooks()));
    }
    if said("incompatible") && (detail.contains("cc_algorithm") || line.trim_start().starts_with('(')) {
        let hook = line.trim_start().trim_start_matches('(').split([',', ' ']).next().unwrap_or_default();
        if let Some((_, signature)) = source::HOOKS.iter().find(|(name, _)| *name == hook) {
            let hint = format!("It is called as {signature}.");
            return (format!("the function for the hook {hook} has other arguments or another result"), Some(hint));
        }
    }
    if said("implicit declaration of function") || said("call to undeclared function") {
        let name = quoted(text).into_iter().next().unwrap_or_default();
        let hint = match name {
            "cc_state" => "cc_state(sk) is there after CC_STATE(struct ...), which says what the state is.",
            _ if name.starts_with("cc_") => "cc.h lists, at its beginning, what an algorithm can read and set.",
            _ => NO_LIBRARY,
        };
        return (format!("no function is called {name}{}", suggestion(text)), Some(hint.into()));
    }
    if said("expected ';'") || said("expected ',' or ';'") || said("expected '=', ',', ';'") {
        return as_is("A semicolon is missing: at the end of this line, or of the one before it.".into());
    }
    if said("at end of input") || said("expected '}'") || said("no linkage follows extern") {
        return as_is(
            "A closing brace } is missing in a function above: all that follows is read as a part of it.".into(),
        );
    }
    if said("signed division") {
        let hint = "BPF has none before its cpu v4. Divide u64 values, and take care of the sign yourself.";
        return ("signed division".into(), Some(hint.into()));
    }
    if said("built-in function") && said("not supported") {
        return as_is("This takes a library function on BPF (128-bit numbers, for example): use 64 bits.".into());
    }
    if said(STACK[0]) || said(STACK[1]) {
        let hint = "Smaller or fewer local variables; what lasts from call to call is the state, cc_state(sk).";
        let what = "too much on the stack: all variables of functions that call each other have 512 bytes together";
        return (what.into(), Some(hint.into()));
    }
    if said("ivision by zero") || said("remainder by zero") {
        let hint = "BPF gives 0 there; a processor stops the program: cc_div(n, d).";
        return ("divides by zero".into(), Some(hint.into()));
    }
    (text.to_owned(), None)
}

fn hooks() -> String {
    let names: Vec<_> = source::HOOKS.iter().map(|(name, _)| *name).collect();
    format!("Hooks are {}.", names.join(", "))
}

/// "; did you mean x?" as far as the message has it.
fn suggestion(text: &str) -> String {
    text.find("did you mean").map_or(String::new(), |at| format!("; {}", &text[at..]))
}

/// The texts in single quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('\'').skip(1).step_by(2).collect()
}

/// The rest of the word in single quotes that begins with `prefix`, where it is called undeclared.
fn word_after<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let undeclared = text.contains("undeclared");
    quoted(text).first().and_then(|word| word.strip_prefix(prefix)).filter(|_| undeclared)
}
