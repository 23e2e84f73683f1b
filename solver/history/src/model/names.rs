//! What the producers call things: numbers, texts, or nothing.

use rustc_hash::FxHashMap;

use super::ids::Symbol;

/// A key, a value, a transaction's or a session's name, as the file wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Token {
    /// No value (`nil`, `null`).
    Nil,
    /// A number.
    Int(i64),
    /// A text, kept once in [`Symbols`].
    Text(Symbol),
}

impl From<i64> for Token {
    fn from(number: i64) -> Self {
        Token::Int(number)
    }
}

/// Every text of a history, once.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    texts: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, Symbol>,
}

impl Symbols {
    /// The symbol of a text, made if it is new.
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.ids.get(text) {
            return symbol;
        }
        let symbol = Symbol(self.texts.len() as u32);
        self.texts.push(text.into());
        self.ids.insert(text.into(), symbol);
        symbol
    }

    /// The symbol of a text that has one.
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.ids.get(text).copied()
    }

    /// The text of a symbol.
    pub fn text(&self, symbol: Symbol) -> &str {
        &self.texts[symbol.index()]
    }

    /// A token as a reader would write it.
    pub fn show(&self, token: Token) -> String {
        match token {
            Token::Nil => "nil".to_owned(),
            Token::Int(number) => number.to_string(),
            Token::Text(symbol) => self.text(symbol).to_owned(),
        }
    }
}
