//! The adapters of this machine, and the selection of one.

use crate::GpuError;
use std::fmt;

use crate::DeviceChoice;

/// The kind of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdapterKind {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A GPU that is lent to a virtual machine.
    Virtual,
    /// Not known.
    Other,
    /// The CPU emulating a GPU: for tests.
    Software,
}

impl fmt::Display for AdapterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AdapterKind::Discrete => "discrete",
            AdapterKind::Integrated => "integrated",
            AdapterKind::Virtual => "virtual",
            AdapterKind::Other => "other",
            AdapterKind::Software => "software",
        })
    }
}

/// The properties of an adapter before it is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its place in the list, as `gpu:<index>` means it.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// The interface: `vulkan`, `metal`, `dx12` or `gl`.
    pub backend: String,
    /// Its kind.
    pub kind: AdapterKind,
    /// The driver and its version.
    pub driver: String,
    /// The vendor's number on the PCI bus.
    pub vendor: u32,
    /// Its address on that bus; empty if unknown.
    pub bus: String,
    /// The largest buffer, in bytes.
    pub max_buffer: u64,
    /// The largest part of a buffer that a kernel can be bound to, in bytes.
    pub max_binding: u64,
    /// The most threads of a workgroup.
    pub max_threads: u32,
    /// The memory that a workgroup shares, in bytes.
    pub max_shared: u32,
    /// How many threads run in lockstep, if there are subgroup operations.
    pub subgroups: Option<(u32, u32)>,
    /// Whether it can measure the time of kernels.
    pub timestamps: bool,
    /// Why the kernels cannot run on it.
    pub unfit: Option<String>,
}

impl About {
    /// Whether a name or an index selects it.
    fn is_meant(&self, by: &str) -> bool {
        match by.parse::<usize>() {
            Ok(index) => self.index == index,
            Err(_) => self.name.to_lowercase().contains(&by.to_lowercase()),
        }
    }
}

/// A GPU that a scheduler assigned to this process: the vendor, and the index among that vendor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    vendor: u32,
    place: usize,
}

impl Given {
    /// In the form of Slurm and others. If they name a GPU by anything but its index, this returns nothing.
    fn by(variable: impl Fn(&str) -> Option<String>) -> Option<Given> {
        const VARIABLES: [(&str, u32); 2] = [
            ("CUDA_VISIBLE_DEVICES", 0x10de),
            ("ROCR_VISIBLE_DEVICES", 0x1002),
        ];
        VARIABLES.into_iter().find_map(|(name, vendor)| {
            let first = variable(name)?.split(',').next()?.trim().parse().ok();
            first.map(|place| Given { vendor, place })
        })
    }

    /// The selected adapter. A process that sees only one of the vendor's was confined to it; otherwise they are counted in
    /// the order of the bus.
    fn among(self, adapters: &[About]) -> Option<&About> {
        let mut of_vendor: Vec<&About> = adapters
            .iter()
            .filter(|about| about.vendor == self.vendor && about.kind != AdapterKind::Software)
            .collect();
        of_vendor.sort_by(|a, b| a.bus.cmp(&b.bus));
        match of_vendor[..] {
            [only] => Some(only),
            _ => of_vendor.get(self.place).copied(),
        }
    }
}

/// The adapter for a choice: the best that fits, or why there is none.
pub(crate) fn pick<'a>(
    adapters: &'a [About],
    choice: &DeviceChoice,
) -> Result<&'a About, GpuError> {
    pick_among(adapters, choice, Given::by(|name| std::env::var(name).ok()))
}

