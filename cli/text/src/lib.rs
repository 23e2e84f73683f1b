//! Text for people, shared by the command line and the studies: numbers, durations, sizes, colours, harmless markup, and
//! the frame of a page. Nothing here prints.

mod colour;
mod escape;
mod measure;
mod page;

pub use colour::Paint;
pub use escape::{
    Escaped, LONGEST_MESSAGE, first_of, markdown, printable, printable_lines, short,
    without_commands,
};
pub use measure::{count, grouped, lasting, percent, sized};
pub use page::{Frame, live_page, page};
