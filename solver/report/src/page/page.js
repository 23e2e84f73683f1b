// Adds to the page what needs a program: zoom and pan of the timeline, words beside the pointer, details of a transaction, filters,
// a cue where a picture goes on beyond the edge, and buttons that copy commands. Without it the page tells the same.
(function () {
  "use strict";
  const all = (what, within) => Array.from((within || document).querySelectorAll(what));
  const one = (what) => document.querySelector(what);

  // A shade at the side where a wide picture goes on.
  for (const box of all(".scroller")) {
    const inner = box.querySelector(".wide");
    const look = () => {
      const room = inner.scrollWidth - inner.clientWidth;
      box.classList.toggle("more-left", inner.scrollLeft > 4);
      box.classList.toggle("more-right", inner.scrollLeft < room - 4);
    };
    inner.addEventListener("scroll", look, { passive: true });
    window.addEventListener("resize", look);
    look();
  }

  // The explanation of a term stays within the page.
  for (const term of all(".term")) {
    const tip = term.querySelector(".tip");
    const place = () => {
      tip.style.left = "0";
      const beyond = tip.getBoundingClientRect().right + 8 - document.documentElement.clientWidth;
      if (beyond > 0) tip.style.left = -beyond + "px";
    };
    term.addEventListener("mouseenter", place);
    term.addEventListener("focus", place);
  }

  // Commands can be copied.
  for (const box of all("pre.command")) {
    if (!navigator.clipboard) break;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(box.querySelector("code").textContent).then(() => {
        button.textContent = "copied";
        setTimeout(() => { button.textContent = "copy"; }, 1500);
      }, () => { button.textContent = "cannot copy"; });
    });
    box.append(button);
  }

  const lanes = one(".lanes");
  if (!lanes) return;
  const bars = all(".bar", lanes);
  const number = (text, otherwise) => (text === undefined || text === "" ? otherwise : Number(text));
  const full = [Number(lanes.dataset.from), Number(lanes.dataset.to)];
  const near = [Number(lanes.dataset.near), Number(lanes.dataset.far)];
  const track = one(".track");
  const axis = one(".axis");
  let view = full.slice();

  const units = [["ns", 1, 0], ["µs", 1e3, 1], ["ms", 1e6, 1], ["s", 1e9, 2]];
  function since(time, step) {
    let unit = units[0];
    for (const it of units) if (Math.max(Math.abs(time), step) >= it[1]) unit = it;
    const digits = unit[1] === 1 ? 0 : Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / unit[1]) + 0.01)));
    const text = (time / unit[1]).toFixed(digits);
    return (time >= 0 ? "+" : "") + text + " " + unit[0];
  }

  // Ticks at round numbers, as many as there is room for.
  function ticks() {
    if (lanes.dataset.unit !== "ns") return;
    const span = view[1] - view[0];
    const most = Math.max(2, Math.floor(track.clientWidth / 95));
    let step = Math.pow(10, Math.floor(Math.log10(span / most)));
    while (span / step > most) step *= span / (step * 2) <= most ? 2 : span / (step * 5) <= most ? 5 : 10;
    const marks = [];
    for (let at = Math.ceil(view[0] / step) * step; at <= view[1]; at += step) {
      const share = (at - view[0]) / span;
      if (share < 0.04 || share > 0.96) continue;
      const mark = document.createElement("span");
      mark.className = "tick";
      mark.style.left = share * 100 + "%";
      mark.style.transform = "translateX(-50%)";
      mark.textContent = since(Math.round(at / step) * step, step);
      marks.push(mark);
    }
    axis.replaceChildren(...marks);
  }

  function draw() {
    const span = view[1] - view[0];
    const share = (at) => ((at - view[0]) / span) * 100;
    const width = track.clientWidth;
    for (const bar of bars) {
      const from = Math.max(-5, share(number(bar.dataset.b, -Infinity)));
      const to = Math.min(105, share(number(bar.dataset.e, Infinity)));
      const gone = to < 0 || from > 100;
      if (gone && bar === document.activeElement) lanes.focus({ preventScroll: true }); // Keys go on working.
      bar.hidden = gone;
      bar.style.left = from + "%";
      bar.style.width = Math.max(0, to - from) + "%";
      // A bar that has no room for its name shows it beside itself, on the side where there is room.
      bar.classList.toggle("thin", ((to - from) / 100) * width < 26);
      bar.classList.toggle("late", from > 80);
    }
    for (const line of all(".links line", lanes)) {
      line.setAttribute("x1", share(Number(line.dataset.x1)) + "%");
      line.setAttribute("x2", share(Number(line.dataset.x2)) + "%");
    }
    for (const event of all(".event", lanes)) {
      const at = share(Number(event.dataset.at));
      event.hidden = at < 0 || at > 100;
      event.style.left = at + "%";
    }
    ticks();
  }

  // Shows a part of the axis; never more than all, never less than a billionth.
  function show(from, to) {
    const least = Math.max((full[1] - full[0]) / 1e9, lanes.dataset.unit === "ns" ? 10 : 1);
    const room = (full[1] - full[0]) * 0.05;
    let span = Math.min(Math.max(to - from, least), full[1] - full[0] + 2 * room);
    let start = (from + to) / 2 - span / 2;
    start = Math.max(full[0] - room, Math.min(start, full[1] + room - span));
    view = [start, start + span];
    draw();
  }
  function zoom(by, around) {
    const at = around === undefined ? (view[0] + view[1]) / 2 : around;
    show(at - (at - view[0]) * by, at + (view[1] - at) * by);
  }
  function pan(by) {
    const step = (view[1] - view[0]) * by;
    show(view[0] + step, view[1] + step);
  }
  const acts = {
    in: () => zoom(0.5), out: () => zoom(2), left: () => pan(-0.25), right: () => pan(0.25),
    near: () => show(near[0], near[1]), all: () => show(full[0], full[1]),
  };
  one(".tools").hidden = false;
  for (const button of all("[data-do]")) button.addEventListener("click", acts[button.dataset.do]);
  const keys = { "+": "in", "=": "in", "-": "out", "_": "out", ArrowLeft: "left", ArrowRight: "right", c: "near", 0: "all" };
  lanes.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[act]();
  });

  // The wheel zooms with Ctrl, and pans sideways.
  const placeOf = (x) => {
    const box = track.getBoundingClientRect();
    return view[0] + ((x - box.left) / box.width) * (view[1] - view[0]);
  };
  lanes.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.004), placeOf(event.clientX));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan(event.deltaX / track.clientWidth);
    }
  }, { passive: false });

  // Dragging pans; two fingers zoom.
  const fingers = new Map();
  let moved = 0;
  lanes.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, event.clientX);
    moved = 0;
  });
  lanes.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const before = fingers.get(event.pointerId);
    const shift = event.clientX - before;
    if (fingers.size === 2) {
      const other = Array.from(fingers.entries()).find((it) => it[0] !== event.pointerId)[1];
      const was = Math.abs(before - other);
      const is = Math.abs(event.clientX - other);
      if (was > 8 && is > 8) zoom(was / is, placeOf((event.clientX + other) / 2));
    } else {
      moved += Math.abs(shift);
      if (moved > 5) {
        if (!lanes.hasPointerCapture(event.pointerId)) lanes.setPointerCapture(event.pointerId);
        hide();
        pan(-shift / track.clientWidth);
      }
    }
    fingers.set(event.pointerId, event.clientX);
  });
  for (const kind of ["pointerup", "pointercancel", "pointerleave"]) {
    lanes.addEventListener(kind, (event) => fingers.delete(event.pointerId));
  }

  // Words beside the pointer.
  const hover = document.createElement("div");
  hover.id = "hover";
  hover.hidden = true;
  document.body.append(hover);
  function hide() { hover.hidden = true; }
  function tell(bar) {
    hover.textContent = bar.dataset.words;
    hover.hidden = false;
    const at = bar.getBoundingClientRect();
    const box = hover.getBoundingClientRect();
    const edges = lanes.getBoundingClientRect();
    const left = Math.max(at.left, edges.left);
    hover.style.left = Math.max(6, Math.min(left, window.innerWidth - box.width - 6)) + "px";
    const below = at.bottom + 6;
    hover.style.top = (below + box.height < window.innerHeight ? below : Math.max(6, at.top - box.height - 6)) + "px";
  }
  for (const bar of bars) {
    bar.dataset.words = bar.title;
    bar.setAttribute("aria-label", bar.title);
    bar.removeAttribute("title");
    bar.draggable = false;
    bar.addEventListener("pointerenter", (event) => { if (event.pointerType !== "touch" && !fingers.size) tell(bar); });
    bar.addEventListener("pointerleave", hide);
    bar.addEventListener("focus", () => { if (bar.matches(":focus-visible")) tell(bar); });
    bar.addEventListener("blur", hide);
    bar.addEventListener("click", (event) => {
      event.preventDefault();
      if (moved <= 5) open(bar);
    });
  }

  // The transaction that was chosen, in full, with its line of the file.
  const detail = one("#detail");
  function open(bar) {
    hide();
    const card = document.getElementById(bar.getAttribute("href").slice(1));
    for (const it of bars) it.classList.toggle("chosen", it === bar);
    if (!card) return;
    const copy = card.cloneNode(true);
    copy.removeAttribute("id");
    copy.classList.remove("off");
    for (const it of all("details", copy)) it.open = true;
    detail.replaceChildren(copy);
    detail.hidden = false;
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    hide();
    detail.hidden = true;
    detail.replaceChildren();
    for (const it of bars) it.classList.remove("chosen");
    if (document.activeElement && document.activeElement.classList.contains("term")) document.activeElement.blur();
  });

  // Filters by key and session.
  const byKey = one("#by-key");
  const bySession = one("#by-session");
  function filter() {
    const key = byKey.value;
    const session = bySession.value;
    const fits = (keys, of) => (!key || keys.split(" ").includes(key)) && (!session || of === session);
    let n = 0;
    for (const bar of bars) {
      const is = fits(bar.dataset.keys, bar.closest(".row").dataset.session);
      bar.classList.toggle("off", !is);
      n += is ? 1 : 0;
    }
    for (const card of all("#transactions article")) card.classList.toggle("off", !fits(card.dataset.keys, card.dataset.session));
    one(".links").classList.toggle("off", Boolean(key || session));
    one("#matches").textContent = key || session ? n + " of " + bars.length + " transactions" : "";
  }
  byKey.addEventListener("change", filter);
  bySession.addEventListener("change", filter);

  window.addEventListener("resize", draw);
  show(near[0], near[1]);
})();
