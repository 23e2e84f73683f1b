//! Keys, values and names as the format has them: whole numbers, texts, or nothing.

use std::fmt;

/// A key, a value or a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// No row, or no value.
    Null,
    /// A whole number.
    Number(i64),
    /// A text. The number 1 and the text `1` differ.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => out.write_str("null"),
            Value::Number(number) => number.fmt(out),
            Value::Text(text) => serde_json::Value::from(text.as_str()).fmt(out),
        }
    }
}

macro_rules! numbers {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Value {
            fn from(number: $kind) -> Self {
                Value::Number(number.into())
            }
        }
    )*};
}
numbers!(i8, i16, i32, i64, u8, u16, u32);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}
