//! Z3's library, loaded when a back end of Z3 is first used: loading it with the program takes a millisecond of every command's start.
//!
//! The functions that the crate `z3` calls are defined here. Each jumps to the library's own through a table, which [`load`] fills.
//! Invariant: nothing of Z3 is called before [`load`] said that it is there. `scripts/z3` gives the linker an empty library, so a
//! function that is missing from the list is an error of the linker, which names it. Where the linker is given a Z3, the program
//! may be linked to it as well, and is then loaded with it.
//!
//! This is a crate of its own because a program must hold each function once.

// Functions of a foreign library are called through pointers that this file finds.
#![allow(unsafe_code)]
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use std::arch::naked_asm;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// What the library is called, first where this program was built.
const NAMES: [&str; 3] = ["libz3.so", "libz3.so.4", "libz3.so.5.3"];

macro_rules! functions {
    ($($name:ident)*) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum Function { $($name),* }

        const FUNCTIONS: &[&str] = &[$(stringify!($name)),*];

        static TABLE: [AtomicPtr<c_void>; FUNCTIONS.len()] =
            [const { AtomicPtr::new(ptr::null_mut()) }; FUNCTIONS.len()];

        $(
            /// Z3's function of this name, whatever its arguments are.
            #[allow(non_snake_case)]
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C" fn $name() {
                #[cfg(target_arch = "x86_64")]
                naked_asm!(
                    "jmp qword ptr [rip + {table} + {offset}]",
                    table = sym TABLE,
                    offset = const 8 * Function::$name as usize,
                );
                #[cfg(target_arch = "aarch64")]
                naked_asm!(
                    "adrp x16, {table}",
                    "add x16, x16, :lo12:{table}",
                    "ldr x16, [x16, #{offset}]",
                    "br x16",
                    table = sym TABLE,
                    offset = const 8 * Function::$name as usize,
                );
            }
        )*
    };
}

functions! {
    Z3_ast_to_string Z3_ast_vector_dec_ref Z3_ast_vector_get Z3_ast_vector_inc_ref Z3_ast_vector_size Z3_dec_ref
    Z3_del_config Z3_del_context Z3_func_decl_to_ast Z3_get_app_arg Z3_get_app_decl Z3_get_app_num_args Z3_get_ast_id
    Z3_get_ast_kind Z3_get_bool_value Z3_get_error_code Z3_get_error_msg Z3_get_sort Z3_get_sort_kind Z3_get_version
    Z3_inc_ref Z3_interrupt Z3_mk_and Z3_mk_app Z3_mk_bool_sort Z3_mk_config Z3_mk_const Z3_mk_context_rc Z3_mk_false
    Z3_mk_fresh_const Z3_mk_implies Z3_mk_int_sort Z3_mk_int_symbol Z3_mk_lt Z3_mk_not Z3_mk_or Z3_mk_params
    Z3_mk_partial_order Z3_mk_simple_solver Z3_mk_solver_for_logic Z3_mk_string_symbol Z3_mk_true Z3_mk_uninterpreted_sort
    Z3_model_dec_ref Z3_model_eval Z3_model_inc_ref Z3_params_dec_ref Z3_params_inc_ref Z3_params_set_uint
    Z3_set_error_handler Z3_solver_assert Z3_solver_check Z3_solver_check_assumptions Z3_solver_dec_ref Z3_solver_get_assertions
    Z3_solver_get_model Z3_solver_get_reason_unknown Z3_solver_get_statistics Z3_solver_get_unsat_core Z3_solver_inc_ref
    Z3_solver_propagate_consequence Z3_solver_propagate_final Z3_solver_propagate_fixed Z3_solver_propagate_init
    Z3_solver_propagate_register Z3_solver_set_params Z3_sort_to_ast Z3_stats_dec_ref Z3_stats_get_double_value
    Z3_stats_get_key Z3_stats_get_uint_value Z3_stats_inc_ref Z3_stats_is_uint Z3_stats_size Z3_to_app
}

/// Loads the library, once; the error says why it cannot be.
///
/// # Errors
///
/// Where there is no library, or one without a function that is needed.
pub fn load() -> Result<(), String> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    LOADED.get_or_init(find).clone()
}

fn find() -> Result<(), String> {
    let mut first = None;
    // Sound because Z3's library does nothing when it is loaded but set up its own data.
    let open = |name: &&str| unsafe { Library::open(Some(*name), RTLD_NOW | RTLD_LOCAL) };
    let library = NAMES.iter().find_map(|name| {
        open(name)
            .map_err(|error| {
                first.get_or_insert(error);
            })
            .ok()
    });
    let Some(library) = library else {
        let why = first.map_or(String::new(), |it| it.to_string());
        return Err(format!("Z3's library cannot be loaded: {why}"));
    };
    for (place, name) in TABLE.iter().zip(FUNCTIONS) {
        // Sound because the address is only kept; what is called with it has the type that the crate z3-sys declares.
        let found = unsafe { library.get::<*mut c_void>(name.as_bytes()) };
        let found = found.map_err(|why| format!("Z3's library has no {name}: {why}"))?;
        place.store(found.as_raw_ptr(), Ordering::Release);
    }
    // It stays as long as the process does.
    std::mem::forget(library);
    Ok(())
}
