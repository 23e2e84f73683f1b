//! `kingsnake watch`: `input` finds lines, `reduce` makes transactions of them, `feed` keeps sessions and promises, `engine` judges
//! batches, `within` is a watch inside a collection, `confirm` has a violation checked and told, `status` and `page` show how it goes, `state` is the snapshot, `stubs` the file of keys that are not used.

mod confirm;
mod engine;
mod feed;
mod input;
mod page;
mod reduce;
pub mod run;
mod state;
pub mod status;
mod stubs;
pub mod within;
