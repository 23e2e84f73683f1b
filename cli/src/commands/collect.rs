//! `kingsnake collect`: runs a workload on a real database, records what its clients saw, and checks it.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use indicatif::{ProgressBar, ProgressDrawTarget};
use kingsnake_collect::server::{Private, Proxy, Wanted};
use kingsnake_collect::{
    Adapter, Beside, Broken, CollectRequest, CollectRun, Collected, Database, Events, Load,
    Mistake, Nodes, OrderBy, PromisedLevel, ReadsAt, SCRIPTS, Schedule, Script, ServerFault,
    SqlFile, Tally, Target, adapter, merge, resolve, self_test,
};
use kingsnake_datasets::workloads::WorkloadKind;

use crate::args::{CollectArgs, Typed};
use crate::collecting::steps;
use crate::voice::{Voice, count, grouped, lasting, printable, printable_lines, say};
use crate::watch::within::{CollectWatch, needs_fences};
use crate::{collecting, interrupt, output, processor};

/// Further findings are only counted.
const MOST_FINDINGS: usize = 5;
/// File with the address of a server that stays up, within the collection's directory.
const ADDRESS: &str = "server.url";

/// Collects, merges or tests the adapter, as typed.
pub fn run(args: &CollectArgs, voice: Voice) -> Result<u8> {
    if let Some(directory) = &args.merge {
        return merge_again(directory, voice);
    }
    if args.list_scripts {
        return list_scripts();
    }
    let name = args.database.as_deref().unwrap_or_default();
    let adapter = adapter(name)?;
    if !adapter.is_compiled_in() {
        bail!(
            "{name} was not compiled in; build it with:\n  {}",
            adapter.how_to_build()
        );
    }
    let level = match &args.isolation {
        Some(name) => adapter.level(name)?,
        None => &adapter.levels[0],
    };
    if args.self_test {
        return test_adapter(args, adapter, level, voice);
    }
    let Some(directory) = &args.out else {
        bail!("--out DIR says where journals and the history go");
    };
    let load = load(args)?;
    let check = check_level(args, level)?;
    let stop = interrupt::listen().context("cannot listen to signals")?;
    let watch = watch(args, &load, directory, voice, &stop)?;
    let mut target = target(args, adapter, level, &load, directory)?;
    let server = start(args, adapter)?;
    if let Some(server) = &server {
        target.urls.clone_from(&server.urls);
    }
    let proxies = proxies(args, adapter, &mut target.urls)?;
    let database = adapter.connect(&target)?;
    announce(&*database, voice)?;
    let mut request = request(args, adapter, level, target.version_order, directory);
    request.leaves_tables = watch.as_ref().map(CollectWatch::found);
    if let Some(script) = load.script() {
        request.workload = args.script.as_deref().unwrap_or_default();
        request.run.sessions = script.sessions.len();
    }
    let schedule = Schedule {
        faults: args.fault.clone(),
        every: args.every,
        seed: args.seed,
        server: server.as_ref(),
        proxies: &proxies,
    };
    let beside = |events: &Events, done: &AtomicBool| {
        std::thread::scope(|scope| {
            if !args.fault.is_empty() {
                scope.spawn(|| schedule.run(events, done));
            }
            if let Some(watch) = &watch {
                watch.run(&*database, done);
            }
        });
    };
    let beside: Option<Beside<'_>> = if args.fault.is_empty() && watch.is_none() {
        None
    } else {
        Some(&beside)
    };
    let line = StatusLine::new(voice.quiet);
    let halt = watch.as_ref().map_or(&*stop, CollectWatch::halt);
    let collected = request.collect(&*database, &load, halt, beside, &mut |tally| {
        line.draw(tally, watch.as_ref());
    })?;
    line.clear();
    let mut status = report(&collected, voice)?;
    let watched = watch.as_ref().map(CollectWatch::status).transpose()?;
    if watched == Some(1) {
        collecting::write(directory, &collected, None)
            .with_context(|| format!("cannot write to {}", directory.display()))?;
        stay(args, server.as_ref(), directory, &stop)?;
    }
    drop((database, proxies, server));
    status = match watched {
        Some(watched) if status != 1 => watched,
        _ => status,
    };
    let mut checked = None;
    if let Some(level) = check {
        let (found, time) = check_history(&collected, directory, level, voice)?;
        status = if status == 1 { 1 } else { status.max(found) };
        checked = Some((level, found, time));
    }
    collecting::write(directory, &collected, checked)
        .with_context(|| format!("cannot write to {}", directory.display()))?;
    if let Some(why) = &collected.ended_early {
        bail!(
            "the collection ended early: {why}\nWhat was recorded by then is in {}",
            collected.history.display()
        );
    }
    Ok(status)
}

