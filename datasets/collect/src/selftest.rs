//! The control before any collection: one session, every operation, and the expected results. It tests our adapter, not
//! the database: a single session meets no other.

use crate::adapter::{Database, DatabaseSession, Failure, Initially, StoredCell};

/// What was tried, and the errors.
#[derive(Clone, Debug, Default)]
pub struct AdapterSelfTest {
    /// What held.
    pub passed: Vec<&'static str>,
    /// What did not, with what was returned.
    pub failed: Vec<String>,
}

impl AdapterSelfTest {
    #[allow(clippy::needless_pass_by_value)] // Callers make both values for this call.
    fn expect<T: PartialEq + std::fmt::Debug>(&mut self, what: &'static str, got: T, expected: T) {
        if got == expected {
            self.passed.push(what);
        } else {
            self.failed
                .push(format!("{what}: got {got:?}, expected {expected:?}"));
        }
    }
}

/// Runs the control; makes the tables and removes them again.
pub fn self_test(database: &dyn Database) -> Result<AdapterSelfTest, Failure> {
    let mut test = AdapterSelfTest::default();
    database.prepare(Initially::Rows(4))?;
    let tried = try_all(database, &mut test);
    let cleaned = database.clean();
    tried?;
    cleaned?;
    Ok(test)
}

fn try_all(database: &dyn Database, test: &mut AdapterSelfTest) -> Result<(), Failure> {
    let cell = |value| StoredCell {
        value,
        beside: -value,
    };
    let mut session = database.open(0)?;
    let session = &mut *session;
    session.begin()?;
    test.expect(
        "a row holds 0 at first",
        session.read(1)?,
        Some(StoredCell {
            value: 0,
            beside: 0,
        }),
    );
    test.expect("there is no row beyond the last", session.read(100)?, None);
    session.write(1, cell(11))?;
    test.expect(
        "a transaction reads its own write",
        session.read(1)?,
        Some(cell(11)),
    );
    session.commit()?;
    session.begin()?;
    test.expect(
        "a committed write is read",
        session.read(1)?,
        Some(cell(11)),
    );
    session.write(1, cell(12))?;
    session.write(2, cell(13))?;
    session.abort()?;
    session.begin()?;
    test.expect(
        "an aborted write is not read",
        session.read(1)?,
        Some(cell(11)),
    );
    test.expect(
        "another aborted write is not read",
        session.read(2)?.map(|it| it.value),
        Some(0),
    );
    session.write(50, cell(14))?;
    test.expect(
        "a range has the rows between its bounds, and no other",
        session.range(1, 60)?,
        vec![(1, 11), (2, 0), (3, 0), (50, 14)],
    );
    session.commit()?;
    session.begin()?;
    test.expect(
        "a delete tells that there was a row",
        session.delete(3)?.is_some(),
        true,
    );
    test.expect("there is no row after a delete", session.read(3)?, None);
    test.expect(
        "a second delete finds none",
        session.delete(3)?.is_some(),
        false,
    );
    session.commit()?;
    session.begin()?;
    test.expect(
        "what was deleted stays so",
        session.range(2, 3)?,
        vec![(2, 0)],
    );
    session.commit()?;
    lists(session, test)?;
    session.begin()?;
    let held = session.cas(1, 99, cell(21))?;
    test.expect(
        "a compare-and-set tells what was there",
        held,
        Some(cell(11)),
    );
    session.commit()?;
    session.begin()?;
    session.cas(1, 11, cell(22))?;
    session.commit()?;
    session.begin()?;
    test.expect(
        "only the second compare-and-set wrote",
        session.read(1)?,
        Some(cell(22)),
    );
    session.commit()?;
    let mut second = database.open(1)?;
    second.begin()?;
    test.expect(
        "another session reads it too",
        second.read(1)?,
        Some(cell(22)),
    );
    second.commit()?;
    Ok(())
}

fn lists(session: &mut dyn DatabaseSession, test: &mut AdapterSelfTest) -> Result<(), Failure> {
    session.begin()?;
    test.expect("a list is empty at first", session.read_list(3)?, vec![]);
    session.append(3, 31)?;
    session.append(3, 32)?;
    test.expect(
        "a transaction reads what it appended",
        session.read_list(3)?,
        vec![31, 32],
    );
    session.commit()?;
    session.begin()?;
    session.append(3, 33)?;
    session.abort()?;
    session.begin()?;
    test.expect(
        "what was appended stays, and what was aborted does not",
        session.read_list(3)?,
        vec![31, 32],
    );
    session.commit()?;
    Ok(())
}