fn pick_among<'a>(
    adapters: &'a [About],
    choice: &DeviceChoice,
    given: Option<Given>,
) -> Result<&'a About, GpuError> {
    if adapters.is_empty() {
        return Err(GpuError::NoAdapter);
    }
    if matches!(choice, DeviceChoice::Auto | DeviceChoice::Gpu)
        && let Some(about) = given.and_then(|given| given.among(adapters))
        && about.unfit.is_none()
    {
        return Ok(about);
    }
    let meant = adapters.iter().filter(|about| match choice {
        DeviceChoice::Auto => about.kind != AdapterKind::Software,
        DeviceChoice::Cpu => false,
        DeviceChoice::Gpu => true,
        DeviceChoice::Named(by) => about.is_meant(by),
    });
    let best = meant.min_by_key(|about| (about.unfit.is_some(), about.kind, about.index));
    let Some(best) = best else {
        let names: Vec<String> = adapters
            .iter()
            .map(|about| format!("{} {} ({})", about.index, about.name, about.backend))
            .collect();
        return Err(match choice {
            DeviceChoice::Named(by) => GpuError::Unknown {
                name: by.clone(),
                known: names.join(", "),
            },
            _ => GpuError::OnlySoftware,
        });
    };
    match &best.unfit {
        Some(why) => Err(GpuError::Unfit {
            name: best.name.clone(),
            why: why.clone(),
        }),
        None => Ok(best),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(index: usize, name: &str, kind: AdapterKind, unfit: Option<&str>) -> About {
        About {
            index,
            name: name.to_owned(),
            backend: "vulkan".to_owned(),
            kind,
            driver: String::new(),
            vendor: 0,
            bus: String::new(),
            max_buffer: 1 << 30,
            max_binding: 1 << 27,
            max_threads: 1024,
            max_shared: 1 << 14,
            subgroups: None,
            timestamps: false,
            unfit: unfit.map(str::to_owned),
        }
    }

    #[test]
    fn the_gpu_that_a_scheduler_gave_is_taken() {
        let nvidia = |index, bus: &str| About {
            vendor: 0x10de,
            bus: bus.to_owned(),
            ..about(
                index,
                &format!("V100 at {bus}"),
                AdapterKind::Discrete,
                None,
            )
        };
        let all = [
            nvidia(0, "0000:1e"),
            nvidia(1, "0000:1b"),
            about(2, "Iris", AdapterKind::Integrated, None),
        ];
        let said = |of: &'static str| Given::by(move |name| (name == of).then(|| "1,2".to_owned()));
        let given = said("CUDA_VISIBLE_DEVICES");
        let name = |adapters, choice| pick_among(adapters, choice, given).map(|it| it.index);
        assert_eq!(name(&all, &DeviceChoice::Gpu), Ok(0));
        assert_eq!(name(&all[1..], &DeviceChoice::Auto), Ok(1));
        // The option overrides the scheduler.
        assert_eq!(name(&all, &DeviceChoice::Named("iris".to_owned())), Ok(2));
        assert_eq!(
            said("ROCR_VISIBLE_DEVICES").map(|it| it.vendor),
            Some(0x1002)
        );
        assert_eq!(Given::by(|_| Some("GPU-8f6a".to_owned())), None);
    }

    #[test]
    fn auto_never_takes_software_and_prefers_a_discrete_gpu() {
        let software = about(0, "llvmpipe", AdapterKind::Software, None);
        let integrated = about(1, "Iris", AdapterKind::Integrated, None);
        let discrete = about(2, "GeForce", AdapterKind::Discrete, None);
        let unfit = about(3, "Old", AdapterKind::Discrete, Some("no compute"));
        assert!(pick(&[], &DeviceChoice::Auto).is_err());
        assert!(pick(std::slice::from_ref(&software), &DeviceChoice::Auto).is_err());
        let all = [software, integrated, discrete, unfit];
        let name = |choice: &DeviceChoice| pick(&all, choice).map(|it| it.name.clone());
        assert_eq!(name(&DeviceChoice::Auto).as_deref(), Ok("GeForce"));
        assert_eq!(name(&DeviceChoice::Gpu).as_deref(), Ok("GeForce"));
        assert_eq!(pick(&all[..1], &DeviceChoice::Gpu), Ok(&all[0]));
        assert_eq!(
            name(&DeviceChoice::Named("iris".to_owned())).as_deref(),
            Ok("Iris")
        );
        assert_eq!(
            name(&DeviceChoice::Named("0".to_owned())).as_deref(),
            Ok("llvmpipe")
        );
        assert!(name(&DeviceChoice::Named("Old".to_owned())).is_err());
        assert!(name(&DeviceChoice::Named("7".to_owned())).is_err());
    }
}
