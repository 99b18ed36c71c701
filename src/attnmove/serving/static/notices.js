// What the page has to say: errors, and that something takes a while.

import { find } from "./dom.js";

const PATIENCE_MS = 250;  // a quick answer shows no progress at all

export function tell(text) {
  const box = find("message");
  box.hidden = text === null;
  box.firstElementChild.textContent = text ?? "";
}

export function dismissable() {
  find("message").querySelector("button").addEventListener("click", () => tell(null));
}

export class Progress {
  constructor(box) {
    this.box = box;
    this.controller = null;
    this.timer = 0;
    box.querySelector("button").addEventListener("click", () => this.controller?.abort("cancelled"));
  }

  // The signal of the new request; one that still runs is given up for it.
  begin(text) {
    this.controller?.abort("newer");
    this.controller = new AbortController();
    clearInterval(this.timer);
    const began = performance.now();
    const status = this.box.querySelector("[role=status]");
    this.timer = setInterval(() => {
      const seconds = Math.floor((performance.now() - began) / 1000);
      const shown = seconds > 0 ? `${text}, ${seconds} s` : `${text} …`;
      if (status.textContent !== shown) status.textContent = shown;
      this.box.hidden = false;
    }, PATIENCE_MS);
    return this.controller.signal;
  }

  end(signal) {
    if (this.controller?.signal !== signal) return;
    clearInterval(this.timer);
    this.controller = null;
    this.box.hidden = true;
  }
}
