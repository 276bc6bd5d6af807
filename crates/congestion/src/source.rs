//! Facts read off the text of an algorithm without compiling it.

use crate::problem::Problem;

/// Hooks with their signature, as cc.h lists them.
pub(crate) const HOOKS: [(&str, &str); 12] = [
    ("init", "void f(struct cc_sock *sk)"),
    ("ssthresh", "u32 f(struct cc_sock *sk)"),
    ("cong_avoid", "void f(struct cc_sock *sk, u32 ack, u32 acked)"),
    ("set_state", "void f(struct cc_sock *sk, u8 state)"),
    ("cwnd_event", "void f(struct cc_sock *sk, u32 event)"),
    ("in_ack_event", "void f(struct cc_sock *sk, u32 flags)"),
    ("pkts_acked", "void f(struct cc_sock *sk, const struct cc_ack_sample *sample)"),
    ("min_tso_segs", "u32 f(struct cc_sock *sk)"),
    ("cong_control", "void f(struct cc_sock *sk, u32 ack, int flag, const struct cc_rate_sample *rs)"),
    ("undo_cwnd", "u32 f(struct cc_sock *sk)"),
    ("release", "void f(struct cc_sock *sk)"),
    ("flags", "CC_NEEDS_ECN or 0, not a function"),
];

/// The line of `code` that holds `word`, from 1; comments do not count.
pub(crate) fn line_of(code: &str, word: &str) -> Option<usize> {
    let bare = bare(code);
    bare.find(word).map(|at| 1 + bare[..at].matches('\n').count())
}

