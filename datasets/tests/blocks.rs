//! Large files of our own format, whose plain lines are scanned in blocks, against the same lines read one by one.

use kingsnake_datasets::{Format, read_bytes};
use kingsnake_history::model::{History, Op};
use kingsnake_history::rng::Rng;

/// Lines of every kind, more than a block's worth; plain ones are written as our writer does.
fn text(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut text = "{\"kingsnake\":1,\"initial\":0}\n".to_owned();
    for id in 0..30_000_u64 {
        let session = rng.below(7);
        let (x, y, z) = (rng.below(50), rng.below(900), 1_000 + id);
        let odd = format!("{{\"session\":{session},\"id\":{id},\"ops\":[[\"w\",\"x{x}\",{z}]]}}");
        let line = match rng.below(12) {
            0 => odd,
            1 => format!("\n{{\"id\":{id},\"session\":{session},\"ops\":[[\"r\",{x},null]]}}"),
            2 => format!("{{\"id\":{id},\"session\":{session},\"isolation\":\"rc\",\"ops\":[]}}"),
            3 => format!("{{\"id\":{id},\"session\":{session},\"ops\":[[\"a\",\"l\",{z}]]}}\r"),
            4 | 5 => format!(
                "{{\"id\":{id},\"session\":{session},\"status\":\"unknown\",\"begin\":{z},\"ops\":[[\"a\",-{x},{z}],[\"rl\",-{x},[{y},{z}]],[\"rl\",-{y},[]]]}}"
            ),
            6 => format!("{{\"id\":{id},\"session\":{session},\"ops\":[]}}"),
            _ => format!(
                "{{\"id\":{id},\"session\":{session},\"begin\":{y},\"commit\":{z},\"ops\":[[\"r\",{x},{y}],[\"w\",{x},{z}],[\"w\",{y},-{z}]]}}"
            ),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// All that a history says, in words.
fn told(history: &History) -> Vec<String> {
    let told = history.txns().map(|txn| {
        let ops = history.ops(txn).iter().map(|&op| match op {
            Op::ReadList { list, .. } => format!("{op:?} {:?}", history.list(list)),
            op => format!("{op:?}"),
        });
        let ops: Vec<String> = ops.collect();
        let (name, session) = (history.txn_name(txn), history.session(txn));
        let (status, interval) = (history.status(txn), history.interval(txn));
        format!("{name} {session:?} {status:?} {interval:?} {ops:?}")
    });
    told.collect()
}

fn read(text: &str) -> Result<History, String> {
    let parsed = read_bytes(Format::Kingsnake, text.as_bytes(), "history.jsonl");
    parsed
        .map(|it| it.history)
        .map_err(|error| error.to_string())
}

#[test]
fn blocks_of_lines_say_what_the_lines_say_one_by_one() {
    for seed in 0..3 {
        let text = text(seed);
        assert!(text.len() > 2 << 20, "{}", text.len());
        let blocks = read(&text).expect("it is well formed");
        // A blank after the brace makes no line plain.
        let lines = read(&text.replace("{\"id\"", "{ \"id\"")).expect("it is well formed");
        assert_eq!(told(&blocks), told(&lines));
        assert_eq!(blocks.n_values(), lines.n_values());
    }
}

#[test]
fn an_error_in_a_large_file_names_its_line_and_what_stands_there() {
    let text = text(9);
    let n_lines = text.lines().count();
    let wrong = [
        ("{\"id\":5,\"session\":0,\"ops\":[]}\n", "5"),
        (
            "{\"id\":\"n\",\"session\":0,\"begin\":4,\"commit\":3,\"ops\":[]}\n",
            "commits at 3",
        ),
        (
            "{\"id\":\"n\",\"session\":0,\"ops\":[[\"w\",1]]}\n",
            "a write needs",
        ),
        (
            "{\"id\":\"n\",\"session\":0,\"ops\":[[\"w\",1,2]]} x\n",
            "the end of the line",
        ),
        (
            "{\"id\":77777,\"session\":0,\"begin\":4,\"commit\":3,\"ops\":[]}\n",
            "commits at 3",
        ),
    ];
    for (line, words) in wrong {
        let error = read(&format!("{text}{line}")).expect_err(line);
        let place = format!("line {}", n_lines + 1);
        assert!(error.contains(words) && error.contains(&place), "{error}");
        let lines = format!("{text}{line}").replace("{\"id\"", "{ \"id\"");
        let alone = read(&lines).expect_err(line);
        let words = |error: &str| error.split(": ").skip(1).collect::<String>();
        assert_eq!(words(&error), words(&alone));
    }
}
