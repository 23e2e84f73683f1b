//! The producers' names: numbers, texts, or nothing.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

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

/// Many tokens: eight bytes each where all are numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens {
    /// The numbers, and the symbols of texts.
    numbers: Vec<i64>,
    /// What each is; empty where all are numbers.
    kinds: Vec<TokenKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Int,
    Nil,
    Text,
}

impl Tokens {
    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The token at a place.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Token {
        let number = self.numbers[at];
        match self.kinds.get(at) {
            None | Some(TokenKind::Int) => Token::Int(number),
            Some(TokenKind::Nil) => Token::Nil,
            Some(TokenKind::Text) => Token::Text(Symbol(number as u32)),
        }
    }

    /// All, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Token> {
        (0..self.len()).map(|at| self.get(at))
    }

    #[inline]
    pub(super) fn push(&mut self, token: Token) {
        let (number, kind) = match token {
            Token::Int(number) => (number, TokenKind::Int),
            Token::Nil => (0, TokenKind::Nil),
            Token::Text(symbol) => (i64::from(symbol.0), TokenKind::Text),
        };
        if kind != TokenKind::Int || !self.kinds.is_empty() {
            self.kinds.resize(self.numbers.len(), TokenKind::Int);
            self.kinds.push(kind);
        }
        self.numbers.push(number);
    }

    /// Puts the token at one place also at an earlier one.
    pub(super) fn move_back(&mut self, to: usize, from: usize) {
        self.numbers[to] = self.numbers[from];
        if !self.kinds.is_empty() {
            self.kinds[to] = self.kinds[from];
        }
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.numbers.truncate(length);
        self.kinds.truncate(length);
    }

    pub(super) fn reserve(&mut self, n_more: usize) {
        self.numbers.reserve(n_more);
    }
}

/// Every text of a history, once.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    texts: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, Symbol>,
    /// The file's spelling of nothing; `null` by default.
    nil: Option<&'static str>,
    /// Whether some number occurs as a text too, so that texts that look like numbers are quoted.
    quotes: bool,
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

    /// Every text, in the order of their symbols.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// The text of a symbol.
    pub fn text(&self, symbol: Symbol) -> &str {
        &self.texts[symbol.index()]
    }

    /// A token as a file has it, on one line and without invisible characters.
    pub fn whole(&self, token: Token) -> String {
        match token {
            Token::Nil => self.nil.unwrap_or("null").to_owned(),
            Token::Int(number) => number.to_string(),
            Token::Text(symbol) => visible(self.text(symbol)).into_owned(),
        }
    }

    /// The same for people: the middle of a very long text is omitted.
    pub fn show(&self, token: Token) -> String {
        match token {
            Token::Text(symbol) => visible(&bounded(self.text(symbol))).into_owned(),
            Token::Nil | Token::Int(_) => self.whole(token),
        }
    }

    /// The same, with quotes around a text that looks like a number where such a number occurs as well.
    pub fn spell(&self, token: Token) -> String {
        let shown = self.show(token);
        match self.number(token) {
            Some(_) if self.quotes => format!("\"{shown}\""),
            _ => shown,
        }
    }

    /// The number that a text looks like.
    pub fn number(&self, token: Token) -> Option<i64> {
        match token {
            Token::Text(symbol) => self.text(symbol).parse().ok(),
            Token::Nil | Token::Int(_) => None,
        }
    }

    /// Writes nothing as the file does.
    pub(super) fn spell_nil(&mut self, word: &'static str) {
        self.nil = Some(word);
    }

    /// Finds out whether a number among keys and values also occurs as a text.
    pub(super) fn quote_among(&mut self, names: [&Tokens; 2]) {
        let is_number = |text: &str| text.parse::<i64>().is_ok();
        if !self.texts.iter().any(|text| is_number(text)) {
            return;
        }
        let all = || names.into_iter().flat_map(Tokens::iter);
        let texts: FxHashSet<i64> = all().filter_map(|token| self.number(token)).collect();
        let is_both = |token| matches!(token, Token::Int(number) if texts.contains(&number));
        self.quotes = !texts.is_empty() && all().any(is_both);
    }
}

/// The middle of longer texts is omitted, and their length shown.
const LONGEST_SHOWN: usize = 300;

/// A text that is short enough to be shown.
fn bounded(text: &str) -> Cow<'_, str> {
    // A character takes at least one byte.
    if text.len() <= LONGEST_SHOWN || text.chars().nth(LONGEST_SHOWN).is_none() {
        return Cow::Borrowed(text);
    }
    let half = LONGEST_SHOWN / 3;
    let head: String = text.chars().take(half).collect();
    let mut tail: Vec<char> = text.chars().rev().take(half).collect();
    tail.reverse();
    let tail: String = tail.into_iter().collect();
    let n_characters = text.chars().count();
    Cow::Owned(format!("{head}…{tail} ({n_characters} characters)"))
}

/// The text with every character escaped that would end a line, control a terminal or reorder the text around it.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if is_deceptive(letter) {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}

/// Control characters, ends of lines, marks of direction (Unicode's UAX 9), and spaces without width.
fn is_deceptive(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{061c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}'
        )
        || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_every_kind_come_back_as_they_were_put_in() {
        let all = [
            Token::Int(i64::MIN),
            Token::Int(-1),
            Token::Nil,
            Token::Text(Symbol(u32::MAX)),
            Token::Int(0),
            Token::Text(Symbol(0)),
        ];
        // Numbers alone, and what follows the first other token.
        for from in 0..all.len() {
            let mut column = Tokens::default();
            all[from..].iter().for_each(|&token| column.push(token));
            assert_eq!(column.iter().collect::<Vec<Token>>(), all[from..]);
            column.move_back(0, column.len() - 1);
            column.truncate(1);
            assert_eq!(column.iter().collect::<Vec<Token>>(), [all[5]]);
        }
    }

    #[test]
    fn what_cannot_be_seen_is_spelt_out() {
        assert_eq!(visible("plain, é and 日本"), "plain, é and 日本");
        assert_eq!(visible("a\nb\x1bc"), "a\\nb\\u{1b}c");
        assert_eq!(visible("\u{202e}gnp.exe"), "\\u{202e}gnp.exe");
        let mut symbols = Symbols::default();
        let token = Token::Text(symbols.intern("x\u{2028}y"));
        assert_eq!(symbols.show(token), "x\\u{2028}y");
    }

    #[test]
    fn a_very_long_name_is_shown_by_its_ends_and_its_length() {
        let mut symbols = Symbols::default();
        let token = Token::Text(symbols.intern(&format!("a{}z", "é".repeat(1_000_000))));
        let shown = symbols.show(token);
        assert!(shown.starts_with("aé") && shown.ends_with("éz (1000002 characters)"));
        assert!(shown.chars().count() < LONGEST_SHOWN);
        assert_eq!(symbols.whole(token).chars().count(), 1_000_002);
        let token = Token::Text(symbols.intern(&"x".repeat(LONGEST_SHOWN)));
        assert_eq!(symbols.show(token).len(), LONGEST_SHOWN);
    }
}
