// The day's path, drawn over whichever map there is: a dot a slot, lines where the person went, gaps left open.

import { svg } from "./dom.js";
import { shade, slotLabel } from "./words.js";

const DOT = 4;
const APART = 4.7;  // pixels; dots of one place lie like seeds in a sunflower
const TURN = Math.PI * (3 - Math.sqrt(5));
const BEND = 0.14;

export class Path {
  constructor(root, { project, choose }) {
    this.root = root;
    this.project = project;
    this.choose = choose;
    this.legs = svg("g", { class: "legs" });
    this.dots = svg("g", { class: "dots" });
    this.marks = svg("g", { class: "marks" });
    this.top = svg("g", { class: "top" });
    root.replaceChildren(this.legs, this.marks, this.dots, this.top);
    this.clear();
  }

  clear() {
    this.drawn = { dots: [], legs: [], marks: [] };
    for (const group of [this.legs, this.dots, this.marks, this.top]) group.replaceChildren();
  }

  show(day) {
    this.clear();
    const known = day.slots.filter((slot) => slot.lon !== null && slot.location !== null);
    const seeds = new Map();
    for (const slot of known) {
      const k = seeds.get(slot.location) ?? 0;
      seeds.set(slot.location, k + 1);
      this.drawn.dots.push(this.#dot(slot, k));
    }
    for (let i = 1; i < known.length; i += 1) {
      if (known[i].location !== known[i - 1].location) this.drawn.legs.push(leg(known[i - 1], known[i]));
    }
    this.legs.replaceChildren(...this.drawn.legs.map((one) => one.shape));
    this.dots.replaceChildren(...this.drawn.dots.map((one) => one.shape));
    this.redraw();
  }

  // The chosen slot: a ring around its dot, and a number on each other place it might have been.
  select(slot) {
    this.drawn.marks = [];
    const dot = this.drawn.dots.find((one) => one.slot === slot);
    for (const one of this.drawn.dots) one.shape.classList.toggle("chosen", one === dot);
    const first = slot.status === "left_missing" ? 1 : 2;
    (slot.alternatives ?? []).forEach((other, i) => {
      if (other.lon !== null) this.drawn.marks.push(badge(other, String(i + first), this.#above(other.location)));
    });
    this.marks.replaceChildren(...this.drawn.marks.map((one) => one.shape));
    this.top.replaceChildren();
    if (dot) {
      this.drawn.marks.push(ring(dot, slot.clock));
      this.top.append(this.drawn.marks.at(-1).shape);
    }
    this.redraw();
  }

  redraw() {
    for (const { shape, at, dx, dy } of [...this.drawn.dots, ...this.drawn.marks]) {
      const { x, y } = this.project(at);
      shape.setAttribute("transform", `translate(${(x + dx).toFixed(1)} ${(y + dy).toFixed(1)})`);
    }
    for (const { shape, from, to, open } of this.drawn.legs) {
      shape.setAttribute("d", curve(this.project(from), this.project(to), !open));
    }
  }

  // How far up a mark must go not to lie under the dots of the place.
  #above(name) {
    const n = this.drawn.dots.filter((one) => one.slot.location === name).length;
    return n === 0 ? 0 : -(APART * Math.sqrt(n) * 1.25 + 13);
  }

  #dot(slot, k) {
    const kind = slot.status === "recovered" ? `recovered p${shade(slot.probability)}` : slot.status;
    const shape = svg(
      "circle",
      { r: DOT, class: `dot ${kind}`, "data-slot": slot.slot, onclick: () => this.choose(slot.slot) },
      svg("title", {}, slotLabel(slot)),
    );
    const [far, angle] = [APART * Math.sqrt(k) * 1.25, k * TURN];
    return { slot, shape, at: [slot.lon, slot.lat], dx: far * Math.cos(angle), dy: far * Math.sin(angle) };
  }
}

function leg(before, after) {
  const open = after.slot - before.slot > 1;
  const seen = before.status === "observed" && after.status === "observed";
  const shape = svg("path", { class: `leg ${open ? "gap" : seen ? "seen" : "guessed"}` });
  return { shape, open, from: [before.lon, before.lat], to: [after.lon, after.lat] };
}

function ring(dot, text) {
  const label = svg("text", { y: -19, "text-anchor": "middle" }, text);
  const plate = svg("rect", { x: -24, y: -34, width: 48, height: 21, rx: 10.5 });
  const shape = svg("g", { class: "ring" }, svg("circle", { r: 8.5 }), plate, label);
  return { shape, at: dot.at, dx: dot.dx, dy: dot.dy };
}

function badge(place, text, dy) {
  const number = svg("text", { "text-anchor": "middle", dy: "0.35em" }, text);
  return { shape: svg("g", { class: `badge p${shade(place.probability)}` }, svg("circle", { r: 9 }), number), at: [place.lon, place.lat], dx: 0, dy };
}

// Bent to the right of the way, so that going there and coming back are two lines; an arrow in the middle says which.
function curve(a, b, pointed) {
  const [mx, my] = [(a.x + b.x) / 2 - (b.y - a.y) * BEND, (a.y + b.y) / 2 + (b.x - a.x) * BEND];
  return `M${text(a.x, a.y)}Q${text(mx, my)} ${text(b.x, b.y)}${pointed ? arrow(a, { x: mx, y: my }, b) : ""}`;
}

function arrow(a, m, b) {
  const far = Math.hypot(b.x - a.x, b.y - a.y);
  if (far < 60) return "";
  const [x, y] = [(a.x + 2 * m.x + b.x) / 4, (a.y + 2 * m.y + b.y) / 4];
  const [ux, uy] = [(b.x - a.x) / far, (b.y - a.y) / far];
  const wing = (side) => text(x - 7 * ux - side * 4 * uy, y - 7 * uy + side * 4 * ux);
  return `M${wing(1)}L${text(x, y)}L${wing(-1)}`;
}

function text(x, y) {
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}
