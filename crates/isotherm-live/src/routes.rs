//! Which address is answered with what.

use crate::board::{Board, Item, Nothing};
use crate::request::{self, Refusal, Request};
use crate::response::{self, EVENTS, JSON, METRICS, Status};
use crate::{MOST_CELLS, assets, events};
use std::io;
use std::net::TcpStream;

/// Answers the one request of a connection. An error means that the client went or was too slow, which is no one's to hear.
pub(crate) fn answer(stream: &TcpStream, board: &Board) -> io::Result<()> {
    let request = match request::read(stream) {
        Ok(request) => request,
        Err(Refusal::Gone) => return Ok(()),
        Err(Refusal::Answer(status, words)) => return response::send_words(stream, status, words, false),
    };
    let head_only = request.head_only;
    if let Some(asset) = assets::find(&request.path) {
        return response::send(stream, Status::Ok, asset.kind, asset.text.as_bytes(), head_only);
    }
    match request.path.as_str() {
        "/stats" => send_item(stream, board, Item::Stats, JSON, head_only),
        "/metrics" => send_item(stream, board, Item::Metrics, METRICS, head_only),
        "/cells" => send_cells(stream, board, &request),
        "/events" => {
            response::begin(stream, EVENTS)?;
            if head_only { Ok(()) } else { events::send(stream, board) }
        }
        _ => {
            let words = "nothing is here; there are /, /stats, /metrics, /cells?most=N and /events";
            response::send_words(stream, Status::NotFound, words, head_only)
        }
    }
}

fn send_item(stream: &TcpStream, board: &Board, item: Item, kind: &str, head_only: bool) -> io::Result<()> {
    match board.fetch(item) {
        Ok(text) => response::send(stream, Status::Ok, kind, text.as_bytes(), head_only),
        Err(nothing) => send_nothing(stream, nothing, head_only),
    }
}

fn send_cells(stream: &TcpStream, board: &Board, request: &Request) -> io::Result<()> {
    let Some(most) = most_of(&request.query) else {
        let words = "most is a number of cells from 1 to 20000, as in /cells?most=1000";
        return response::send_words(stream, Status::BadRequest, words, request.head_only);
    };
    match board.fetch_cells() {
        Ok(cells) => {
            let text =
                serde_json::to_vec(&cells.coarsened(&board.colourings, most)).expect("lists of numbers are JSON");
            response::send(stream, Status::Ok, JSON, &text, request.head_only)
        }
        Err(nothing) => send_nothing(stream, nothing, request.head_only),
    }
}

/// The most cells that a query allows; none where it asks for something else.
fn most_of(query: &str) -> Option<usize> {
    match query {
        "" => Some(MOST_CELLS),
        _ => query.strip_prefix("most=")?.parse().ok().filter(|most| (1..=MOST_CELLS).contains(most)),
    }
}

fn send_nothing(stream: &TcpStream, nothing: Nothing, head_only: bool) -> io::Result<()> {
    let words = match nothing {
        Nothing::Stopped => "the page is being shut down",
        Nothing::Late => "what this page shows did not answer within 5 seconds; try again",
    };
    response::send_words(stream, Status::Unavailable, words, head_only)
}
