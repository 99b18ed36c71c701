// A map without WebGL: outlines as SVG, moved by dragging, zoomed by the wheel, buttons and keys.

import { el, svg } from "./dom.js";

const CLOSEST = 6e6;  // pixels of a radian of longitude
const STEP = 1.6;

export class PlainGround {
  constructor(box, shapes, { moved }) {
    this.box = box;
    this.moved = moved;
    this.features = new Map(shapes.features.map((feature) => [feature.properties.name, feature]));
    const lats = shapes.features.map((feature) => feature.properties.lat);  // too many, perhaps, to be arguments
    const [south, north] = [Math.min, Math.max].map((end) => lats.reduce((a, b) => end(a, b), lats[0] ?? 0));
    this.squeeze = Math.cos((((south + north) / 2) * Math.PI) / 180);
    this.view = { x: 0, y: 0, scale: 1 };
    this.cells = svg("path", { class: "cells", d: shapes.features.map((feature) => this.#outline(feature)).join("") });
    this.lit = svg("g", {});
    this.world = svg("g", {}, this.cells, this.lit);
    this.root = svg("svg", { class: "plain", tabindex: 0, role: "application", "aria-label": "Map; arrow keys move it, plus and minus zoom" }, this.world);
    const buttons = el(
      "div",
      { class: "zoom" },
      el("button", { type: "button", "aria-label": "Zoom in", onclick: () => this.#zoom(STEP) }, "+"),
      el("button", { type: "button", "aria-label": "Zoom out", onclick: () => this.#zoom(1 / STEP) }, "−"),
    );
    box.replaceChildren(this.root, buttons);
    this.#listen();
    new ResizeObserver(() => this.#apply()).observe(box);
  }

  // Radians, y downwards; east–west shortened as it is in the middle of the locations.
  #plane([lon, lat]) {
    return { x: ((lon * Math.PI) / 180) * this.squeeze, y: (-lat * Math.PI) / 180 };
  }

  project(place) {
    const { x, y } = this.#plane(place);
    const { clientWidth, clientHeight } = this.box;
    return { x: (x - this.view.x) * this.view.scale + clientWidth / 2, y: (y - this.view.y) * this.view.scale + clientHeight / 2 };
  }

  fit([west, south, east, north]) {
    const [a, b] = [this.#plane([west, north]), this.#plane([east, south])];
    const { clientWidth, clientHeight } = this.box;
    const room = [Math.max(80, clientWidth - 130), Math.max(80, clientHeight - 140)];
    const scale = Math.min(room[0] / Math.max(b.x - a.x, 1e-9), room[1] / Math.max(b.y - a.y, 1e-9), CLOSEST / 8);
    this.view = { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, scale };
    this.#apply();
  }

  highlight(roles) {
    const shapes = Object.entries(roles)
      .filter(([name]) => this.features.has(name))
      .map(([name, role]) => svg("path", { class: role, d: this.#outline(this.features.get(name)) }));
    this.lit.replaceChildren(...shapes);
  }

  #outline({ geometry, properties }) {
    const polygons = { Polygon: (c) => [c], MultiPolygon: (c) => c }[geometry.type]?.(geometry.coordinates);
    if (polygons === undefined) return this.#spot(properties);
    const at = (place) => {
      const { x, y } = this.#plane(place);
      return `${(x * 1e6).toFixed(2)} ${(y * 1e6).toFixed(2)}`;
    };
    return polygons.map((rings) => rings.map((ring) => `M${ring.map(at).join("L")}Z`).join("")).join("");
  }

  #spot({ lon, lat }) {
    const { x, y } = this.#plane([lon, lat]);
    return `M${x * 1e6 - 20} ${y * 1e6}h40m-20 -20v40`;
  }

  #apply() {
    const { x, y, scale } = this.view;
    const { clientWidth, clientHeight } = this.box;
    // Outlines are in millionths of a radian: SVG keeps too few digits of smaller numbers.
    this.world.setAttribute("transform", `translate(${clientWidth / 2 - x * scale} ${clientHeight / 2 - y * scale}) scale(${scale / 1e6})`);
    this.moved();
  }

  #zoom(factor) {
    this.view.scale = Math.min(CLOSEST, Math.max(50, this.view.scale * factor));
    this.#apply();
  }

  #pan(dx, dy) {
    this.view.x -= dx / this.view.scale;
    this.view.y -= dy / this.view.scale;
    this.#apply();
  }

  #listen() {
    const { root } = this;
    root.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.#zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
    }, { passive: false });
    root.addEventListener("pointerdown", (event) => root.setPointerCapture(event.pointerId));
    root.addEventListener("pointermove", (event) => {
      if (event.buttons) this.#pan(event.movementX, event.movementY);
    });
    const keys = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    root.addEventListener("keydown", (event) => {
      if (event.key in keys) this.#pan(...keys[event.key]);
      else if (event.key === "+" || event.key === "=") this.#zoom(STEP);
      else if (event.key === "-") this.#zoom(1 / STEP);
      else return;
      event.preventDefault();
    });
  }
}
