//! Z3's C interface: the functions that the back ends call, found in Z3's shared library when one of them is first used.
//!
//! Nothing is linked, so the program builds and starts without Z3, and a Z3 of the system, of a package or of
//! `scripts/z3` works equally. The signatures are those of `z3_api.h`, unchanged since [`OLDEST`].

// A function of a foreign library has the signature that its documentation says; nothing can check it.
#![allow(unsafe_code)]

use std::env;
use std::ffi::{c_char, c_double, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::OnceLock;

use libloading::Library;

/// The oldest Z3 with these signatures.
const OLDEST: [c_uint; 3] = [4, 13, 3];

/// Names the library, or its directory, and overrides all other places.
const VARIABLE: &str = "KINGSNAKE_Z3";

/// The names of the library. Debian's has the second name without its development files.
const NAMES: &[&str] = if cfg!(target_os = "macos") {
    &["libz3.dylib"]
} else if cfg!(windows) {
    &["libz3.dll"]
} else {
    &["libz3.so", "libz3.so.4"]
};

/// `Z3_L_TRUE` and `Z3_L_FALSE`.
pub(super) const TRUE: c_int = 1;
pub(super) const FALSE: c_int = -1;

macro_rules! handles {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub(super) struct $name {
            _private: [u8; 0],
        }
    )* };
}

handles! { Config RawContext RawSymbol RawSort RawDecl RawAst RawSolver RawModel RawVector RawParams RawStats RawCallback }

type Context = *mut RawContext;
type Ast = *mut RawAst;
type Sort = *mut RawSort;
type Symbol = *mut RawSymbol;
type Solver = *mut RawSolver;

/// What Z3 calls back.
pub(super) type OnPush = unsafe extern "C" fn(*mut c_void, *mut RawCallback);
pub(super) type OnPop = unsafe extern "C" fn(*mut c_void, *mut RawCallback, c_uint);
pub(super) type OnFresh = unsafe extern "C" fn(*mut c_void, Context) -> *mut c_void;
pub(super) type OnFixed = unsafe extern "C" fn(*mut c_void, *mut RawCallback, Ast, Ast);
pub(super) type OnFinal = unsafe extern "C" fn(*mut c_void, *mut RawCallback);
type OnError = unsafe extern "C" fn(Context, c_int);

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, by their names without `Z3_`.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Functions, String> {
                // SAFETY: the signatures are those of Z3's documentation. The library is never closed, so they stay valid.
                Ok(Functions { $($name: unsafe { find(library, $symbol)? },)* })
            }
        }
    };
}

