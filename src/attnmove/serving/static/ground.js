// The ground under the path: MapLibre where the browser can, otherwise a plain drawing with the same few methods:
// project([lon, lat]), fit([west, south, east, north]), highlight({name: role}), and `moved` called after each move.

import { PlainGround } from "./plain.js";

const ROLES = ["visited", "alternative", "answer"];
const plainAsked = () => new URLSearchParams(location.search).get("map") === "plain";

export function groundOf(box, shapes, { tiles, moved }) {
  if (globalThis.maplibregl && !plainAsked() && hasWebGL()) {
    try {
      return new Ground(box, shapes, { tiles, moved });
    } catch (error) {
      console.warn("MapLibre could not start; drawing without it.", error);
      box.replaceChildren();
    }
  }
  return new PlainGround(box, shapes, { moved });
}

function hasWebGL() {
  const context = document.createElement("canvas").getContext("webgl2");
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return context !== null;
}

export function paint() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return {
    water: read("--map"), cell: read("--cell"), line: read("--cell-line"),
    visited: read("--visited"), alternative: read("--alternative"), answer: read("--answer"),
  };
}

class Ground {
  constructor(box, shapes, { tiles, moved }) {
    this.ids = new Map(shapes.features.map((feature) => [feature.properties.name, feature.id]));
    this.lit = [];
    this.ready = false;
    this.map = new maplibregl.Map({
      container: box,
      style: styleOf(shapes, tiles),
      attributionControl: tiles ? { compact: true } : false,
      dragRotate: false, touchPitch: false, pitchWithRotate: false, renderWorldCopies: false, maxPitch: 0,
      fadeDuration: 0, maxZoom: 18,
    });
    this.map.touchZoomRotate.disableRotation();
    this.map.addControl(new maplibregl.NavigationControl({ showCompass: false }), "top-right");
    if (tiles === null) this.map.addControl(new maplibregl.ScaleControl({ maxWidth: 90 }), "bottom-right");
    this.map.on("move", moved);
    this.map.on("resize", moved);
    this.map.on("load", () => {
      this.ready = true;
      this.highlight(this.wanted ?? {});
    });
    this.map.getCanvas().setAttribute("aria-label", "Map; arrow keys move it, plus and minus zoom");
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#recolour());
  }

  project(place) {
    return this.map.project(place);
  }

  fit([west, south, east, north]) {
    const { clientWidth, clientHeight } = this.map.getContainer();
    const padding = { top: 56, bottom: Math.min(clientWidth < 600 ? 104 : 84, clientHeight / 3), left: Math.min(56, clientWidth / 8), right: Math.min(64, clientWidth / 7) };
    const animate = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.map.fitBounds([[west, south], [east, north]], { padding, maxZoom: 14, animate: animate && this.ready, duration: 500 });
  }

  highlight(roles) {
    this.wanted = roles;
    if (!this.ready) return;
    for (const id of this.lit) this.map.removeFeatureState({ source: "locations", id });
    this.lit = [];
    for (const [name, role] of Object.entries(roles)) {
      const id = this.ids.get(name);
      if (id === undefined) continue;
      this.map.setFeatureState({ source: "locations", id }, { role });
      this.lit.push(id);
    }
  }

  #recolour() {
    if (!this.ready) return;
    const colours = paint();
    if (this.map.getLayer("water")) this.map.setPaintProperty("water", "background-color", colours.water);
    this.map.setPaintProperty("cells", "fill-color", fill(colours));
    this.map.setPaintProperty("lines", "line-color", colours.line);
    this.map.setPaintProperty("spots", "circle-color", fill(colours));
  }
}

const role = ["coalesce", ["feature-state", "role"], "none"];
const fill = (colours) => ["match", role, ...ROLES.flatMap((name) => [name, colours[name]]), colours.cell];

function styleOf(shapes, tiles) {
  const colours = paint();
  const below = tiles
    ? [{ id: "tiles", type: "raster", source: "tiles", paint: { "raster-saturation": -0.6, "raster-opacity": 0.75 } }]
    : [];
  const seen = tiles ? ["match", role, "none", 0.08, 0.6] : 1;
  return {
    version: 8,
    sources: {
      locations: { type: "geojson", data: shapes },
      ...(tiles ? { tiles: { type: "raster", tiles: [tiles], tileSize: 256, attribution: `tiles: ${new URL(tiles).host}` } } : {}),
    },
    layers: [
      { id: "water", type: "background", paint: { "background-color": colours.water } },
      ...below,
      { id: "cells", type: "fill", source: "locations", paint: { "fill-color": fill(colours), "fill-opacity": seen } },
      { id: "lines", type: "line", source: "locations", paint: { "line-color": colours.line, "line-width": 0.7 } },
      {
        id: "spots", type: "circle", source: "locations", filter: ["==", ["geometry-type"], "Point"],
        paint: { "circle-color": fill(colours), "circle-radius": 4, "circle-opacity": seen },
      },
    ],
  };
}
