//! Keys, values and names as the format has them: whole numbers, texts, or nothing.

use std::fmt;

/// A key, a value or a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// No row, or no value.
    Null,
    /// A whole number.
    Number(i64),
    /// A text. The number 1 and the text `1` differ.
    Text(String),
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Null => out.write_str("null"),
            Field::Number(number) => number.fmt(out),
            Field::Text(text) => serde_json::Value::from(text.as_str()).fmt(out),
        }
    }
}

macro_rules! numbers {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Field {
            fn from(number: $kind) -> Self {
                Field::Number(number.into())
            }
        }
    )*};
}
numbers!(i8, i16, i32, i64, u8, u16, u32);

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Field::Text(text.to_owned())
    }
}

impl From<String> for Field {
    fn from(text: String) -> Self {
        Field::Text(text)
    }
}

impl<T: Into<Field>> From<Option<T>> for Field {
    fn from(value: Option<T>) -> Self {
        value.map_or(Field::Null, Into::into)
    }
}