/// Names of the parameters that CC_PARAMS declares.
pub(crate) fn parameters(code: &str) -> Vec<String> {
    let bare = bare(code);
    let Some(at) = bare.find("CC_PARAMS(") else { return vec![] };
    let mut depth = 0;
    let mut names = vec![];
    for (place, sign) in bare[at..].char_indices() {
        match sign {
            '(' => {
                depth += 1;
                if depth == 2 {
                    let rest = &bare[at + place + 1..];
                    names.push(rest.split(',').next().unwrap_or_default().trim().to_owned());
                }
            }
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 && sign == ')' {
            break;
        }
    }
    names
}

/// Divisions by what may be zero, as far as the text tells: by anything but a number, a constant in capitals, or
/// cc_max(..., number). A processor stops at a division by zero, and with it the simulator; BPF gives 0.
pub(crate) fn divisions(code: &str) -> Vec<Problem> {
    let bare = bare(code);
    let mut found: Vec<Problem> = vec![];
    for (at, _) in bare.match_indices(['/', '%']) {
        let divisor = without_casts(bare[at + 1..].trim_start_matches('=').trim_start());
        let line = 1 + bare[..at].matches('\n').count();
        let text = code.lines().nth(line - 1).unwrap_or_default();
        let directive = text.trim_start().starts_with('#');
        if !directive && !never_zero(divisor) && !found.iter().any(|p| p.line == Some(line)) {
            let what = format!("divides by {}: may that be 0?", expression(divisor));
            let hint = "A division by 0 stops the simulator, and gives 0 in the kernel. cc_div(n, d) gives 0 in both.";
            found.push(Problem { line: Some(line), what, code: text.to_owned(), hint: Some(hint.to_owned()) });
        }
    }
    found
}

fn never_zero(divisor: &str) -> bool {
    let text = expression(divisor);
    let constant = |text: &str| {
        let name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        !text.is_empty()
            && (text.starts_with(|c: char| ('1'..='9').contains(&c)) || text.chars().all(name) && text != "0")
    };
    let least =
        text.strip_prefix("cc_max(").and_then(|rest| rest.strip_suffix(')')).and_then(|args| args.rsplit_once(','));
    constant(text) || text.starts_with("sizeof") || least.is_some_and(|(_, least)| constant(least.trim()))
}

/// A text without the casts in front: "(u64)x" is "x".
fn without_casts(mut text: &str) -> &str {
    const TYPES: [&str; 6] = ["(u64)", "(u32)", "(u16)", "(u8)", "(s64)", "(s32)"];
    while let Some(rest) = TYPES.iter().find_map(|cast| text.strip_prefix(cast)) {
        text = rest.trim_start();
    }
    text
}

/// The name, number, call or bracket that a text begins with.
fn expression(text: &str) -> &str {
    let mut depth = 0;
    for (at, sign) in text.char_indices() {
        let word = sign.is_ascii_alphanumeric() || matches!(sign, '_' | '.');
        let member = sign == '-' && text[at..].starts_with("->") || sign == '>' && text[..at].ends_with('-');
        match sign {
            '(' | '[' => depth += 1,
            ')' | ']' if depth == 0 => return text[..at].trim(),
            ')' | ']' => depth -= 1,
            _ if depth == 0 && !word && !member => return text[..at].trim(),
            _ => {}
        }
    }
    text.trim()
}

/// Directives by which the preprocessor opens a file.
const OPENING: [&str; 4] = ["include", "include_next", "import", "embed"];

/// Every place of the text that opens a file other than cc.h.
pub(crate) fn other_headers(code: &str) -> Vec<Problem> {
    let spliced = spliced(code);
    let bare = bare(&spliced);
    let mut found = vec![];
    for (at, (line, text)) in bare.lines().zip(spliced.lines()).enumerate() {
        let Some(rest) = line.trim_start().strip_prefix('#') else { continue };
        let rest = rest.trim_start();
        let word = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        if !OPENING.contains(&word) {
            continue;
        }
        // Names are blanked in the bare line.
        let name = text.split_once(word).map_or("", |(_, rest)| rest).trim();
        let is_cc_h = ["\"cc.h\"", "<cc.h>"].iter().any(|own| {
            name.strip_prefix(own).is_some_and(|rest| rest.trim().is_empty() || rest.trim_start().starts_with('/'))
        });
        if word == "include" && is_cc_h {
            continue;
        }
        let name = name.split(['"', '<', '>']).map(str::trim).find(|part| !part.is_empty());
        let what = format!("there is no header {}", name.unwrap_or_default());
        let hint =
            "An algorithm includes cc.h and nothing else: what it may see and do is what the kernel would let it.";
        found.push(Problem { line: Some(at + 1), what, code: text.to_owned(), hint: Some(hint.to_owned()) });
    }
    found
}

/// A C text with continued lines joined, and other spellings of # and \ replaced; lines stay where they begin.
fn spliced(code: &str) -> String {
    let code = code.replace("??=", "#").replace("??/", "\\").replace("%:", "#");
    let mut result = String::with_capacity(code.len());
    let mut pending = 0;
    for line in code.split('\n') {
        let line = line.trim_end_matches('\r');
        // gcc and clang join also where blanks follow.
        match line.trim_end_matches([' ', '\t', '\u{b}', '\u{c}']).strip_suffix('\\') {
            Some(begin) => {
                result.push_str(begin);
                pending += 1;
            }
            None => {
                result.push_str(line);
                result.extend(std::iter::repeat_n('\n', pending + 1));
                pending = 0;
            }
        }
    }
    result
}

/// A C text with comments, strings and characters blanked, lines where they were.
fn bare(code: &str) -> String {
    let mut result = String::with_capacity(code.len());
    let mut signs = code.chars().peekable();
    while let Some(sign) = signs.next() {
        match (sign, signs.peek()) {
            ('/', Some('*')) => {
                let mut last = ' ';
                signs.next();
                for inner in signs.by_ref() {
                    result.extend((inner == '\n').then_some('\n'));
                    if (last, inner) == ('*', '/') {
                        break;
                    }
                    last = inner;
                }
                result.push(' ');
            }
            ('/', Some('/')) => while signs.next_if(|&inner| inner != '\n').is_some() {},
            ('"' | '\'', _) => {
                result.push(sign);
                while let Some(inner) = signs.next() {
                    match inner {
                        '\\' => drop(signs.next()),
                        '\n' => {
                            result.push(inner);
                            break;
                        }
                        _ if inner == sign => {
                            result.push(inner);
                            break;
                        }
                        _ => {}
                    }
                }
            }
            _ => result.push(sign),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_off_the_text() {
        let code = "/* CC_PARAMS((old, 1)) */\nCC_PARAMS(\n\t(keep, (1 + 2), 1, \"a, (b\"),\n\t(C, 4));\n(void)x;";
        assert_eq!(parameters(code), ["keep", "C"]);
        assert_eq!(line_of(code, "CC_PARAMS"), Some(2));
        assert_eq!(parameters("CC_NO_PARAMS;"), [] as [&str; 0]);
    }

    #[test]
    fn every_spelling_of_another_header_is_found_with_its_line() {
        for text in [
            "#include <stdio.h>",
            "# include </dev/zero>",
            "#include/**/\"fifo\"",
            "%:include <x>",
            "??=include <x>",
            "#inc\\\nlude <x>",
            "#inc??/\nlude <x>",
            "/* */ # /* */ include <x>",
            "int c = '/*';\n#include <x>",
            "int c = '\"';\n#include <x>",
            "#include_next <cc.h>",
            "#import \"cc.h\"",
            "#embed \"x\"",
            "#define X <x>\n#include X",
            "#include \"cc.h\" X",
            "#include \"../cc.h\"",
        ] {
            let code = format!("#include \"cc.h\"\n{text}\n");
            let found = other_headers(&code);
            let line = if text.contains(";\n") || text.contains("X\n") || text.contains("define") { 3 } else { 2 };
            assert_eq!(found.iter().map(|problem| problem.line).collect::<Vec<_>>(), [Some(line)], "{text}");
        }
        for text in ["#include <cc.h>", "  #  include \"cc.h\" /* ours */", "/*\n#include <x>\n*/", "// #include <x>"] {
            assert_eq!(other_headers(text), [], "{text}");
        }
    }

    #[test]
    fn divisions_by_what_may_be_zero_are_found_and_others_are_not() {
        let risky =
            ["x / acked", "x /= cwnd", "x % ca->rtt", "x / (u64)cc_srtt_us(sk)", "x / (a - b)", "x / cc_max(a, 0)"];
        for text in risky {
            assert_eq!(divisions(&format!("{text};")).len(), 1, "{text}");
        }
        assert_eq!(divisions("\n\nx / ca->rtt_us + 1;")[0].what, "divides by ca->rtt_us: may that be 0?");
        assert_eq!(divisions("\n\nx / y;")[0].line, Some(3));
        let sound = [
            "x / 2",
            "x / SHARE",
            "x / (u64)1000",
            "cc_div(x, y)",
            "x / cc_max(a, 1)",
            "/* x / y */",
            "\"a / b\"",
            "x / sizeof(y)",
        ];
        for text in sound {
            assert_eq!(divisions(&format!("{text};")), [], "{text}");
        }
    }
}
