//! Names that are left out: glob patterns as rsync's, for bytes.

use crate::error::{CopyError, ErrorKind};
use copy::CopyOptions;

/// The patterns of a copy.
#[derive(Default)]
pub(crate) struct Exclude {
    patterns: Vec<Pattern>,
}

struct Pattern {
    glob: Vec<u8>,
    /// Begins with "/": it matches from the top, others the last components of a path.
    anchored: bool,
    /// Ends in "/": it matches folders alone.
    folders: bool,
    /// Components that it matches; None: it has "**" and matches any number.
    components: Option<usize>,
}

impl Exclude {
    pub(crate) fn new(patterns: &[String]) -> Result<Exclude, CopyError> {
        let parsed = patterns.iter().map(|text| {
            let mut glob = text.as_bytes();
            let folders = glob.ends_with(b"/");
            glob = glob.strip_suffix(b"/").unwrap_or(glob);
            let anchored = glob.starts_with(b"/");
            glob = glob.strip_prefix(b"/").unwrap_or(glob);
            if glob.is_empty() || !closed(glob) {
                let text = format!("exclude: {text:?} is no pattern; write a name or a path, with *, **, ? or [a-z]");
                return Err(CopyError { kind: ErrorKind::Input, text });
            }
            let any = glob.windows(2).any(|pair| pair == b"**");
            let components = (!any).then(|| glob.iter().filter(|byte| **byte == b'/').count() + 1);
            Ok(Pattern { glob: glob.to_vec(), anchored, folders, components })
        });
        Ok(Exclude { patterns: parsed.collect::<Result<_, _>>()? })
    }

    /// Names that `mirror` does not remove.
    pub(crate) fn of_removal(options: &CopyOptions) -> Result<Exclude, CopyError> {
        Exclude::new(&[options.exclude.as_slice(), options.protect.as_slice()].concat())
    }

    /// True if a pattern names this entry; what is below a folder goes with it.
    pub(crate) fn leaves_out(&self, path: &[Vec<u8>], folder: bool) -> bool {
        self.patterns.iter().any(|pattern| (folder || !pattern.folders) && pattern.matches(path))
    }
}

impl Pattern {
    fn matches(&self, path: &[Vec<u8>]) -> bool {
        match self.components {
            Some(components) if components > path.len() || (self.anchored && components != path.len()) => false,
            Some(components) => glob_matches(&self.glob, &path[path.len() - components..].join(&b'/')),
            None if self.anchored => glob_matches(&self.glob, &path.join(&b'/')),
            None => (0..path.len()).any(|from| glob_matches(&self.glob, &path[from..].join(&b'/'))),
        }
    }
}

/// True if each "[" has its "]".
fn closed(glob: &[u8]) -> bool {
    let mut at = 0;
    while at < glob.len() {
        match glob[at] {
            b'\\' => at += 2,
            b'[' => match class(glob, at, 0) {
                Some((_, next)) => at = next,
                None => return false,
            },
            _ => at += 1,
        }
    }
    at == glob.len()
}

/// The class that begins at `at`: whether it holds `byte`, and where it ends.
fn class(glob: &[u8], at: usize, byte: u8) -> Option<(bool, usize)> {
    let mut next = at + 1;
    let negated = matches!(glob.get(next), Some(b'!' | b'^'));
    next += usize::from(negated);
    let first = next;
    let mut holds = false;
    loop {
        match *glob.get(next)? {
            b']' if next > first => return Some((holds != negated, next + 1)),
            low => match (glob.get(next + 1), glob.get(next + 2)) {
                (Some(b'-'), Some(&high)) if high != b']' => {
                    holds |= (low..=high).contains(&byte);
                    next += 3;
                }
                _ => {
                    holds |= low == byte;
                    next += 1;
                }
            },
        }
    }
}

/// Matches without recursion: after a mismatch the last "*" (or "**", which crosses "/") takes one byte more.
fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    // Place in the pattern after the star, and in the text where it ends.
    type Star = Option<(usize, usize)>;
    let (mut star, mut wide): (Star, Star) = (None, None);
    loop {
        if glob[at..].starts_with(b"**") {
            at += 2;
            (wide, star) = (Some((at, seen)), None);
            continue;
        }
        if glob.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, seen));
            continue;
        }
        if seen == text.len() && at == glob.len() {
            return true;
        }
        let step = match (glob.get(at), text.get(seen)) {
            (Some(b'?'), Some(byte)) if *byte != b'/' => Some(at + 1),
            (Some(b'['), Some(&byte)) => class(glob, at, byte).filter(|(holds, _)| *holds && byte != b'/').map(|c| c.1),
            (Some(b'\\'), Some(byte)) => (glob.get(at + 1) == Some(byte)).then_some(at + 2),
            (Some(b'?' | b'['), _) => None,
            (Some(own), Some(byte)) => (own == byte).then_some(at + 1),
            _ => None,
        };
        if let Some(next) = step {
            (at, seen) = (next, seen + 1);
            continue;
        }
        match (star, wide) {
            (Some((from, taken)), _) if taken < text.len() && text[taken] != b'/' => {
                star = Some((from, taken + 1));
                (at, seen) = (from, taken + 1);
            }
            (_, Some((from, taken))) if taken < text.len() => {
                (wide, star) = (Some((from, taken + 1)), None);
                (at, seen) = (from, taken + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(pattern: &str, path: &str, folder: bool) -> bool {
        let path: Vec<Vec<u8>> = path.split('/').map(|name| name.as_bytes().to_vec()).collect();
        Exclude::new(&[pattern.to_owned()]).unwrap().leaves_out(&path, folder)
    }

    #[test]
    fn patterns_name_components_paths_and_folders() {
        for (pattern, path, folder, want) in [
            ("*.o", "a/b/c.o", false, true),
            ("*.o", "a/b/c.oo", false, false),
            ("a/*.o", "x/a/c.o", false, true),
            ("/a/*.o", "x/a/c.o", false, false),
            ("/a/*.o", "a/c.o", false, true),
            ("/a/*.o", "a/b/c.o", false, false),
            ("/a/**.o", "a/b/c.o", false, true),
            ("a/**/z", "q/a/b/c/z", false, true),
            ("cache/", "cache", false, false),
            ("cache/", "x/cache", true, true),
            ("[a-c]?", "b1", false, true),
            ("[!a-c]?", "b1", false, false),
            ("[]x]", "]", false, true),
            ("\\*", "*", false, true),
            ("\\*", "x", false, false),
            ("*a*b", "xaxbxb", false, true),
            ("a", "b/a", false, true),
        ] {
            assert_eq!(left_out(pattern, path, folder), want, "{pattern} {path}");
        }
    }

    #[test]
    fn a_pattern_that_is_none_is_refused() {
        for pattern in ["", "/", "[a", "x\\"] {
            assert_eq!(Exclude::new(&[pattern.to_owned()]).err().map(|e| e.kind), Some(ErrorKind::Input), "{pattern}");
        }
    }
}
