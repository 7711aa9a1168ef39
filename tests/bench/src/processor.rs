//! Which processor a thread runs on, and with it the programs that it starts.

use anyhow::{Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors of the machine, divided between a server and its load.
#[derive(Clone, Copy)]
pub struct Division {
    /// One, which a server has for itself.
    pub server: CpuSet,
    /// All others.
    pub load: CpuSet,
}

impl Division {
    /// Divides the processors that this process may use.
    ///
    /// # Errors
    /// When there is only one: a server that shares it with its load is not measured by itself.
    pub fn of_this_machine() -> Result<Self> {
        Self::of(sched_getaffinity(None)?)
    }

    fn of(mut all: CpuSet) -> Result<Self> {
        ensure!(all.count() > 1, "this benchmark takes two processors: one for the server, one for the load");
        let mut server = CpuSet::new();
        if let Some(first) = (0..CpuSet::MAX_CPU).find(|number| all.is_set(*number)) {
            server.set(first);
            all.unset(first);
        }
        Ok(Self { server, load: all })
    }
}

/// Does `work` on a thread that stays on `processors`, as do threads and processes that it starts.
///
/// # Errors
/// When the system does not let the thread move, and whatever `work` returns.
pub fn on<T: Send>(processors: &CpuSet, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let pinned = || {
        sched_setaffinity(None, processors)?;
        work()
    };
    std::thread::scope(|scope| match scope.spawn(pinned).join() {
        Ok(outcome) => outcome,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        for number in numbers {
            set.set(*number);
        }
        set
    }

    #[test]
    fn the_server_gets_one_and_the_load_the_rest() {
        let division = Division::of(set(&[1, 2, 5])).unwrap();
        assert!(division.server == set(&[1]) && division.load == set(&[2, 5]));
        assert!(Division::of(set(&[3])).is_err());
    }

    #[test]
    fn a_program_stays_where_the_thread_that_starts_it_is() {
        let mut all = sched_getaffinity(None).unwrap();
        let last = (0..CpuSet::MAX_CPU).filter(|number| all.is_set(*number)).max().unwrap();
        let one = set(&[last]);
        let status = on(&one, || Ok(std::process::Command::new("cat").arg("/proc/self/status").output()?)).unwrap();
        let status = String::from_utf8(status.stdout).unwrap();
        assert!(status.contains(&format!("Cpus_allowed_list:\t{last}\n")), "{status}");
        all.unset(last);
        let elsewhere = sched_getaffinity(None).unwrap();
        assert!(all.count() == 0 || elsewhere != one, "the thread that asked was moved");
    }
}