/// The watch, if requested. At levels without real time the workload gets a key for fences.
fn watch<'a>(
    args: &CollectArgs,
    load: &Load,
    directory: &'a Path,
    voice: Voice,
    stop: &'a AtomicBool,
) -> Result<Option<CollectWatch<'a>>> {
    let Some(level) = args.watch else {
        return Ok(None);
    };
    if !matches!(load.kind(), WorkloadKind::Registers | WorkloadKind::Lists) {
        bail!(
            "the workload {} has ranges or conditions, which are not watched; use --check",
            args.workload
        );
    }
    let fence = load.fence_key();
    let limit = args.unknown_limit;
    CollectWatch::new(level, fence, limit, directory, voice, stop).map(Some)
}

/// Keeps the database as it was at the violation, as long as the user wants.
fn stay(
    args: &CollectArgs,
    server: Option<&Private>,
    directory: &Path,
    stop: &AtomicBool,
) -> Result<()> {
    let Some(server) = server else {
        return say("The clients were stopped. Our tables are left as they are: drop them before the next collection.\n")
            .context("cannot write to stdout");
    };
    let address = directory.join(ADDRESS);
    let written = write_private(&address, &server.urls.join(","));
    written.with_context(|| format!("cannot write {}", address.display()))?;
    let places: Vec<&str> = server
        .urls
        .iter()
        .filter_map(|it| host_and_port(it))
        .collect();
    let how_long = match args.stay {
        Some(time) => format!("for {}", lasting(time)),
        None => "until Ctrl-C".to_owned(),
    };
    say(&format!(
        "The clients were stopped. The server stays up {how_long}, with our tables: {} (address and password: {})\n",
        places.join(", "),
        address.display()
    ))
    .context("cannot write to stdout")?;
    let since = Instant::now();
    while !stop.load(Ordering::Relaxed) && args.stay.is_none_or(|it| since.elapsed() < it) {
        std::thread::sleep(Duration::from_millis(50));
    }
    // The address is invalid from here on.
    let _ = std::fs::remove_file(&address);
    Ok(())
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    writeln!(options.open(path)?, "{text}")
}

/// The private server, if one is to be started.
fn start(args: &CollectArgs, adapter: &Adapter) -> Result<Option<Private>> {
    let needs_process = args.fault.iter().find(|fault| fault.needs_process());
    if let (Some(fault), false) = (needs_process, args.start) {
        bail!(
            "--fault {} is done to processes and their files, and only to those that --start made; cut, delay and half-close work with --url",
            fault.name()
        );
    }
    if !args.start {
        return Ok(None);
    }
    if adapter.is_embedded {
        bail!(
            "{} has no server to start: it runs within this process",
            adapter.name
        );
    }
    if args.nodes > 1 && adapter.nodes == Nodes::One {
        bail!("{} is started with one node", adapter.name);
    }
    let order = args.version_order.unwrap_or(adapter.version_orders[0]);
    if args.fault.contains(&ServerFault::Failover) && order == OrderBy::Log {
        bail!(
            "--fault failover ends the primary for good, and its log with it; choose --version-order trigger, rank or none"
        );
    }
    // A server runs in another directory than this program, so its path must be absolute.
    let binary = args.binary.as_deref().map(std::path::absolute).transpose();
    let binary = binary.context("--binary")?;
    let wanted = Wanted {
        database: adapter.name,
        nodes: usize::from(args.nodes),
        sessions: usize::from(args.sessions),
        binary: binary.as_deref(),
        has_roles: args.reads.is_some() || adapter.nodes == Nodes::Roles,
        faults: &args.fault,
    };
    Ok(Some(Private::start(&wanted)?))
}

