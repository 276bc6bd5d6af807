//! Time of an arm's seek by its distance.

/// Seek times in a drive's files, ms.
#[derive(Clone, PartialEq, Debug)]
pub enum SeekSpec {
    /// The same for every distance above zero.
    Constant(f64),
    /// Straight lines through the times of one cylinder, a third of all, and all.
    Linear {
        /// To the next cylinder.
        one: f64,
        /// Over a third of all.
        average: f64,
        /// Over all.
        full: f64,
    },
    /// A square root and a line, from one cylinder to all (Lee and Katz 1993).
    Curve {
        /// To the next cylinder.
        one: f64,
        /// On average.
        average: f64,
        /// Over all.
        full: f64,
    },
    /// A square root up to a distance and a line beyond (Ruemmler and Wilkes 1994), perhaps with times of their own
    /// for the shortest distances.
    RootThenLine {
        /// Distance at which the line begins.
        division: u32,
        /// Constant, and factor of the distance's square root.
        root: (f64, f64),
        /// Constant, and factor of the distance.
        line: (f64, f64),
        /// To the next cylinder.
        one: Option<f64>,
        /// By distance from 1.
        first: Vec<f64>,
    },
    /// (distance, time) as measured, joined by straight lines; beyond the last, the last line goes on.
    Measured(Vec<(u32, f64)>),
}

impl SeekSpec {
    /// Time by distance, ns, for 0 to `cylinders` - 1. (Square roots are exact to the last bit on every machine: IEEE
    /// 754.)
    pub fn table(&self, cylinders: u32) -> Vec<u64> {
        (0..cylinders.max(1)).map(|distance| (self.ms(distance, cylinders) * 1e6).round().max(0.0) as u64).collect()
    }

    fn ms(&self, distance: u32, cylinders: u32) -> f64 {
        if distance == 0 {
            return 0.0;
        }
        let far = f64::from(distance);
        match self {
            SeekSpec::Constant(ms) => *ms,
            SeekSpec::Linear { one, average, full } => {
                let third = f64::from(cylinders) / 3.0;
                if far <= third {
                    one + (average - one) * (far - 1.0) / (third - 1.0).max(1.0)
                } else {
                    average + (full - average) * (far - third) / (f64::from(cylinders) - 1.0 - third).max(1.0)
                }
            }
            SeekSpec::Curve { one, average, full } => {
                let all = f64::from(cylinders);
                let root = (15.0 * average - 10.0 * one - 5.0 * full) / (3.0 * all.sqrt());
                let line = (7.0 * one - 15.0 * average + 8.0 * full) / (3.0 * all);
                one + root * (far - 1.0).sqrt() + line * (far - 1.0)
            }
            SeekSpec::RootThenLine { division, root, line, one, first } => {
                if let Some(ms) = first.get(distance as usize - 1) {
                    return *ms;
                }
                match one {
                    Some(ms) if distance == 1 => *ms,
                    _ if distance < *division => root.0 + root.1 * far.sqrt(),
                    _ => line.0 + line.1 * far,
                }
            }
            SeekSpec::Measured(points) => measured(points, distance),
        }
    }
}

fn measured(points: &[(u32, f64)], distance: u32) -> f64 {
    let after = points.partition_point(|point| point.0 < distance).clamp(1, points.len().max(2) - 1);
    match (points.get(after - 1), points.get(after)) {
        (Some(&(d0, t0)), Some(&(d1, t1))) if distance >= d0 => {
            t0 + (t1 - t0) * f64::from(distance - d0) / f64::from((d1 - d0).max(1))
        }
        (Some(&(_, only)), _) => only,
        _ => 0.0,
    }
}

/// Reads a measured seek curve: an optional first line `Seek distances measured: n`, then `distance, ms[, deviation]`.
///
/// # Errors
/// The first line that is not right, with its number.
pub fn read_curve(name: &str, text: &str) -> Result<Vec<(u32, f64)>, String> {
    let mut points: Vec<(u32, f64)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || (number == 0 && line.starts_with("Seek distances measured")) {
            continue;
        }
        let mut fields = line.split(',').map(str::trim);
        let point =
            fields.next().and_then(|f| f.parse::<u32>().ok()).zip(fields.next().and_then(|f| f.parse::<f64>().ok()));
        let good = point.filter(|&(d, ms)| d > points.last().map_or(0, |p| p.0) && (0.0..1e6).contains(&ms));
        let expected = "\"distance, ms\" with rising distances above 0";
        points.push(good.ok_or_else(|| format!("{name}, line {}: {line:?}: expected {expected}", number + 1))?);
    }
    if points.is_empty() {
        return Err(format!("{name}: no seek time in it"));
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_curves_are_joined_by_lines() {
        let points = read_curve("t.seek", "Seek distances measured: 3\n1,\t1.0\n3, 2.0, 0.1\n10,\t9.0\n").unwrap();
        let table = SeekSpec::Measured(points).table(13);
        assert_eq!(&table[..5], &[0, 1_000_000, 1_500_000, 2_000_000, 3_000_000]);
        assert_eq!((table[10], table[12]), (9_000_000, 11_000_000));
        assert_eq!(SeekSpec::Measured(vec![(1, 2.0)]).table(5)[4], 2_000_000);
        assert!(read_curve("t.seek", "1, 1.0\n1, 2.0\n").unwrap_err().contains("t.seek, line 2"));
        assert!(read_curve("t.seek", "\n").unwrap_err().contains("no seek time"));
    }

    #[test]
    fn formulas_go_through_their_points() {
        for spec in [
            SeekSpec::Linear { one: 1.0, average: 8.0, full: 16.0 },
            SeekSpec::Curve { one: 1.0, average: 8.0, full: 16.0 },
        ] {
            let table = spec.table(3001);
            assert_eq!(table[1], 1_000_000);
            // Lee and Katz take a third of the cylinders for the mean seek, and come near its time there.
            assert!(table[1000].abs_diff(8_000_000) < 500_000, "{spec:?}: {}", table[1000]);
            assert!(table[3000].abs_diff(16_000_000) < 20_000, "{spec:?}: {}", table[3000]);
        }
        let hp = SeekSpec::RootThenLine {
            division: 100,
            root: (3.0, 0.5),
            line: (7.0, 0.01),
            one: None,
            first: vec![1.0, 1.5],
        };
        let table = hp.table(200);
        assert_eq!((table[1], table[2], table[4], table[100]), (1_000_000, 1_500_000, 4_000_000, 8_000_000));
    }
}
