//! WGSL and Rust agree on every structure and binding, without any GPU.

use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{AddressSpace, Module, StorageAccess, TypeInner};

use crate::kernel::{Access, Kernel};
use crate::layout::{
    self, AnnealParams, ClosureParams, EstimateParams, Layout, ProbeParams, PruneParams, Reads,
    Run, Shape, Strip,
};

fn parse(source: &str) -> Module {
    naga::front::wgsl::parse_str(source)
        .unwrap_or_else(|error| panic!("{}", error.emit_to_string(source)))
}

/// What is different between a structure of a shader and one of the host.
fn differences<L: Layout>(module: &Module, name: &str) -> Vec<String> {
    let found = module
        .types
        .iter()
        .find(|(_, it)| it.name.as_deref() == Some(name));
    let Some((_, found)) = found else {
        return vec![format!("there is no {name}")];
    };
    let TypeInner::Struct { members, span } = &found.inner else {
        return vec![format!("{name} is no structure")];
    };
    let mut wrong = Vec::new();
    if *span as usize != L::SIZE {
        wrong.push(format!("{name} has {span} bytes, not {}", L::SIZE));
    }
    let fields = members.iter().map(|member| {
        let name = member.name.as_deref().unwrap_or_default();
        (name, member.offset as usize)
    });
    let fields: Vec<(&str, usize)> = fields.collect();
    if fields != L::FIELDS {
        wrong.push(format!("{name} has {fields:?}, not {:?}", L::FIELDS));
    }
    wrong
}

fn all_differences(kernel: Kernel, module: &Module) -> Vec<String> {
    if kernel.about().file == "anneal" {
        let mut wrong = differences::<AnnealParams>(module, "Params");
        wrong.extend(differences::<Reads>(module, "Reads"));
        return wrong;
    }
    let mut wrong = differences::<Shape>(module, "Shape");
    match kernel.about().file {
        "closure" => wrong.extend(differences::<ClosureParams>(module, "Params")),
        "prune" => {
            wrong.extend(differences::<PruneParams>(module, "Params"));
            wrong.extend(differences::<Run>(module, "Run"));
        }
        "probe" => wrong.extend(differences::<ProbeParams>(module, "Params")),
        _ => wrong.extend(differences::<EstimateParams>(module, "Params")),
    }
    wrong.extend(differences::<Strip>(module, "Strip"));
    wrong
}

#[test]
fn shaders_and_host_agree_on_every_structure() {
    for kernel in Kernel::ALL {
        let wrong = all_differences(kernel, &parse(&kernel.source(false)));
        assert!(wrong.is_empty(), "{kernel:?}: {wrong:?}");
    }
}

#[test]
fn a_swapped_field_is_noticed() {
    for (kernel, swap) in [
        (
            Kernel::Emit,
            ["    head_commit: u32,\n", "    last_commit: u32,\n"],
        ),
        (
            Kernel::Sweep,
            ["    n_rows: u32,\n", "    strip_shift: u32,\n"],
        ),
        (Kernel::Anneal, ["    below: u32,\n", "    above: u32,\n"]),
    ] {
        let source = kernel.source(false);
        let in_order = swap.concat();
        assert!(source.contains(&in_order), "{kernel:?}");
        let swapped = source.replace(&in_order, &[swap[1], swap[0]].concat());
        assert_ne!(
            all_differences(kernel, &parse(&swapped)),
            Vec::<String>::new()
        );
    }
}

#[test]
fn a_longer_structure_is_noticed() {
    let source = Kernel::Judge.source(false);
    let longer = source.replace(
        "    is_unread: u32,\n",
        "    is_unread: u32,\n    more: u32,\n",
    );
    assert_ne!(source, longer);
    assert_ne!(
        all_differences(Kernel::Judge, &parse(&longer)),
        Vec::<String>::new()
    );
}

/// The value of a shader's constant.
fn constant(module: &Module, name: &str) -> Option<u32> {
    let found = module
        .constants
        .iter()
        .find(|it| it.1.name.as_deref() == Some(name))?;
    match module.global_expressions[found.1.init] {
        naga::Expression::Literal(naga::Literal::U32(value)) => Some(value),
        _ => None,
    }
}

#[test]
fn shaders_and_host_agree_on_every_constant() {
    let prune = parse(&Kernel::Emit.source(false));
    let anneal = parse(&Kernel::Anneal.source(false));
    for (module, name, value) in [
        (&prune, "THREADS", layout::THREADS),
        (&prune, "NONE", layout::NONE),
        (&prune, "LISTED", layout::LISTED),
        (&prune, "LAST_BAND", layout::LAST_BAND),
        (&prune, "IMPLIED", layout::IMPLIED),
        (&prune, "UPPER", layout::UPPER),
        (&prune, "GROUP", layout::GROUP),
        (&prune, "FIRST_BEFORE", layout::FIRST_BEFORE),
        (&prune, "EDGES", layout::EDGES as u32),
        (&prune, "OPEN", layout::OPEN as u32),
        (&prune, "VIOLATIONS", layout::VIOLATIONS as u32),
        (&prune, "VIOLATED", layout::VIOLATED as u32),
        (&prune, "MOST_VIOLATED", layout::MOST_VIOLATED as u32),
        (&anneal, "GROUP", layout::GROUP),
        (&anneal, "MOST", layout::MOST),
        (
            &anneal,
            "N_WEIGHTS",
            kingsnake_graph::cool::N_WEIGHTS as u32,
        ),
    ] {
        assert_eq!(constant(module, name), Some(value), "{name}");
    }
}

#[test]
fn every_shader_is_valid_and_uses_the_bindings_of_its_table() {
    for kernel in Kernel::ALL {
        for subgroups in [false, true] {
            let source = kernel.source(subgroups);
            let module = parse(&source);
            let capabilities = if subgroups {
                Capabilities::SUBGROUP
            } else {
                Capabilities::empty()
            };
            let mut validator = Validator::new(ValidationFlags::all(), capabilities);
            validator
                .subgroup_stages(naga::valid::ShaderStages::COMPUTE)
                .subgroup_operations(naga::valid::SubgroupOperationSet::all());
            let info = validator
                .validate(&module)
                .unwrap_or_else(|error| panic!("{kernel:?}: {error:?}"));
            let about = kernel.about();
            let at = module
                .entry_points
                .iter()
                .position(|it| it.name == about.entry)
                .unwrap_or_else(|| panic!("there is no {}", about.entry));
            let used = module.global_variables.iter().filter_map(|(handle, it)| {
                let is_used = !info.get_entry_point(at)[handle].is_empty();
                let binding = it.binding?;
                match it.space {
                    AddressSpace::Storage { access } if is_used => {
                        let written = access.contains(StorageAccess::STORE);
                        let access = if written {
                            Access::ReadWrite
                        } else {
                            Access::Read
                        };
                        Some((binding.binding, access))
                    }
                    _ => None,
                }
            });
            let mut used: Vec<(u32, Access)> = used.collect();
            used.sort_by_key(|it| it.0);
            assert_eq!(used, about.bindings, "{kernel:?}");
        }
    }
}
