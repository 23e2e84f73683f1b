//! Sixteen hexadecimal digits that identify a history.

use kingsnake_history::model::{History, Op, Token, ValueId};

/// FNV-1a over every transaction's name, session and operations. It only serves to warn of mixed-up files: a
/// certificate is always replayed.
pub(crate) fn fingerprint(history: &History) -> String {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for txn in history.txns() {
        hash.token(history, history.txn_token(txn));
        hash.token(history, history.session_token(history.session(txn)));
        for &op in history.ops(txn) {
            if let Some(key) = op.key() {
                hash.token(history, history.key_token(key));
            }
            match op {
                Op::Read { value, .. } if history.is_tombstone(value) => {
                    hash.value(history, b'n', value);
                }
                Op::Write { value, .. } if history.is_tombstone(value) => {
                    hash.value(history, b'd', value);
                }
                Op::Range { range } => {
                    let query = history.range(range);
                    let span = query.span.show(|end| history.symbols().whole(end));
                    hash.bytes(span.as_bytes());
                    for &row in query.rows {
                        hash.token(history, history.key_token(history.value_key(row)));
                        let letter = if history.is_tombstone(row) {
                            b'd'
                        } else {
                            b'r'
                        };
                        hash.value(history, letter, row);
                    }
                    hash.bytes(if query.shows_deleted { b")" } else { b"]" });
                }
                Op::Read { value, .. } => hash.value(history, b'r', value),
                Op::Write { value, .. } => hash.value(history, b'w', value),
                Op::Append { value, .. } => hash.value(history, b'a', value),
                Op::ReadList { list, .. } => {
                    for &value in history.list(list) {
                        hash.value(history, b'l', value);
                    }
                    hash.bytes(b"]");
                }
            }
        }
    }
    format!("{:016x}", hash.0)
}

struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn token(&mut self, history: &History, token: Token) {
        match token {
            Token::Nil => self.bytes(b"n"),
            Token::Int(number) => {
                self.bytes(b"i");
                self.bytes(&number.to_le_bytes());
            }
            Token::Text(symbol) => {
                self.bytes(b"t");
                self.bytes(history.symbols().text(symbol).as_bytes());
                self.bytes(&[0]);
            }
        }
    }

    fn value(&mut self, history: &History, kind: u8, value: ValueId) {
        self.bytes(&[kind]);
        self.token(history, history.value_token(value));
    }
}