functions! {
    get_version = "Z3_get_version" (*mut c_uint, *mut c_uint, *mut c_uint, *mut c_uint);
    mk_config = "Z3_mk_config" () -> *mut Config;
    del_config = "Z3_del_config" (*mut Config);
    mk_context = "Z3_mk_context" (*mut Config) -> Context;
    del_context = "Z3_del_context" (Context);
    set_error_handler = "Z3_set_error_handler" (Context, Option<OnError>);
    get_error_code = "Z3_get_error_code" (Context) -> c_int;
    get_error_msg = "Z3_get_error_msg" (Context, c_int) -> *const c_char;
    interrupt = "Z3_interrupt" (Context);
    mk_int_symbol = "Z3_mk_int_symbol" (Context, c_int) -> Symbol;
    mk_string_symbol = "Z3_mk_string_symbol" (Context, *const c_char) -> Symbol;
    mk_bool_sort = "Z3_mk_bool_sort" (Context) -> Sort;
    mk_int_sort = "Z3_mk_int_sort" (Context) -> Sort;
    mk_uninterpreted_sort = "Z3_mk_uninterpreted_sort" (Context, Symbol) -> Sort;
    mk_const = "Z3_mk_const" (Context, Symbol, Sort) -> Ast;
    mk_fresh_const = "Z3_mk_fresh_const" (Context, *const c_char, Sort) -> Ast;
    mk_partial_order = "Z3_mk_partial_order" (Context, Sort, c_uint) -> *mut RawDecl;
    mk_app = "Z3_mk_app" (Context, *mut RawDecl, c_uint, *const Ast) -> Ast;
    mk_true = "Z3_mk_true" (Context) -> Ast;
    mk_false = "Z3_mk_false" (Context) -> Ast;
    mk_not = "Z3_mk_not" (Context, Ast) -> Ast;
    mk_and = "Z3_mk_and" (Context, c_uint, *const Ast) -> Ast;
    mk_or = "Z3_mk_or" (Context, c_uint, *const Ast) -> Ast;
    mk_implies = "Z3_mk_implies" (Context, Ast, Ast) -> Ast;
    mk_lt = "Z3_mk_lt" (Context, Ast, Ast) -> Ast;
    mk_params = "Z3_mk_params" (Context) -> *mut RawParams;
    params_inc_ref = "Z3_params_inc_ref" (Context, *mut RawParams);
    params_dec_ref = "Z3_params_dec_ref" (Context, *mut RawParams);
    params_set_uint = "Z3_params_set_uint" (Context, *mut RawParams, Symbol, c_uint);
    mk_simple_solver = "Z3_mk_simple_solver" (Context) -> Solver;
    mk_solver_for_logic = "Z3_mk_solver_for_logic" (Context, Symbol) -> Solver;
    solver_inc_ref = "Z3_solver_inc_ref" (Context, Solver);
    solver_dec_ref = "Z3_solver_dec_ref" (Context, Solver);
    solver_set_params = "Z3_solver_set_params" (Context, Solver, *mut RawParams);
    solver_assert = "Z3_solver_assert" (Context, Solver, Ast);
    solver_get_assertions = "Z3_solver_get_assertions" (Context, Solver) -> *mut RawVector;
    solver_check_assumptions = "Z3_solver_check_assumptions" (Context, Solver, c_uint, *const Ast) -> c_int;
    solver_get_reason_unknown = "Z3_solver_get_reason_unknown" (Context, Solver) -> *const c_char;
    solver_get_model = "Z3_solver_get_model" (Context, Solver) -> *mut RawModel;
    solver_get_unsat_core = "Z3_solver_get_unsat_core" (Context, Solver) -> *mut RawVector;
    solver_get_statistics = "Z3_solver_get_statistics" (Context, Solver) -> *mut RawStats;
    solver_propagate_init = "Z3_solver_propagate_init" (Context, Solver, *mut c_void, OnPush, OnPop, OnFresh);
    solver_propagate_fixed = "Z3_solver_propagate_fixed" (Context, Solver, OnFixed);
    solver_propagate_final = "Z3_solver_propagate_final" (Context, Solver, OnFinal);
    solver_propagate_register = "Z3_solver_propagate_register" (Context, Solver, Ast);
    solver_propagate_consequence = "Z3_solver_propagate_consequence"
        (Context, *mut RawCallback, c_uint, *const Ast, c_uint, *const Ast, *const Ast, Ast) -> bool;
    model_inc_ref = "Z3_model_inc_ref" (Context, *mut RawModel);
    model_dec_ref = "Z3_model_dec_ref" (Context, *mut RawModel);
    model_eval = "Z3_model_eval" (Context, *mut RawModel, Ast, bool, *mut Ast) -> bool;
    get_bool_value = "Z3_get_bool_value" (Context, Ast) -> c_int;
    ast_vector_inc_ref = "Z3_ast_vector_inc_ref" (Context, *mut RawVector);
    ast_vector_dec_ref = "Z3_ast_vector_dec_ref" (Context, *mut RawVector);
    ast_vector_size = "Z3_ast_vector_size" (Context, *mut RawVector) -> c_uint;
    ast_vector_get = "Z3_ast_vector_get" (Context, *mut RawVector, c_uint) -> Ast;
    stats_inc_ref = "Z3_stats_inc_ref" (Context, *mut RawStats);
    stats_dec_ref = "Z3_stats_dec_ref" (Context, *mut RawStats);
    stats_size = "Z3_stats_size" (Context, *mut RawStats) -> c_uint;
    stats_get_key = "Z3_stats_get_key" (Context, *mut RawStats, c_uint) -> *const c_char;
    stats_is_uint = "Z3_stats_is_uint" (Context, *mut RawStats, c_uint) -> bool;
    stats_get_uint_value = "Z3_stats_get_uint_value" (Context, *mut RawStats, c_uint) -> c_uint;
    stats_get_double_value = "Z3_stats_get_double_value" (Context, *mut RawStats, c_uint) -> c_double;
}

