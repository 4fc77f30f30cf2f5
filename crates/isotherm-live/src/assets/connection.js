// The connection to the server: it comes back by itself, and says since when there is none.

/** Samples come twice a second; without one for so long something is wrong. */
const SILENCE_MS = 4000;
/** The browser gives up for good on an answer that is no stream of events; a new one is tried then. */
const RETRY_MS = 2000;

/** Calls `on.about`, `on.history`, `on.sample`, `on.cells` with what comes, and `on.state(state, since)` on every change. */
export const connect = (on) => {
  let state = "connecting";
  let heard = null;
  let source;

  const change = (to) => {
    if (to === state) return;
    state = to;
    on.state(to, heard);
  };

  const open = () => {
    source = new EventSource("/events");
    for (const name of ["about", "history", "sample", "cells"]) {
      source.addEventListener(name, (event) => {
        const data = JSON.parse(event.data);
        if (name === "sample") {
          heard = new Date();
          change("live");
        }
        on[name](data);
      });
    }
    source.addEventListener("error", () => {
      change("lost");
      if (source.readyState === EventSource.CLOSED) setTimeout(open, RETRY_MS);
    });
  };

  open();
  setInterval(() => {
    if (state === "live" && Date.now() - heard > SILENCE_MS) change("silent");
  }, 1000);
};
