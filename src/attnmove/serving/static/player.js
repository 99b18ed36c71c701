// Playing through the day: a slot at a time, two a second and faster.

import { find } from "./dom.js";

const SLOTS_A_SECOND = 2;
const SHAPES = { play: "M3 1.5v9l7-4.5z", pause: "M2.5 1.5h2.5v9h-2.5zM7 1.5h2.5v9h-2.5z" };

export class Player {
  constructor({ step }) {
    this.step = step;
    this.timer = 0;
  }

  // `ready` is asked before playing begins, and puts the day back to its first slot when it is over.
  listen(ready) {
    find("play").addEventListener("click", () => {
      if (this.timer) this.#stop();
      else if (ready()) this.#go();
    });
    find("speed").addEventListener("change", () => {
      if (this.timer) this.#go();
    });
  }

  #go() {
    clearInterval(this.timer);
    this.timer = setInterval(() => {
      if (!this.step()) this.#stop();
    }, 1000 / (SLOTS_A_SECOND * Number(find("speed").value)));
    this.#show("pause", "Pause");
  }

  #stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.#show("play", "Play");
  }

  #show(shape, text) {
    const button = find("play");
    button.querySelector("path").setAttribute("d", SHAPES[shape]);
    button.querySelector("span").textContent = text;
    button.setAttribute("aria-pressed", String(shape === "pause"));
  }
}