/// One proxy in front of each node if connections are to be disturbed; the addresses are then those of the proxies.
fn proxies(args: &CollectArgs, adapter: &Adapter, urls: &mut [String]) -> Result<Vec<Proxy>> {
    if !args.fault.iter().any(|fault| fault.needs_proxy()) {
        return Ok(Vec::new());
    }
    if adapter.is_embedded {
        bail!(
            "{} has no connections to cut: it runs within this process",
            adapter.name
        );
    }
    let mut proxies = Vec::new();
    for url in urls {
        let place = host_and_port(url)
            .with_context(|| format!("no host:port in the address of {}", adapter.name))?
            .to_owned();
        let proxy = Proxy::start(&*place).with_context(|| format!("cannot reach {place}"))?;
        *url = url.replace(&place, &format!("127.0.0.1:{}", proxy.port()));
        proxies.push(proxy);
    }
    Ok(proxies)
}

fn host_and_port(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    let place = rest.split(['/', '?']).next()?;
    let place = place.rsplit('@').next()?;
    place.contains(':').then_some(place)
}

/// The scripts that come with the program.
fn list_scripts() -> Result<u8> {
    let mut text = String::new();
    for script in SCRIPTS {
        let _ = writeln!(
            text,
            "{:<10} {} [forbidden by {}]",
            script.name,
            script.about(),
            script.breaks()
        );
    }
    say(&text).context("cannot write to stdout")?;
    Ok(0)
}

fn load(args: &CollectArgs) -> Result<Load> {
    if let Some(name) = &args.script {
        return Ok(Load::of_script(Script::open(name)?));
    }
    if let Some(path) = &args.sql {
        return Ok(Load::of_sql(SqlFile::open(path)?));
    }
    let number = |it: Option<u32>| it.map(|it| it as usize);
    let load = Load::new(&args.workload, number(args.keys), number(args.ops))?;
    let is_fenced = args.watch.is_some_and(needs_fences);
    Ok(if is_fenced { load.with_fence() } else { load })
}

fn target(
    args: &CollectArgs,
    adapter: &Adapter,
    level: &PromisedLevel,
    load: &Load,
    directory: &Path,
) -> Result<Target> {
    let urls: Result<Vec<String>, _> = args.url.iter().map(|it| resolve(it)).collect();
    Ok(Target {
        urls: urls?,
        isolation: level.name.to_owned(),
        version_order: args.version_order.unwrap_or(adapter.version_orders[0]),
        kind: load.kind(),
        directory: directory.to_owned(),
        settings: args.set.clone(),
        reads: args.reads,
    })
}

fn request<'a>(
    args: &'a CollectArgs,
    adapter: &Adapter,
    level: &'a PromisedLevel,
    version_order: OrderBy,
    directory: &'a Path,
) -> CollectRequest<'a> {
    CollectRequest {
        name: adapter.name,
        isolation: level.name,
        workload: args.sql.as_deref().unwrap_or(&args.workload),
        version_order,
        run: CollectRun {
            sessions: usize::from(args.sessions),
            txns: args.txns,
            limit: args.seconds,
            think: args.think,
            retries: args.retries,
            moment: args.moment,
            seed: args.seed,
            fence_every: args
                .watch
                .filter(|&it| needs_fences(it))
                .map(|_| args.fence_every),
            ..CollectRun::default()
        },
        directory,
        leaves_tables: None,
    }
}

/// The level to check at, if any.
fn check_level<'a>(args: &'a CollectArgs, level: &'a PromisedLevel) -> Result<Option<&'a str>> {
    let Some(typed) = args.check.as_deref() else {
        return Ok(None);
    };
    let check = match (typed, level.level) {
        ("promise", Some(level)) => level,
        ("promise", None) => bail!(
            "nothing is promised at {}; name a level to check, or auto",
            level.name
        ),
        _ => typed,
    };
    // Reject an unknown level before the collection starts.
    parse_check(&["h", "--level", check])?;
    Ok(Some(check))
}

/// Prints what is about to run, with the settings that affect it.
fn announce(database: &dyn Database, voice: Voice) -> Result<()> {
    if voice.quiet {
        return Ok(());
    }
    let settings = database.settings();
    if !settings.is_empty() {
        let words: Vec<String> = settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        say(&format!("Settings: {}\n", printable(&words.join(", "))))
            .context("cannot write to stdout")?;
    }
    Ok(())
}

/// One line on a terminal: committed, aborted by reason, per second.
struct StatusLine(ProgressBar);

impl StatusLine {
    fn new(quiet: bool) -> Self {
        let target = if quiet || !io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = indicatif::ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        StatusLine(bar)
    }