/// The library's functions; it is loaded at the first call. The error lists where it was searched.
pub(super) fn functions() -> Result<&'static Functions, String> {
    static LOADED: OnceLock<Result<Functions, String>> = OnceLock::new();
    LOADED.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Functions, String> {
    let program = env::current_exe().ok();
    let named = env::var_os(VARIABLE).map(PathBuf::from);
    let mut last = String::new();
    for place in places(named.as_deref(), program.as_deref()) {
        // SAFETY: loading Z3's library only sets up its own data.
        match unsafe { Library::new(&place) } {
            Ok(library) => {
                let functions = Functions::of(&library)?;
                expect_new_enough(&functions)?;
                // It stays as long as the process does.
                std::mem::forget(library);
                return Ok(functions);
            }
            Err(why) => last = why.to_string(),
        }
    }
    Err(format!(
        "Z3's library cannot be loaded ({last}). Install Z3 {} or later, or set {VARIABLE} to the directory of its {}",
        OLDEST.map(|it| it.to_string()).join("."),
        NAMES[0]
    ))
}

/// Where the library may be: as the variable says, beside the program as `make dist` puts it, where `scripts/z3` put it if the
/// program lies in a tree's `target`, and where the system looks.
fn places(named: Option<&Path>, program: Option<&Path>) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    let mut directories: Vec<PathBuf> = Vec::new();
    if let Some(named) = named {
        if named.is_dir() {
            directories.push(named.to_path_buf());
        } else {
            places.push(named.to_path_buf());
        }
    }
    if let Some(beside) = program.and_then(Path::parent) {
        directories.push(beside.join("../lib/kingsnake"));
        let target = beside.ancestors().find(|it| it.ends_with("target"));
        directories.extend(target.map(|it| it.with_file_name(".z3").join("lib")));
    }
    for directory in directories {
        places.extend(NAMES.iter().map(|name| directory.join(name)));
    }
    places.retain(|it| it.exists());
    places.extend(NAMES.iter().map(PathBuf::from));
    places
}

/// # Safety
///
/// The function of this name has this type.
unsafe fn find<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: as promised by the caller.
    let found = unsafe { library.get::<T>(name.as_bytes()) };
    found
        .map(|it| *it)
        .map_err(|why| format!("Z3's library has no {name}: {why}"))
}

fn expect_new_enough(functions: &Functions) -> Result<(), String> {
    let [mut major, mut minor, mut build, mut revision] = [0; 4];
    // SAFETY: Z3 writes four numbers to where these are.
    unsafe {
        (functions.get_version)(
            &raw mut major,
            &raw mut minor,
            &raw mut build,
            &raw mut revision,
        );
    }
    if [major, minor, build] >= OLDEST {
        return Ok(());
    }
    let [a, b, c] = OLDEST;
    Err(format!(
        "this is Z3 {major}.{minor}.{build}, and at least {a}.{b}.{c} is needed; {VARIABLE} may name another"
    ))
}

/// A reference to something of Z3's, or the error that it returned nothing.
pub(super) fn some<T>(pointer: *mut T, what: &str) -> Result<NonNull<T>, String> {
    NonNull::new(pointer).ok_or_else(|| format!("Z3 has no {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_named_goes_first_and_the_systems_last() {
        let directory = std::env::temp_dir().join(format!("kingsnake-z3-{}", std::process::id()));
        let named = directory.join("named");
        let target = directory.join("tree/target/debug");
        let fetched = directory.join("tree/.z3/lib");
        for it in [&named, &target, &fetched] {
            std::fs::create_dir_all(it).expect("a directory");
        }
        for it in [&named, &fetched] {
            std::fs::write(it.join(NAMES[0]), "").expect("a file");
        }
        let program = target.join("kingsnake");
        let expected = vec![
            named.join(NAMES[0]),
            fetched.join(NAMES[0]),
            PathBuf::from(NAMES[0]),
        ];
        let found = places(Some(&named), Some(&program));
        assert_eq!(found[..3], expected);
        assert_eq!(places(None, Some(&program))[..2], expected[1..]);
        assert_eq!(places(None, None).len(), NAMES.len());
        std::fs::remove_dir_all(&directory).expect("it was made here");
    }
}
