//! Dense identifiers. Each is an index into one array of a [`History`](super::History).

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the array that this id indexes.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A transaction. Ids run session by session, in session order.
    TxnId
);
id!(
    /// A session: one client's transactions, one after the other.
    SessionId
);
id!(
    /// A key.
    KeyId
);
id!(
    /// A value *of one key*: the pair (key, value) is interned, so equal ids mean the same value of the same key.
    ValueId
);
id!(
    /// A list that some operation read.
    ListId
);
id!(
    /// A range query that some operation ran.
    RangeId
);
id!(
    /// A text that appears as a key, a value or a name.
    Symbol
);
