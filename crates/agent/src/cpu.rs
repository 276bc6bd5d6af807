//! CPU time of this machine: what its cores did not idle, from /proc/stat.

use std::fs;

/// Fields of a core's line (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal. Guest time is in user's.
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const STEAL: usize = 7;

/// Time that each core idled or was taken by a hypervisor, in ticks, and a number for each core.
#[derive(Clone, PartialEq, Debug)]
pub struct IdleTimes(Vec<(u32, u64)>);

impl IdleTimes {
    /// Those of now; None where the machine does not tell.
    pub fn now() -> Option<IdleTimes> {
        IdleTimes::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<IdleTimes> {
        let core = |line: &str| {
            let mut words = line.strip_prefix("cpu")?.split(' ');
            let number = words.next()?.parse().ok()?;
            let fields: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let idle = fields.get(IDLE)? + fields.get(IOWAIT).unwrap_or(&0) + fields.get(STEAL).unwrap_or(&0);
            Some((number, idle))
        };
        let cores: Vec<_> = text.lines().filter_map(core).collect();
        (!cores.is_empty()).then_some(IdleTimes(cores))
    }

    /// Seconds that each core worked in the `elapsed_s` since `earlier`. The kernel counts idle time to the microsecond
    /// and work by its ticks (get_idle_time in fs/proc/stat.c), so what was not idle is the better measure of work. It
    /// is told in whole ticks: a core that did nothing may have a little less than 0, so that a sum stays true.
    pub fn busy_s(&self, earlier: &IdleTimes, elapsed_s: f64, ticks_per_s: f64) -> Vec<f64> {
        let before = |number| earlier.0.iter().find(|core| core.0 == number).map(|core| core.1);
        self.0
            .iter()
            .filter_map(|&(number, idle)| Some(idle.saturating_sub(before(number)?)))
            .map(|idle| elapsed_s - idle as f64 / ticks_per_s)
            .collect()
    }
}

/// Ticks of /proc/stat per second.
pub fn ticks_per_s() -> f64 {
    // SAFETY: it reads a constant of the system.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_worked_while_it_did_not_idle_wait_for_disks_or_for_its_hypervisor() {
        let before = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 5 100 10 0 1 0 0 0\ncpu2 0 0 0 50 0 0 0 0 0 0\nintr 5\n";
        let after = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 5 120 15 0 1 5 0 0\ncpu2 0 0 0 160 0 0 0 0 0 0\nintr 5\n";
        let [before, after] = [before, after].map(|text| IdleTimes::parse(text).unwrap());
        let busy_s = after.busy_s(&before, 1.0, 100.0);
        assert!((busy_s[0] - 0.7).abs() < 1e-9 && (busy_s[1] + 0.1).abs() < 1e-9, "{busy_s:?}");
        assert_eq!(IdleTimes::parse("intr 5\n"), None);
        assert!(IdleTimes::now().is_some());
    }
}
