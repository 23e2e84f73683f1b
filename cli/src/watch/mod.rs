//! `kingsnake watch`: `input` finds lines, `reduce` turns them into transactions, `feed` tracks sessions and
//! announcements, `engine` judges batches, `within` is a watch inside a collection, `confirm` confirms a violation with
//! the ordinary check, `status` and `page` show the progress, `state` is the snapshot.

mod confirm;
mod engine;
mod feed;
mod input;
mod page;
mod reduce;
pub mod run;
mod state;
pub mod status;
pub mod within;