    fn draw(&self, tally: &Tally, watch: Option<&CollectWatch<'_>>) {
        let watched = watch.map_or_else(String::new, |it| format!("; {}", it.words()));
        self.0.set_message(tally_words(tally) + &watched);
        self.0.tick();
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}

fn tally_words(tally: &Tally) -> String {
    let mut words = format!("{} committed", grouped(tally.committed));
    let _ = write!(words, ", {} aborted", grouped(tally.n_aborted()));
    if !tally.aborted.is_empty() {
        let reasons: Vec<String> = tally
            .aborted
            .iter()
            .map(|(reason, n)| format!("{reason} {}", grouped(*n)))
            .collect();
        let _ = write!(words, " ({})", reasons.join(", "));
    }
    if tally.unknown > 0 {
        let _ = write!(words, ", {} with an unknown end", grouped(tally.unknown));
    }
    let rate = (tally.committed as f64 / tally.time.as_secs_f64().max(1e-9)).round();
    let _ = write!(words, ", {} committed per second", grouped(rate as u64));
    words
}

/// Prints what was collected; 1 if something is wrong at every level.
fn report(collected: &Collected, voice: Voice) -> Result<u8> {
    let merged = &collected.merged;
    let mut text = String::new();
    let _ = writeln!(text, "{}", collected.meta.about());
    let _ = writeln!(
        text,
        "{} in {}",
        tally_words(&collected.tally),
        lasting(collected.running)
    );
    if collected.tally.unknown > 0 {
        let _ = writeln!(
            text,
            "Unknown ends: {} committed and {} aborted according to the database, {} still unknown",
            merged.settled_committed, merged.settled_aborted, merged.unknown
        );
    }
    let _ = writeln!(
        text,
        "{}: {}, {}, the versions of {} in order; merged in {}",
        collected.history.display(),
        count(merged.n_txns, "transaction"),
        count(merged.n_ops, "operation"),
        count(merged.n_ordered, "key"),
        lasting(collected.merging)
    );
    let steps = &collected.steps;
    if steps::are_few(steps) {
        text.push_str(&steps::words(steps));
    }
    for finding in merged.findings.iter().take(MOST_FINDINGS) {
        let _ = writeln!(text, "Found: {finding}");
    }
    if merged.findings.len() > MOST_FINDINGS {
        let _ = writeln!(
            text,
            "Found: {} more",
            grouped((merged.findings.len() - MOST_FINDINGS) as u64)
        );
    }
    if !voice.quiet {
        say(&printable_lines(&text)).context("cannot write to stdout")?;
    }
    let unexpected: Vec<String> = steps::unexpected(steps).collect();
    for note in collected.notes.iter().chain(&unexpected) {
        voice.warn(note);
    }
    Ok(u8::from(!merged.findings.is_empty()))
}

/// Checks the history as `kingsnake check` does, and writes its page.
fn check_history(
    collected: &Collected,
    directory: &Path,
    level: &str,
    voice: Voice,
) -> Result<(u8, Duration)> {
    let history = collected.history.display().to_string();
    let page = directory.join(collecting::REPORT).display().to_string();
    let json = format!("--json={}", directory.join("check.json").display());
    let mut words = vec![history.as_str(), "--level", level];
    if level != "auto" {
        words.push(&json);
    }
    if collecting::has_report(level) {
        words.extend(["--report", &page]);
    }
    let start = Instant::now();
    let used = processor::seconds();
    let status = run_check(&words, voice, start)?;
    let checking = start.elapsed();
    if !voice.quiet {
        let used = processor::seconds().zip(used).map(|(now, then)| now - then);
        let used = used.map(|seconds| Duration::from_secs_f64(seconds.max(0.0)));
        let collecting = collected.running + collected.merging;
        let line = compared(collecting, checking, used);
        say(&line).context("cannot write to stdout")?;
    }
    Ok((status, checking))
}

/// Whether collecting or checking took longer. A check that waited for a processor is reported as such: the clients are
/// many threads and get a larger share of a busy machine than a check.
fn compared(collecting: Duration, checking: Duration, used: Option<Duration>) -> String {
    let note = match used {
        _ if checking <= collecting => String::new(),
        Some(used) if used <= collecting => format!(
            ": checking waited, because the machine is busy; it used {} of processor time",
            lasting(used)
        ),
        _ => ": checking took longer".to_owned(),
    };
    let (collecting, checking) = (lasting(collecting), lasting(checking));
    format!("Collected in {collecting}, checked in {checking}{note}\n")
}

fn parse_check(words: &[&str]) -> Result<(Typed, ArgMatches)> {
    let line = ["kingsnake", "check"].iter().chain(words).copied();
    let matches = Typed::command().try_get_matches_from(line)?;
    Ok((Typed::from_arg_matches(&matches)?, matches))
}

/// Runs `kingsnake check` with these words.
fn run_check(words: &[&str], voice: Voice, start: Instant) -> Result<u8> {
    let mut words = words.to_vec();
    if voice.quiet {
        words.push("--quiet");
    }
    let (typed, matches) = parse_check(&words)?;
    crate::run(typed, &matches, start)
}

fn merge_again(directory: &Path, voice: Voice) -> Result<u8> {
    let (meta, merged) = merge(directory)?;
    if !voice.quiet {
        let text = format!(
            "{}\n{}: {}, {}, {} with an unknown end\n",
            meta.about(),
            directory.join(kingsnake_collect::HISTORY).display(),
            count(merged.n_txns, "transaction"),
            count(merged.n_ops, "operation"),
            grouped(merged.unknown as u64)
        );
        say(&printable_lines(&text)).context("cannot write to stdout")?;
    }
    Ok(0)
}

/// The control: checks what one session must see, and that deliberate mistakes are found.
fn test_adapter(
    args: &CollectArgs,
    adapter: &Adapter,
    level: &PromisedLevel,
    voice: Voice,
) -> Result<u8> {
    let directory = output::scratch()?;
    test_in(directory.path(), args, adapter, level, voice)
}

fn test_in(
    directory: &Path,
    args: &CollectArgs,
    adapter: &Adapter,
    level: &PromisedLevel,
    voice: Voice,
) -> Result<u8> {
    let load = Load::new("mini", Some(4), None)?;
    let mut target = target(args, adapter, level, &load, directory)?;
    let server = start(args, adapter)?;
    if let Some(server) = &server {
        target.urls.clone_from(&server.urls);
    }
    // A standby may lag; that is not a mistake of the adapter.
    target.reads =
        (adapter.nodes == Nodes::Roles && target.urls.len() > 1).then_some(ReadsAt::Primary);
    let database = adapter.connect(&target)?;
    let test = self_test(&*database)?;
    for failed in &test.failed {
        say(&format!("FAILED {failed}\n")).context("cannot write to stdout")?;
    }
    let mut n_failed = test.failed.len();
    let stop = interrupt::listen().context("cannot listen to signals")?;
    let possible = |it: &Mistake| !adapter.readers_wait() || *it != Mistake::WrongSession;
    for mistake in Mistake::ALL.into_iter().filter(possible) {
        let place = directory.join(mistake.name().replace(' ', "-"));
        let request = CollectRequest {
            run: CollectRun {
                txns: 2_000,
                sessions: 4,
                limit: Some(Duration::from_secs(20)),
                ..CollectRun::default()
            },
            ..request(args, adapter, level, OrderBy::None, &place)
        };
        let broken = Broken {
            inner: &*database,
            mistake,
        };
        let collected = request.collect(&broken, &load, &stop, None, &mut |_| {})?;
        let history = collected.history.display().to_string();
        let program = std::env::current_exe().context("cannot find the executable")?;
        let checked = std::process::Command::new(program)
            .args(["check", &history, "--level", "ser", "--quiet"])
            .output()
            .context("cannot run the check")?;
        let found = checked.status.code() == Some(1);
        n_failed += usize::from(!found);
        let word = if found { "found" } else { "NOT FOUND" };
        if !voice.quiet {
            say(&format!("deliberate {}: {word}\n", mistake.name()))
                .context("cannot write to stdout")?;
        }
    }
    if !voice.quiet {
        say(&format!(
            "{} of the adapter passed, {n_failed} failed\n",
            count(test.passed.len(), "check")
        ))
        .context("cannot write to stdout")?;
    }
    Ok(u8::from(n_failed > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_takes_longer_than_the_collection_is_told() {
        let ms = Duration::from_millis;
        let told = |collecting, checking, used: Option<u64>| {
            let line = compared(ms(collecting), ms(checking), used.map(ms));
            let note = line.trim_end().split_once(": ");
            note.map_or(String::new(), |it| it.1.to_owned())
        };
        assert_eq!(told(400, 300, Some(100)), "");
        assert_eq!(told(400, 500, Some(450)), "checking took longer");
        assert_eq!(told(400, 500, None), "checking took longer");
        assert!(told(400, 500, Some(60)).starts_with("checking waited"));
    }
}
