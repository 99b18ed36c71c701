// The day as a strip of slots: one of them is chosen, arrow keys go from one to the next.

import { el } from "./dom.js";
import { shade, slotLabel } from "./words.js";

const NARROWEST = 13;  // pixels of a slot that a finger still finds
const MOST_ROWS = 12;

export class Strip {
  constructor(box, { choose, enter }) {
    this.box = box;
    this.choose = choose;
    this.cells = [];
    this.columns = 1;
    box.addEventListener("keydown", (event) => this.#key(event, enter));
    new ResizeObserver(() => this.#arrange()).observe(box);
  }

  show(day) {
    this.cells = day.slots.map((slot, index) =>
      el(
        "div",
        {
          role: "option",
          class: `slot ${slot.status}${slot.status === "recovered" ? ` p${shade(slot.probability)}` : ""}`,
          "aria-label": slotLabel(slot),
          "aria-selected": "false",
          tabindex: "-1",
          title: slotLabel(slot),
          "--sure": slot.probability ?? 0,
          onclick: () => this.choose(index, { focus: true }),
        },
        this.#tick(index, day.slot_minutes),
      ),
    );
    this.box.replaceChildren(...this.cells);
    this.#arrange();
  }

  clear() {
    this.cells = [];
    this.box.replaceChildren();
  }

  select(index, { focus = false } = {}) {
    this.cells.forEach((cell, i) => {
      const chosen = i === index;
      if ((cell.getAttribute("aria-selected") === "true") !== chosen) cell.setAttribute("aria-selected", String(chosen));
      cell.tabIndex = chosen ? 0 : -1;
    });
    if (focus) this.cells[index]?.focus({ preventScroll: false });
  }

  #tick(index, slotMinutes) {
    const minutes = index * slotMinutes;
    if (minutes % 60 !== 0) return null;
    const hour = minutes / 60;
    const rank = hour % 6 === 0 ? "six" : hour % 3 === 0 ? "three" : "one";
    return el("span", { class: `hour ${rank}`, "aria-hidden": "true" }, String(hour));
  }

  #arrange() {
    const n = this.cells.length;
    if (n === 0) return;
    const width = this.box.clientWidth || 1;
    let rows = 1;
    while (rows < MOST_ROWS && (n % rows !== 0 || width / (n / rows) < NARROWEST)) rows += 1;
    this.columns = n % rows === 0 ? n / rows : n;
    this.box.style.setProperty("--columns", this.columns);
  }

  #key(event, enter) {
    const now = this.cells.indexOf(document.activeElement);
    if (now < 0) return;
    const last = this.cells.length - 1;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns };
    let next = null;
    if (event.key in steps) next = now + steps[event.key];
    else if (event.key === "Home") next = 0;
    else if (event.key === "End") next = last;
    else if (event.key === "Enter" || event.key === " ") enter(now);
    else return;
    event.preventDefault();
    if (next !== null && next >= 0 && next <= last) this.choose(next, { focus: true });
  }
}
