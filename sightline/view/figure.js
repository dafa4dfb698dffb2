// The one renderer: an ES module without a build step. Saved pages, reports, notebooks and the served page use it as it is.
//
//   mount(element, picture, options)   draws the plain dictionary of an attribution or an alignment into an element
//
// A picture has `source`, `target` and perhaps `prefix` (each {tokens, words, word_ids}), `axes`, and `scores` (nested
// lists), `packed` scores, or only word `links` ([source, target, confidence]). It may have `gold` ({sure, possible}),
// `probabilities` and `ranks` of its outputs. Texts come from anywhere: they are only ever set as text content.

const SVG = "http://www.w3.org/2000/svg";
const LINKS_PER_ROW = 2;
const LEAST_SHARE = 0.08; // of a row's total, for a link to be drawn
const LEAST_SHARE_FOCUSED = 0.01; // a token that is looked at shows weaker links too
const LISTED = 6; // scores that are named for a token
const LONG_SIDE = 90; // tokens; longer sides scroll, and their links are drawn only for what is looked at
const DRIVEN_FOR = 150; // milliseconds
const SINGLE_DIGITS = 9; // a single-precision number is the same again when read from these
const READ_ALOUD = 60; // outputs listed for screen readers
const THUMBNAIL_SCORES = 4_000_000;
const SMALLEST_CELL = 14;
const LARGEST_CELL = 26;
const LABEL_WIDTH = 150;
const HEADER_ANGLE = (55 * Math.PI) / 180;
const SCALES = {
  none: "as the method scores",
  sum: "share of the row",
  clamp: "share of the positive scores",
  softmax: "softmax of the row",
};

// Text

const INVISIBLE = /^[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Cf}\p{Zs}\p{Noncharacter_Code_Point}]$/u;

function escaped(character) {
  if (character === " " || character === "\u200c" || character === "\u200d" || !INVISIBLE.test(character)) return character;
  const named = { "\t": "\\t", "\n": "\\n", "\r": "\\r" }[character];
  if (named) return named;
  const code = character.codePointAt(0);
  const [letter, width] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(width, "0")}`;
}

/** Return the text to show for a token: every character of it can be seen, and none of it acts. */
export function visible(token) {
  if (!token) return "∅";
  const inner = token.replace(/^ +| +$/g, "");
  const before = token.length - token.replace(/^ +/, "").length;
  const after = token.length - before - inner.length;
  const joined = inner.replace(/[\u200c\u200d]+$/, "");
  // At the end a joiner has nothing of the token to join, and would reach for what is drawn after it.
  const open = [...inner.slice(joined.length)].map((joiner) => (joiner === "\u200c" ? "\\u200c" : "\\u200d")).join("");
  const shown = [...joined].map(escaped).join("") + open;
  const accent = /^[\p{M}\u200c\u200d]/u.test(joined) ? "◌" : ""; // else it would land on what is drawn before it
  return "␣".repeat(before) + accent + shown + "␣".repeat(after);
}

/** Write a score with the digits that count beside the largest score of its row. */
function written(score, top) {
  const decimals = top > 0 ? Math.min(Math.max(3 - Math.ceil(Math.log10(top)), 0), 12) : 3;
  return score.toFixed(decimals).replace("-", "−");
}

const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;

// Elements

/** Make an element; attributes that are false or null are left out, children are elements or texts. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function draw(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Hand a file to the reader. */
export function download(name, content, type) {
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Reading

const NO_SIDE = { tokens: [], words: [], word_ids: [] };

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

async function unpack({ limit, tops, values }, columns) {
  const [top, whole] = await Promise.all([inflate(tops), inflate(values)]);
  const highest = new Float32Array(top);
  const numbers = limit > 127 ? new Int16Array(whole) : new Int8Array(whole);
  return Float32Array.from(numbers, (value, index) => (value * highest[Math.floor(index / columns)]) / limit);
}

function sizesOf(scores, depth) {
  const sizes = [];
  for (let level = scores; sizes.length < depth; level = level?.[0]) sizes.push(level?.length ?? 0);
  return sizes;
}

/** Read a picture: its sides, its axes with their sizes, and all scores in one array. */
async function read(picture) {
  const [source, target] = [picture.source, picture.target];
  const prefix = picture.prefix ?? NO_SIDE;
  const columns = source.tokens.length + prefix.tokens.length;
  const rows = target.tokens.length;
  let axes = (picture.axes ?? []).map((axis) => (typeof axis === "string" ? { name: axis, size: 0, chosen: null } : axis));
  let scores;
  if (picture.packed) {
    scores = await unpack(picture.packed, columns);
  } else if (picture.scores) {
    const sizes = sizesOf(picture.scores, axes.length);
    axes = axes.map((axis, place) => ({ ...axis, size: sizes[place] }));
    scores = Float32Array.from(picture.scores.flat(axes.length + 1));
  } else {
    scores = new Float32Array(rows * columns);
    for (const [from, to, confidence] of picture.links ?? []) scores[to * columns + from] = confidence ?? 1;
  }
  return { picture, source, target, prefix, axes, rows, columns, scores };
}

/** List the positions of each word in order of appearance; a special position stands alone. */
function groups(side, first = 0) {
  const found = new Map();
  side.word_ids.forEach((word, position) => {
    const key = word === null ? `special ${position}` : word;
    if (!found.has(key)) found.set(key, { word, positions: [] });
    found.get(key).positions.push(first + position);
  });
  return [...found.values()].map(({ word, positions }) => ({
    word, positions, special: word === null,
    text: visible(word === null ? side.tokens[positions[0] - first] : side.words[word]),
  }));
}

const pieces = (side, first = 0) => side.word_ids.map((word, position) => ({
  word, positions: [first + position], special: word === null, text: visible(side.tokens[position]),
}));

/** Average the chosen positions of the leading axes into one matrix. */
function chosenMatrix(data, at) {
  let indices = [0];
  data.axes.forEach((axis, place) => {
    const positions = at[place] === null ? [...Array(axis.size).keys()] : [at[place]];
    indices = indices.flatMap((index) => positions.map((position) => index * axis.size + position));
  });
  const size = data.rows * data.columns;
  const matrix = new Float64Array(size);
  for (const index of indices) {
    const start = index * size;
    for (let cell = 0; cell < size; cell++) matrix[cell] += data.scores[start + cell] / indices.length;
  }
  return matrix;
}

function normalize(scores, rows, columns, by) {
  if (by === "none") return;
  for (let row = 0; row < rows; row++) {
    const line = scores.subarray(row * columns, (row + 1) * columns);
    if (by === "clamp") line.forEach((value, column) => { line[column] = Math.max(value, 0); });
    if (by === "softmax") {
      const top = line.reduce((a, b) => Math.max(a, b), -Infinity);
      line.forEach((value, column) => { line[column] = Math.exp(value - top); });
    }
    const total = line.reduce((sum, value) => sum + Math.abs(value), 0);
    if (total > 0) line.forEach((value, column) => { line[column] = value / total; });
  }
}

/** Return what is drawn for some choices: labels of both sides, scores, and two scales derived from them. */
function derive(data, choices) {
  const label = choices.grain === "words" ? groups : pieces;
  const kept = (labels) => (choices.special ? labels : labels.filter(({ special }) => !special));
  const rowLabels = kept(label(data.target));
  const sourceLabels = kept(label(data.source));
  const prefixLabels = kept(label(data.prefix, data.source.tokens.length)).map((one) => ({ ...one, prefix: true }));
  const columnLabels = [...sourceLabels, ...prefixLabels];
  const matrix = chosenMatrix(data, choices.at);
  const [rows, columns] = [rowLabels.length, columnLabels.length];
  const scores = new Float64Array(rows * columns);
  rowLabels.forEach((to, row) => columnLabels.forEach((from, column) => {
    let sum = 0;
    for (const y of to.positions) for (const x of from.positions) sum += matrix[y * data.columns + x];
    scores[row * columns + column] = sum / to.positions.length;
  }));
  normalize(scores, rows, columns, choices.scale);
  const strengths = new Float64Array(scores.length);
  const shares = new Float64Array(scores.length);
  const tops = [];
  for (let row = 0; row < rows; row++) {
    const line = scores.subarray(row * columns, (row + 1) * columns);
    const top = line.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const total = line.reduce((sum, value) => sum + Math.abs(value), 0);
    tops.push(top);
    line.forEach((value, column) => {
      strengths[row * columns + column] = top > 0 ? value / top : 0;
      shares[row * columns + column] = total > 0 ? value / total : 0;
    });
  }
  const marks = markLinks(data.picture, rowLabels, columnLabels);
  return {
    rowLabels, columnLabels, rows, columns, scores, strengths, shares, tops, marks,
    boundary: sourceLabels.length,
    signed: scores.some((value) => value < 0),
    largestShare: shares.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1,
    probability: rowLabels.map(({ positions }) => joint(data.picture.probabilities, positions)),
    rank: rowLabels.map(({ positions }) => data.picture.ranks?.[positions[0]] ?? null),
  };
}

/** The probability of a word is that of all its pieces. */
function joint(probabilities, positions) {
  return probabilities ? positions.reduce((product, position) => product * probabilities[position], 1) : null;
}

/** Compare links with gold links: a mark for each cell that has either. */
function markLinks({ links, gold }, rowLabels, columnLabels) {
  const marks = new Map();
  if (!gold) return marks;
  const at = (labels, word) => labels.findIndex((one) => one.word === word && !one.prefix);
  const put = (from, to, kind) => {
    const [row, column] = [at(rowLabels, to), at(columnLabels, from)];
    if (row >= 0 && column >= 0) marks.set(row * columnLabels.length + column, kind);
  };
  const has = (list, from, to) => (list ?? []).some(([a, b]) => a === from && b === to);
  for (const [from, to] of gold.possible ?? []) put(from, to, "possible");
  for (const [from, to] of gold.sure ?? []) put(from, to, links && !has(links, from, to) ? "missed" : "sure");
  for (const [from, to] of links ?? []) {
    if (!has(gold.sure, from, to)) put(from, to, has(gold.possible, from, to) ? "allowed" : "wrong");
  }
  return marks;
}

const rowCells = (view, row) => Array.from({ length: view.columns }, (_, column) => row * view.columns + column);
const columnCells = (view, column) => Array.from({ length: view.rows }, (_, row) => row * view.columns + column);

function strongest(values, cells, count) {
  return [...cells].sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]) || a - b).slice(0, count);
}

// The figure

let figures = 0;

/**
 * Draw a picture into an element and return how to go on with it: `update(picture)`, `state()`, `clear()`, `destroy()`.
 *
 * Options: `state` (choices to start with), `compact` (links alone), `heading`, `saves` ([{name, save}], further formats),
 * `onPin(focus)` and `onChange(state)`, `onLink(source, target)` (words that the reader links or unlinks, by dragging
 * one to the other or by pinning both), `layout: "flow"` (prompt and continuation in one text), `animate`.
 */
export function mount(element, picture, options = {}) {
  const figure = new Figure(element, options);
  const ready = figure.update(picture);
  return {
    ready,
    update: (next) => figure.update(next),
    state: () => figure.state(),
    clear: () => figure.clear(),
    destroy: () => figure.destroy(),
    figure,
  };
}

class Figure {
  constructor(root, options) {
    this.root = root;
    this.options = options;
    this.id = `sightline-figure-${++figures}`;
    this.pins = [];
    this.hovered = null;
    this.asked = 0;
    this.driven = new WeakMap();
    this.stopped = new AbortController();
    const listen = (target, kinds, handler) => {
      for (const kind of kinds.split(" ")) target.addEventListener(kind, handler, { signal: this.stopped.signal });
    };
    listen(root, "pointerover", (event) => { if (event.pointerType !== "touch") this.hover(this.tokenAt(event)); });
    listen(root, "pointerleave", () => this.hover(null));
    listen(root, "focusin", (event) => { if (event.target.matches(".token")) this.hover(this.tokenAt(event)); });
    listen(root, "focusout", () => this.hover(null));
    listen(root, "click", (event) => this.pinFrom(event, this.tokenAt(event)));
    listen(root, "keydown", (event) => this.press(event));
    if (options.onLink) {
      listen(root, "pointerdown", (event) => this.startLink(event));
      listen(root, "pointermove", (event) => this.dragLink(event));
      listen(root, "pointerup pointercancel", (event) => this.endLink(event));
      root.classList.add("linkable");
    }
    listen(window, "resize", () => this.relayout());
    listen(matchMedia("(prefers-color-scheme: dark)"), "change", () => this.relayout());
    listen(matchMedia("print"), "change", (event) => this.print(event.matches));
    this.observer = new ResizeObserver(() => this.relayout());
    this.observer.observe(root);
  }

  destroy() {
    this.stopped.abort();
    this.observer.disconnect();
    this.root.replaceChildren();
    this.root.classList.remove("live");
  }

  async update(picture) {
    const asked = ++this.asked;
    const data = await read(picture);
    if (asked !== this.asked) return; // a later picture has come meanwhile
    const sameTokens = this.data && ["source", "target"].every(
      (side) => JSON.stringify(this.data[side]) === JSON.stringify(data[side]));
    if (!sameTokens) { this.pins = []; this.hovered = null; }
    this.data = data;
    this.choices = this.initialChoices(this.choices ?? this.options.state ?? {});
    this.show();
    this.options.onDraw?.();
  }

  initialChoices(wished) {
    const { axes, source, target } = this.data;
    const everyWordIsWhole = [source, target].every((side) => groups(side).every(({ positions }) => positions.length === 1));
    this.hasPieces = !everyWordIsWhole;
    this.hasSpecial = [source, target].some((side) => side.word_ids.includes(null));
    const onlySpecial = [source, target].some((side) => side.word_ids.length && side.word_ids.every((word) => word === null));
    return {
      grain: this.hasPieces ? wished.grain ?? "words" : "words",
      special: onlySpecial || (wished.special ?? false),
      scale: wished.scale in SCALES ? wished.scale : "none",
      at: axes.map((axis, place) => {
        const position = wished.at?.[place] !== undefined ? wished.at[place] : axis.chosen;
        return position === null || position < axis.size ? position : null;
      }),
    };
  }

  state() {
    return { ...this.choices, pins: this.pins };
  }

  choose(changes) {
    this.choices = { ...this.choices, ...changes };
    if ("grain" in changes || "special" in changes) this.pins = [];
    this.show();
    this.options.onChange?.(this.state());
  }

  // Building

  show() {
    this.view = derive(this.data, this.choices);
    const { picture } = this.data;
    this.oneOutput = this.view.rows === 1 && !picture.links && this.options.layout !== "flow";
    this.long = Math.max(this.view.rows, this.view.columns) > LONG_SIDE;
    const opened = new Set([...this.root.querySelectorAll("details[open]")].map((details) => details.className));
    const inside = document.activeElement && this.root.contains(document.activeElement) ? document.activeElement.dataset.control : null;
    this.readout = make("div", { class: "readout", id: `${this.id}-readout`, role: "status" });
    const parts = [this.caption(), ...(picture.notes ?? []).map((note) => make("p", { class: "note" }, note))];
    this.matrix = this.options.compact || this.view.rows * this.view.columns === 0 ? null : new Matrix(this);
    parts.push(make("div", { class: `stage${this.long ? " long" : ""}` },
      make("div", { class: "reading" }, this.linkView(), this.readout),
      this.matrix ? make("div", { class: "card matrix-card" }, this.matrix.root, this.legend()) : null));
    if (!this.options.compact) parts.push(this.thumbnails());
    parts.push(this.aloud(), make("div", { class: "for-print" }));
    this.root.classList.add("sightline", "live");
    this.root.classList.toggle("compact", Boolean(this.options.compact));
    this.root.replaceChildren(...parts.filter(Boolean));
    for (const details of this.root.querySelectorAll("details")) details.open ||= opened.has(details.className);
    if (inside) this.root.querySelector(`[data-control="${inside}"]`)?.focus();
    this.relayout();
    this.paint();
  }

  caption() {
    const { picture } = this.data;
    const usual = ([name, value]) => value === null || JSON.stringify(value) === JSON.stringify(picture.defaults?.[name]);
    const settings = Object.entries(picture.settings ?? {}).filter((one) => !usual(one)).map(([name, value]) => settingInWords(name, value));
    if (this.options.compact && !(this.options.heading ?? picture.heading)) return null;
    const about = make("div", { class: "what" });
    if (this.options.heading ?? picture.heading) about.append(make("h2", {}, make("bdi", {}, visible(this.options.heading ?? picture.heading))));
    const method = visible(picture.method || (picture.links ? "alignment" : "scores"));
    if (!this.options.compact) {
      about.append(make("strong", { class: "method" }, method));
      if (settings.length) about.append(make("span", { class: "settings" }, settings.join(" · ")));
      const selection = this.selection();
      if (selection) about.append(make("span", { class: "selection" }, selection));
      about.append(make("span", { class: "tools" }, this.viewOptions(), this.saveMenu()));
    }
    return make("figcaption", {}, about);
  }

  selection() {
    const { axes } = this.data;
    const { at } = this.choices;
    const chosen = axes.flatMap((axis, place) => (at[place] === null ? [] : [`${visible(axis.name)} ${at[place]}`]));
    const averaged = axes.filter((axis, place) => at[place] === null && axis.size > 1).map((axis) => visible(axis.name));
    return [...chosen, ...(averaged.length ? [`mean over ${averaged.map((axis) => `${axis}s`).join(" and ")}`] : [])].join(", ");
  }

  viewOptions() {
    const select = (control, label, entries, chosen, change) => make("label", {}, make("span", {}, label),
      make("select", { "data-control": control, onchange: (event) => change(event.target.value) },
        ...entries.map(([value, text]) => make("option", { value, selected: value === chosen }, text))));
    const rows = [];
    if (this.hasPieces) {
      rows.push(select("grain", "Show", [["words", "words"], ["pieces", "pieces"]], this.choices.grain, (grain) => this.choose({ grain })));
    }
    if (this.hasSpecial) {
      rows.push(make("label", {}, make("span", {}, "Special tokens"), make("input", {
        type: "checkbox", "data-control": "special", checked: this.choices.special,
        onchange: (event) => this.choose({ special: event.target.checked }),
      })));
    }
    if (!this.data.picture.links) {
      rows.push(select("scale", "Scale", Object.entries(SCALES), this.choices.scale, (scale) => this.choose({ scale })));
    }
    this.data.axes.forEach((axis, place) => {
      const positions = [["", "mean"], ...Array.from({ length: axis.size }, (_, position) => [String(position), String(position)])];
      const chosen = this.choices.at[place] === null ? "" : String(this.choices.at[place]);
      rows.push(select(`axis-${place}`, visible(axis.name), positions, chosen, (value) => this.chooseAt(place, value === "" ? null : Number(value))));
    });
    if (!rows.length) return null;
    return make("details", { class: "options menu" }, make("summary", {}, "View"), make("div", { class: "panel" }, ...rows));
  }

  chooseAt(place, position) {
    this.choose({ at: this.choices.at.map((old, index) => (index === place ? position : old)) });
  }

  saveMenu() {
    const saves = [
      { name: "JSON", save: () => download("sightline.json", JSON.stringify(this.asDictionary()), "application/json") },
      { name: "CSV", save: () => download("sightline.csv", this.asCsv(), "text/csv") },
      { name: "SVG, matrix", save: () => download("matrix.svg", serialize(matrixSvg(this.view)), "image/svg+xml") },
      ...(this.oneOutput ? [] : [{ name: "SVG, links", save: () => download("links.svg", serialize(this.linksSvg()), "image/svg+xml") }]),
      { name: "PNG", save: async () => download("matrix.png", await png(matrixSvg(this.view)), "image/png") },
      ...(this.options.saves ?? []),
    ];
    return make("details", { class: "save menu" }, make("summary", {}, "Save"), make("div", { class: "panel" },
      ...saves.map(({ name, save }) => make("button", { type: "button", "data-save": name, onclick: () => save(this) }, name))));
  }

  /** Return the picture as `Attribution.to_dict()` gives it, whatever form it came in. */
  asDictionary() {
    const { picture, axes, rows, columns, scores } = this.data;
    const { packed, notes, heading, ...plain } = picture;
    const nested = [...axes.map(({ size }) => size), rows, columns].reverse().slice(0, -1).reduce(
      (list, size) => Array.from({ length: list.length / (size || 1) }, (_, index) => list.slice(index * size, (index + 1) * size)),
      Array.from(scores, (score) => Number(score.toPrecision(SINGLE_DIGITS))));
    return { ...plain, prefix: this.data.prefix, axes: axes.map(({ name }) => name), scores: rows ? nested : [] };
  }

  asCsv() {
    const { view } = this;
    const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const lines = ["target,target_token,column,column_token,side,score"];
    view.rowLabels.forEach((to, row) => view.columnLabels.forEach((from, column) => lines.push([
      row, quote(to.text), column, quote(from.text), from.prefix ? "prefix" : "source", view.scores[row * view.columns + column],
    ].join(","))));
    return `${lines.join("\n")}\n`;
  }

  linkView() {
    const { view } = this;
    const token = (side, label, position) => {
      const probability = side === "row" ? view.probability[position] : null;
      const button = make("button", {
        type: "button", class: `token${label.special ? " special" : ""}`, tabindex: position === 0 ? 0 : -1,
        [`data-${side}`]: position, "aria-pressed": "false",
      }, label.text);
      if (probability !== null) button.style.setProperty("--probability", probability.toFixed(3));
      if (probability !== null) button.classList.add("with-probability");
      return button;
    };
    const line = (kind, name, tokens) => make("div", { class: `line ${kind}`, role: "group", "aria-label": `${name}: arrow keys move, Enter pins` },
      make("p", { dir: "auto" }, ...tokens.flatMap((one) => [one, " "])));
    const columns = view.columnLabels.map((label, position) => token("column", label, position));
    const rows = view.rowLabels.map((label, position) => token("row", label, position));
    const [source, prefix] = [columns.slice(0, view.boundary), columns.slice(view.boundary)];
    this.curves = draw("svg", { class: "curves", "aria-hidden": "true" });
    let lines;
    if (this.options.layout === "flow") {
      lines = [line("flow", "Prompt and continuation", [...source, ...rows])];
    } else {
      lines = [line("source", "Source", source)];
      if (prefix.length) lines.push(line("prefix", "Target before each output", prefix));
      lines.push(line(this.oneOutput ? "target label" : "target", "Output", rows));
    }
    if (this.options.animate && rows.length) rows.at(-1).classList.add("arriving");
    this.links = make("div", { class: `links${this.oneOutput ? " one" : ""}` }, this.curves, ...lines);
    this.lines = lines;
    for (const one of lines) one.addEventListener("scroll", () => { this.drawCurves(); this.follow(one); }, { passive: true });
    return this.links;
  }

  legend() {
    const { marks, signed } = this.view;
    const counts = [...marks.values()].reduce((sum, kind) => ({ ...sum, [kind]: (sum[kind] ?? 0) + 1 }), {});
    const parts = [make("span", { class: `ramp${signed ? " signed" : ""}`, "aria-hidden": "true" }),
      make("span", {}, signed ? "against … for, relative to the strongest in its row" : "relative to the strongest in its row")];
    const gold = [["sure", "right"], ["allowed", "possible"], ["wrong", "wrong"], ["missed", "missed"]].filter(([kind]) => counts[kind]);
    for (const [kind, word] of gold) parts.push(make("span", { class: `mark ${kind}` }, `${counts[kind]} ${word}`));
    return make("p", { class: "legend" }, ...parts);
  }

  thumbnails() {
    const { axes, scores } = this.data;
    const shown = axes.filter(({ size }) => size > 1);
    if (!shown.length || shown.length > 2 || scores.length > THUMBNAIL_SCORES) return null;
    const places = shown.map((axis) => axes.indexOf(axis));
    const [rowAxis, columnAxis] = shown.length === 2 ? shown : [null, shown[0]];
    const at = (row, column) => axes.map((axis, place) => {
      if (place === places.at(-1)) return column;
      return rowAxis && place === places[0] ? row : this.choices.at[place];
    });
    this.root.classList.add("sightline"); // the colours are defined there
    const colours = coloursOf(this.root);
    const same = (one) => one.every((position, place) => position === this.choices.at[place]);
    const button = (row, column) => {
      const wanted = at(row, column);
      const name = shown.map((axis, index) => `${visible(axis.name)} ${[row, column].slice(-shown.length)[index] ?? "mean"}`).join(", ");
      const canvas = make("canvas", { width: 44, height: 44, "aria-hidden": "true" });
      paintThumbnail(canvas, derive(this.data, { ...this.choices, at: wanted }), colours);
      return make("button", {
        type: "button", class: "thumbnail", "aria-pressed": String(same(wanted)), "aria-label": name, title: name,
        "data-control": `thumbnail-${row}-${column}`, onclick: () => this.choose({ at: wanted }),
      }, canvas);
    };
    const positions = (axis) => [...Array(axis.size).keys(), null];
    const lines = (rowAxis ? positions(rowAxis) : [undefined]).map((row) => make("div", { class: "thumbnail-row" },
      make("span", { class: "name" }, rowAxis ? `${visible(rowAxis.name)} ${row ?? "mean"}` : visible(columnAxis.name)),
      ...positions(columnAxis).map((column) => button(row, column))));
    const title = `${shown.map(({ name }) => visible(name)).join(" × ")}: pick one`;
    return make("details", { class: "thumbnails" }, make("summary", {}, title), make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": title }, ...lines));
  }

  /** List the strongest inputs of each output for those who cannot see the picture. */
  aloud() {
    const { view } = this;
    const items = view.rowLabels.slice(0, READ_ALOUD).map((label, row) => make("li", {}, `${label.text}: ${
      strongest(view.scores, rowCells(view, row), 3).map((cell) => `${view.columnLabels[cell % view.columns].text} ${written(view.scores[cell], view.tops[row])}`).join(", ")}`));
    return make("div", { class: "visually-hidden" }, make("p", {}, "The strongest inputs of each output:"), make("ul", {}, ...items));
  }

  // Looking and pinning

  tokenAt(event) {
    const token = event.target.closest?.(".token");
    if (!token || !this.root.contains(token)) return null;
    const number = (text) => (text === undefined ? null : Number(text));
    return { row: number(token.dataset.row), column: number(token.dataset.column) };
  }

  hover(focus) {
    if (this.drag || this.dragged || JSON.stringify(focus) === JSON.stringify(this.hovered)) return;
    this.hovered = focus;
    if (!this.pins.length && this.view) this.paint();
  }

  startLink(event) {
    const token = event.target.closest?.(".token");
    if (!token || event.button > 0 || !event.isPrimary) return;
    this.drag = { token, pointer: event.pointerId, aimed: null, line: null };
  }

  dragLink(event) {
    const { drag } = this;
    if (drag?.pointer !== event.pointerId) return;
    const under = this.tokenUnder(event);
    if (!drag.line) {
      if (under === drag.token) return; // a finger that trembles still taps
      drag.token.setPointerCapture(drag.pointer); // the drag may leave this figure, and must end all the same
      drag.line = this.curves.appendChild(draw("path", { class: "dragging" }));
    }
    const frame = this.links.getBoundingClientRect();
    const start = drag.token.getBoundingClientRect();
    const from = [start.left + start.width / 2 - frame.left, start.top + start.height / 2 - frame.top];
    drag.line.setAttribute("d", `M${from.join(" ")}L${event.clientX - frame.left} ${event.clientY - frame.top}`);
    this.aim(under);
  }

  endLink(event) {
    const { drag } = this;
    if (drag?.pointer !== event.pointerId) return;
    this.aim(null);
    this.drag = null;
    if (!drag.line) return;
    drag.line.remove();
    this.dragged = true; // the click that follows is part of it
    setTimeout(() => { this.dragged = false; });
    const end = this.tokenUnder(event);
    if (event.type === "pointerup" && end) this.link(this.tokenAt({ target: drag.token }), this.tokenAt({ target: end }));
  }

  /** Mark the token that a drag would link: a finger hides much of it. */
  aim(token) {
    const { drag } = this;
    const fits = token && ("row" in token.dataset) !== ("row" in drag.token.dataset) ? token : null;
    if (fits === drag.aimed) return;
    drag.aimed?.classList.remove("aimed");
    fits?.classList.add("aimed");
    drag.aimed = fits;
  }

  tokenUnder({ clientX, clientY }) {
    const token = document.elementFromPoint(clientX, clientY)?.closest(".token");
    return token && this.root.contains(token) ? token : null;
  }

  /** Tell of two tokens of different sides that the reader links, or unlinks. */
  link(one, other) {
    const [row, column] = [one.row ?? other.row, one.column ?? other.column];
    if (row === null || column === null) return;
    this.options.onLink(this.view.columnLabels[column].word, this.view.rowLabels[row].word);
  }

  pinFrom(event, focus) {
    if (this.dragged) return;
    if (!focus) {
      const onPaper = event.target.closest(".links, .stage") && !event.target.closest(".matrix, button, a, input, select, summary");
      if (onPaper && this.pins.length) this.clear();
      return;
    }
    this.pin(focus, event.shiftKey);
  }

  /** Pin what was clicked; a second time lets it go; with Shift it is compared with what was pinned before. */
  pin(focus, compare = false) {
    const same = (one) => one.row === focus.row && one.column === focus.column;
    if (this.pins.some(same)) this.pins = this.pins.filter((one) => !same(one));
    else this.pins = compare && this.pins.length ? [this.pins[0], focus] : [focus];
    this.paint();
    this.reveal(focus);
    this.options.onPin?.(this.pins.at(-1) ?? null, this);
    this.options.onChange?.(this.state());
  }

  clear() {
    this.pins = [];
    this.hovered = null;
    this.paint();
    this.options.onPin?.(null, this);
    this.options.onChange?.(this.state());
  }

  press(event) {
    if (event.key === "Escape" && this.pins.length) { this.clear(); event.stopPropagation(); return; }
    const token = event.target.closest?.(".token");
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!token) return;
    const side = [...token.closest(".line").querySelectorAll(".token")];
    let next = null;
    if (step !== undefined) {
      const mirrored = getComputedStyle(token.parentElement).direction === "rtl" && Math.abs(step) === 1 ? -step : step;
      next = side[Math.min(Math.max(side.indexOf(token) + mirrored, 0), side.length - 1)];
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const line = this.lines[this.lines.indexOf(token.closest(".line")) + (event.key === "ArrowDown" ? 1 : -1)];
      next = line?.querySelector(".token[tabindex='0']") ?? null;
    }
    if (!next) return;
    event.preventDefault();
    if (next.closest(".line") === token.closest(".line")) { token.tabIndex = -1; next.tabIndex = 0; }
    next.focus();
    this.reveal(this.tokenAt({ target: next }));
  }

  /** Bring what was pinned into sight in both views. */
  reveal(focus) {
    if (!focus) return;
    this.matrix?.reveal(focus);
    if (!this.long) return;
    for (const side of ["row", "column"]) {
      if (focus[side] === null) continue;
      const best = side === "row" && focus.column === null ? strongest(this.view.scores, rowCells(this.view, focus.row), 1)[0] % this.view.columns
        : side === "column" && focus.row === null ? Math.floor(strongest(this.view.scores, columnCells(this.view, focus.column), 1)[0] / this.view.columns) : null;
      this.scrollLineTo(side, focus[side]);
      if (best !== null) this.scrollLineTo(side === "row" ? "column" : "row", best);
    }
  }

  scrollLineTo(side, position) {
    const token = this.links.querySelector(`.token[data-${side}="${position}"]`);
    const line = token?.closest(".line");
    if (!line || line.scrollHeight <= line.clientHeight) return;
    const [inner, outer] = [token.getBoundingClientRect(), line.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) line.scrollTop += inner.top - outer.top - outer.height / 3;
  }

  /** Let the matrix follow a line of text that is scrolled. */
  follow(line) {
    if (!this.matrix || line.scrollHeight <= line.clientHeight || this.isDriven(line)) return;
    this.drive(this.matrix.root);
    const fraction = line.scrollTop / (line.scrollHeight - line.clientHeight);
    this.matrix.scrollToFraction(line.classList.contains("target") ? "row" : "column", fraction);
  }

  /** Let the lines of text follow the matrix. */
  followMatrix(fractions) {
    if (this.isDriven(this.matrix.root)) return;
    for (const line of this.lines) {
      if (line.scrollHeight <= line.clientHeight) continue;
      this.drive(line);
      const fraction = line.classList.contains("target") ? fractions.row : fractions.column;
      line.scrollTop = fraction * (line.scrollHeight - line.clientHeight);
    }
  }

  /** What was scrolled by the other view must not scroll that one in turn; its event comes a little later. */
  drive(element) {
    this.driven.set(element, performance.now() + DRIVEN_FOR);
  }

  isDriven(element) {
    return (this.driven.get(element) ?? 0) > performance.now();
  }

  focuses() {
    return this.pins.length ? this.pins : this.hovered ? [this.hovered] : [];
  }

  // Painting

  relayout() {
    if (!this.view || !this.links) return;
    this.matrix?.resize();
    this.drawCurves();
  }

  paint() {
    const focuses = this.focuses();
    for (const token of this.links.querySelectorAll(".token")) this.tint(token, focuses);
    const [first, second] = this.pins;
    const canLink = this.options.onLink && second && (first.row === null) !== (second.row === null);
    this.readout.replaceChildren(...(focuses.length ? focuses.map((focus, index) => this.describe(focus, index)) : [this.hint()]),
      ...(canLink ? [make("button", { type: "button", class: "link-them", onclick: () => this.link(first, second) }, "Link or unlink these two")] : []));
    this.root.classList.toggle("focused", focuses.length > 0);
    this.drawCurves();
    this.matrix?.paint();
  }

  tint(token, focuses) {
    const { view } = this;
    const [row, column] = [token.dataset.row, token.dataset.column].map((text) => (text === undefined ? null : Number(text)));
    let pressed = false;
    focuses.slice(0, 2).forEach((focus, index) => {
      const chosen = (row !== null && row === focus.row) || (column !== null && column === focus.column);
      pressed ||= chosen;
      const strength = this.strengthFor(focus, row, column);
      token.style.setProperty(index ? "--second" : "--strength", Math.abs(strength).toFixed(3));
      if (!index) token.classList.toggle("negative", strength < 0);
    });
    if (!focuses.length) {
      const strength = this.oneOutput && column !== null ? view.strengths[column] : 0;
      token.style.setProperty("--strength", Math.abs(strength).toFixed(3));
      token.classList.toggle("negative", strength < 0);
    }
    if (focuses.length < 2) token.style.removeProperty("--second");
    token.classList.toggle("chosen", pressed);
    token.setAttribute("aria-pressed", String(pressed && this.pins.length > 0));
  }

  /** How strongly a token is marked while another is looked at. */
  strengthFor(focus, row, column) {
    const { view } = this;
    if (focus.row !== null && focus.column !== null) return 0;
    if (focus.row !== null && column !== null) return view.strengths[focus.row * view.columns + column];
    if (focus.column !== null && row !== null) return view.strengths[row * view.columns + focus.column];
    if (focus.row !== null && row !== null && this.options.layout === "flow") { // what was written before, as input
      const before = view.boundary + row;
      return row < focus.row && before < view.columns ? view.strengths[focus.row * view.columns + before] : 0;
    }
    return 0;
  }

  hint() {
    if (this.options.compact) return "";
    const touch = matchMedia("(hover: none)").matches;
    const text = touch ? "Tap a word to see what counted for it." : "Point at a word to see what counted for it; click to keep it, Shift-click to compare.";
    return make("span", { class: "hint" }, text);
  }

  describe(focus, index) {
    const { view } = this;
    const label = (labels, position) => make("bdi", {}, labels[position].text);
    const line = make("p", { class: `answer${index ? " second" : ""}` });
    if (focus.row !== null && focus.column !== null) {
      const cell = focus.row * view.columns + focus.column;
      const mark = { sure: "in the gold alignment", possible: "possible in the gold alignment", allowed: "possible in the gold alignment", wrong: "not in the gold alignment", missed: "in the gold alignment, but not linked" }[view.marks.get(cell)];
      line.append(make("strong", {}, label(view.rowLabels, focus.row)), " ← ", label(view.columnLabels, focus.column), " ",
        make("span", { class: "score" }, written(view.scores[cell], view.tops[focus.row])),
        make("span", { class: "hint" }, `${percent(Math.abs(view.shares[cell]))} of the row${mark ? `, ${mark}` : ""}`));
      return line;
    }
    const byRow = focus.row !== null;
    const cells = byRow ? rowCells(view, focus.row) : columnCells(view, focus.column);
    const listed = strongest(view.scores, cells, LISTED).filter((cell) => view.scores[cell] !== 0);
    line.append(make("strong", {}, byRow ? label(view.rowLabels, focus.row) : label(view.columnLabels, focus.column)), byRow ? " ← " : " → ");
    for (const cell of listed) {
      const row = Math.floor(cell / view.columns);
      const bar = make("span", { class: `bar${view.scores[cell] < 0 ? " negative" : ""}`, "aria-hidden": "true" });
      bar.style.setProperty("--strength", Math.abs(view.strengths[cell]).toFixed(3));
      line.append(make("span", { class: "input" }, byRow ? label(view.columnLabels, cell % view.columns) : label(view.rowLabels, row), " ",
        make("span", { class: "score" }, written(view.scores[cell], view.tops[row])), bar));
    }
    if (!listed.length) line.append(make("span", { class: "hint" }, "nothing"));
    if (byRow && view.probability[focus.row] !== null) {
      const rank = view.rank[focus.row];
      const choice = rank === null ? "" : rank === 1 ? ", the model's first choice" : `, the model's choice number ${rank}`;
      line.append(make("span", { class: "hint probability" }, `probability ${percent(view.probability[focus.row])}${choice}`));
    }
    return line;
  }

  shownLinks() {
    const { view } = this;
    const { picture } = this.data;
    const focuses = this.focuses();
    if (focuses.length) {
      return focuses.flatMap((focus, index) => {
        const cells = focus.row !== null && focus.column !== null ? [focus.row * view.columns + focus.column]
          : focus.row !== null ? rowCells(view, focus.row) : columnCells(view, focus.column);
        const isShown = (cell) => Math.abs(view.shares[cell]) >= LEAST_SHARE_FOCUSED || view.marks.get(cell) === "missed";
        return cells.filter(isShown).map((cell) => ({ cell, index, focused: true }));
      });
    }
    if (this.long) return [];
    const isDrawn = (cell) => view.scores[cell] > 0 || view.marks.get(cell) === "missed";
    if (picture.links) return [...view.scores.keys()].filter(isDrawn).map((cell) => ({ cell, index: 0 }));
    return [...Array(view.rows).keys()]
      .flatMap((row) => strongest(view.shares, rowCells(view, row), LINKS_PER_ROW))
      .filter((cell) => Math.abs(view.shares[cell]) >= LEAST_SHARE)
      .map((cell) => ({ cell, index: 0 }));
  }

  /** Place every token of the link view relative to it; null for those scrolled out of sight. */
  places() {
    const frame = this.links.getBoundingClientRect();
    const place = (token) => {
      const box = token.getBoundingClientRect();
      const line = token.closest(".line").getBoundingClientRect();
      if (box.bottom < line.top - 2 || box.top > line.bottom + 2) return null;
      return { x: box.left + box.width / 2 - frame.left, top: box.top - frame.top, bottom: box.bottom - frame.top, width: box.width, text: token.textContent };
    };
    const of = (side) => [...this.links.querySelectorAll(`.token[data-${side}]`)].map(place);
    return { columns: of("column"), rows: of("row"), width: frame.width, height: frame.height };
  }

  curvePaths(places) {
    const { view } = this;
    return this.shownLinks().flatMap(({ cell, index, focused }) => {
      const [from, to] = [places.columns[cell % view.columns], places.rows[Math.floor(cell / view.columns)]];
      if (!from || !to) return [];
      const down = to.top >= from.bottom - 2;
      const [y1, y2] = down ? [from.bottom, to.top] : [from.top, to.bottom];
      const bend = down ? (y2 - y1) * 0.55 : -18;
      const kind = view.marks.get(cell);
      const opacity = kind === "missed" ? 1 : Math.min(1, (Math.abs(view.shares[cell]) / view.largestShare) * (focused ? 1.2 : 0.75) + 0.06);
      const colour = view.shares[cell] < 0 ? "negative" : index ? "second" : "positive";
      return [draw("path", {
        class: `${colour}${kind === "wrong" || kind === "missed" ? ` ${kind}` : ""}`, "stroke-opacity": opacity.toFixed(3), "stroke-width": focused ? 2.4 : 1.8,
        d: `M${from.x.toFixed(1)} ${y1.toFixed(1)}C${from.x.toFixed(1)} ${(y1 + bend).toFixed(1)} ${to.x.toFixed(1)} ${(y2 - bend).toFixed(1)} ${to.x.toFixed(1)} ${y2.toFixed(1)}`,
      })];
    });
  }

  drawCurves() {
    if (!this.links?.isConnected || this.oneOutput || this.options.layout === "flow") return;
    const places = this.places();
    this.curves.setAttribute("viewBox", `0 0 ${Math.max(places.width, 1)} ${Math.max(places.height, 1)}`);
    this.curves.replaceChildren(...this.curvePaths(places), ...(this.drag?.line ? [this.drag.line] : []));
  }

  /** Return the link view as a drawing of its own, as it stands. */
  linksSvg() {
    const places = this.places();
    const texts = [...places.columns, ...places.rows].filter(Boolean).map((token) => draw("text", {
      x: token.x.toFixed(1), y: ((token.top + token.bottom) / 2 + 5).toFixed(1), "text-anchor": "middle", fill: "#1c2024",
    }, token.text));
    const curves = this.curvePaths(places);
    for (const curve of curves) curve.setAttribute("stroke", { negative: "#c24e00", second: "#7a3e9d" }[curve.getAttribute("class").split(" ")[0]] ?? "#0b5cad");
    return svgRoot(places.width, places.height, draw("g", { fill: "none" }, ...curves), draw("g", { "font-size": 16 }, ...texts));
  }

  /** A canvas keeps the colours of the screen, so the printed matrix is a drawing. */
  print(printing) {
    const place = this.root.querySelector(".for-print");
    if (!place || !this.matrix) return;
    const drawable = printing && this.view.rows * this.view.columns <= 40_000;
    place.replaceChildren(...(drawable ? [matrixSvg(this.view)] : []));
    this.root.classList.toggle("printing", drawable);
  }
}

// Settings in words

const WORDS = {
  layer: (value) => (value === -1 ? "last layer" : value === "all" ? "every layer" : value === "mean" ? "mean over layers" : `layer ${value}`),
  head: (value) => ({ sum: "sum over heads", mean: "mean over heads", all: "every head", max: "strongest head" })[value] ?? `head ${value}`,
  reading: (value) => ({ output: "read at the step that writes the word", input: "read at the step after the word" })[value] ?? String(value),
  smoothgrad: (value) => (value ? `SmoothGrad with ${value} samples` : "no SmoothGrad"),
  contrast: (value) => `rather than “${visible(String(value))}”`,
  of: (value) => `of the ${String(value).replaceAll("_", " ")}`,
  signed: (value) => (value ? "signed" : "unsigned"),
  prefix: (value) => (value ? "with the target before it" : "source only"),
  steps: (value) => `${value} steps`,
};

/** Write a setting as people say it. */
export function settingInWords(name, value) {
  if (WORDS[name]) return WORDS[name](value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const clipped = text.length > 100 ? `${text.slice(0, 99)}…` : text;
  return `${visible(name.replaceAll("_", " "))} ${visible(clipped)}`;
}

// The matrix

class Matrix {
  constructor(figure) {
    this.figure = figure;
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.spacer = make("div", { class: "spacer" }, this.canvas);
    const { rows, columns } = figure.view;
    this.root = make("div", {
      class: "matrix", tabindex: 0, role: "group", "aria-describedby": `${figure.id}-readout`,
      "aria-label": `Matrix of ${rows} outputs by ${columns} inputs: arrow keys move from cell to cell, Enter pins`,
    }, this.spacer);
    this.cursor = null;
    this.root.addEventListener("scroll", () => { this.paint(); this.figure.followMatrix(this.fractions()); }, { passive: true });
    this.root.addEventListener("pointermove", (event) => { if (event.pointerType !== "touch") figure.hover(this.at(event)); });
    this.root.addEventListener("pointerleave", () => figure.hover(null));
    this.root.addEventListener("click", (event) => {
      const focus = this.at(event);
      if (focus) figure.pin(focus, event.shiftKey);
    });
    this.root.addEventListener("keydown", (event) => this.press(event));
    this.root.addEventListener("blur", () => { this.cursor = null; figure.hover(null); });
  }

  resize() {
    const { view } = this.figure;
    const context = this.canvas.getContext("2d");
    this.colours = coloursOf(this.figure.root);
    this.font = `13px ${getComputedStyle(this.figure.root).fontFamily}`;
    context.font = this.font;
    const widest = (labels) => Math.min(LABEL_WIDTH, Math.max(20, ...labels.slice(0, 2000).map(({ text }) => context.measureText(text).width)));
    this.left = Math.ceil(widest(view.rowLabels) + 14);
    const reach = widest(view.columnLabels);
    this.top = Math.ceil(reach * Math.sin(HEADER_ANGLE) + 18);
    const overhang = Math.ceil(reach * Math.cos(HEADER_ANGLE) + 10);
    const room = (this.root.parentElement?.parentElement?.clientWidth || 600) * (this.figure.long || innerWidth <= 640 ? 1 : 0.46);
    const cell = (Math.max(room, 300) - this.left - overhang) / Math.max(view.columns, 1);
    this.cell = Math.floor(Math.min(Math.max(cell, SMALLEST_CELL), LARGEST_CELL));
    this.fullWidth = this.left + view.columns * this.cell + overhang;
    this.fullHeight = this.top + view.rows * this.cell + 4;
    this.spacer.style.width = `${this.fullWidth}px`;
    this.spacer.style.height = `${this.fullHeight}px`;
    const width = Math.min(this.root.clientWidth || this.fullWidth, this.fullWidth);
    const height = Math.min(this.root.clientHeight || this.fullHeight, this.fullHeight);
    const ratio = window.devicePixelRatio || 1;
    Object.assign(this.canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    [this.width, this.height, this.ratio] = [width, height, ratio];
    this.paint();
  }

  /** Draw the cells in sight, and their labels at the edges: so a large matrix costs no more than a small one. */
  paint() {
    if (!this.width) return;
    const { figure, cell, left, top, width, height } = this;
    const { view } = figure;
    const context = this.canvas.getContext("2d");
    const { scrollLeft, scrollTop } = this.root;
    const { paper, plane, ink, faint, ...paints } = this.colours;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.globalAlpha = 1;
    context.fillStyle = paper;
    context.fillRect(0, 0, width, height);
    const firstColumn = Math.max(0, Math.floor(scrollLeft / cell));
    const lastColumn = Math.min(view.columns, Math.ceil((scrollLeft + width - left) / cell));
    const firstRow = Math.max(0, Math.floor(scrollTop / cell));
    const lastRow = Math.min(view.rows, Math.ceil((scrollTop + height - top) / cell));
    const x = (column) => left + column * cell - scrollLeft;
    const y = (row) => top + row * cell - scrollTop;

    context.save();
    context.beginPath();
    context.rect(left, top, width - left, height - top);
    context.clip();
    context.fillStyle = plane;
    context.fillRect(x(0), y(0), view.columns * cell - 1, view.rows * cell - 1);
    for (let row = firstRow; row < lastRow; row++) {
      for (let column = firstColumn; column < lastColumn; column++) {
        const strength = view.strengths[row * view.columns + column];
        if (strength === 0) continue;
        context.globalAlpha = Math.abs(strength);
        context.fillStyle = strength < 0 ? paints.negative : paints.positive;
        context.fillRect(x(column), y(row), cell - 1, cell - 1);
      }
    }
    context.globalAlpha = 1;
    this.paintMarks(context, x, y, { firstRow, lastRow, firstColumn, lastColumn }, ink, paints.negative);
    if (view.boundary > 0 && view.boundary < view.columns) {
      context.fillStyle = ink;
      context.fillRect(x(view.boundary) - 1, y(0), 1.5, view.rows * cell);
    }
    context.restore();

    const focuses = figure.focuses();
    const chosen = (side, position) => focuses.some((focus) => focus[side] === position);
    context.font = this.font;
    context.textBaseline = "middle";
    const write = (label, bold) => {
      context.fillStyle = label.special ? faint : ink;
      context.font = bold ? `700 ${this.font}` : this.font;
    };
    context.save();
    context.beginPath();
    context.rect(0, top, left, height - top);
    context.clip();
    context.textAlign = "right";
    for (let row = firstRow; row < lastRow; row++) {
      write(view.rowLabels[row], chosen("row", row));
      context.fillText(clipped(context, view.rowLabels[row].text), left - 7, y(row) + cell / 2);
    }
    context.restore();
    context.save();
    context.beginPath();
    context.rect(left - 4, 0, width - left + 4, top);
    context.clip();
    context.textAlign = "left";
    for (let column = firstColumn; column < lastColumn; column++) {
      write(view.columnLabels[column], chosen("column", column));
      context.save();
      context.translate(x(column) + cell / 2, top - 6);
      context.rotate(-HEADER_ANGLE);
      context.fillText(clipped(context, view.columnLabels[column].text), 0, 0);
      context.restore();
    }
    context.restore();

    context.save();
    context.beginPath();
    context.rect(left - 2, top - 2, width - left + 2, height - top + 2);
    context.clip();
    context.strokeStyle = ink;
    context.lineWidth = 1.5;
    for (const { row, column } of focuses) {
      if (row !== null && row !== undefined) context.strokeRect(x(0) - 0.5, y(row) - 0.5, view.columns * cell, cell);
      if (column !== null && column !== undefined) context.strokeRect(x(column) - 0.5, y(0) - 0.5, cell, view.rows * cell);
    }
    context.restore();
  }

  /** Gold links: a ring where the link is right, dashed where merely possible, a cross where wrong, an empty box where missed. */
  paintMarks(context, x, y, seen, ink, wrong) {
    const { view } = this.figure;
    const { cell } = this;
    context.lineWidth = 1.6;
    for (const [index, kind] of view.marks) {
      const [row, column] = [Math.floor(index / view.columns), index % view.columns];
      if (row < seen.firstRow || row >= seen.lastRow || column < seen.firstColumn || column >= seen.lastColumn) continue;
      const [middleX, middleY, half] = [x(column) + (cell - 1) / 2, y(row) + (cell - 1) / 2, cell * 0.28];
      context.strokeStyle = kind === "wrong" || kind === "missed" ? wrong : ink;
      context.setLineDash(kind === "possible" || kind === "allowed" ? [2, 2] : []);
      context.beginPath();
      if (kind === "wrong") {
        context.moveTo(middleX - half, middleY - half); context.lineTo(middleX + half, middleY + half);
        context.moveTo(middleX + half, middleY - half); context.lineTo(middleX - half, middleY + half);
      } else if (kind === "missed") {
        context.rect(middleX - half, middleY - half, 2 * half, 2 * half);
      } else {
        context.arc(middleX, middleY, half, 0, 2 * Math.PI);
      }
      context.stroke();
    }
    context.setLineDash([]);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const { view } = this.figure;
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    const column = Math.floor((px - this.left + this.root.scrollLeft) / this.cell);
    const row = Math.floor((py - this.top + this.root.scrollTop) / this.cell);
    const inside = (position, count) => position >= 0 && position < count;
    if (px < this.left && py >= this.top) return inside(row, view.rows) ? { row, column: null } : null;
    if (py < this.top && px >= this.left) return inside(column, view.columns) ? { row: null, column } : null;
    return inside(row, view.rows) && inside(column, view.columns) && px >= this.left ? { row, column } : null;
  }

  press(event) {
    const { view } = this.figure;
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (move) {
      const [down, right] = this.cursor ? move : [0, 0];
      const from = this.cursor ?? this.figure.pins.at(-1) ?? { row: 0, column: 0 };
      const limit = (value, count) => Math.min(Math.max(value, 0), count - 1);
      this.cursor = { row: limit((from.row ?? 0) + down, view.rows), column: limit((from.column ?? 0) + right, view.columns) };
      this.figure.hover(this.cursor);
      this.reveal(this.cursor);
    } else if ((event.key === "Enter" || event.key === " ") && this.cursor) {
      this.figure.pin(this.cursor, event.shiftKey);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  reveal({ row, column }) {
    const bring = (position, first, size) => {
      if (position < first) return position;
      return position + 2 * this.cell > first + size ? position + 2 * this.cell - size : first;
    };
    if (row !== null) this.root.scrollTop = bring(row * this.cell, this.root.scrollTop, this.height - this.top);
    if (column !== null) this.root.scrollLeft = bring(column * this.cell, this.root.scrollLeft, this.width - this.left);
  }

  fractions() {
    const fraction = (at, whole, seen) => (whole > seen ? at / (whole - seen) : 0);
    return {
      row: fraction(this.root.scrollTop, this.fullHeight, this.root.clientHeight),
      column: fraction(this.root.scrollLeft, this.fullWidth, this.root.clientWidth),
    };
  }

  scrollToFraction(side, fraction) {
    if (side === "row") this.root.scrollTop = fraction * (this.fullHeight - this.root.clientHeight);
    else this.root.scrollLeft = fraction * (this.fullWidth - this.root.clientWidth);
  }
}

function clipped(context, text) {
  if (context.measureText(text).width <= LABEL_WIDTH) return text;
  let kept = [...text];
  while (kept.length && context.measureText(`${kept.join("")}…`).width > LABEL_WIDTH) kept = kept.slice(0, -1);
  return `${kept.join("")}…`;
}

/** Read the colours of the style sheet as they are in this theme; a canvas does not know its variables. */
function coloursOf(root) {
  const probe = root.appendChild(make("span", {}));
  const colours = {};
  for (const name of ["paper", "plane", "ink", "faint", "positive", "negative"]) {
    probe.style.color = `var(--${name})`;
    colours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return colours;
}

function paintThumbnail(canvas, view, colours) {
  const context = canvas.getContext("2d");
  const side = canvas.width;
  context.fillStyle = colours.plane;
  context.fillRect(0, 0, side, side);
  const [width, height] = [side / Math.max(view.columns, 1), side / Math.max(view.rows, 1)];
  for (let row = 0; row < view.rows; row++) {
    for (let column = 0; column < view.columns; column++) {
      const strength = view.strengths[row * view.columns + column];
      if (Math.abs(strength) < 0.05) continue;
      context.globalAlpha = Math.abs(strength);
      context.fillStyle = strength < 0 ? colours.negative : colours.positive;
      context.fillRect(column * width, row * height, Math.max(width, 1), Math.max(height, 1));
    }
  }
  context.globalAlpha = 1;
}

// Drawings to keep

function svgRoot(width, height, ...children) {
  return draw("svg", {
    xmlns: SVG, width: Math.ceil(width), height: Math.ceil(height), viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
    "font-family": "system-ui, 'Noto Sans', 'DejaVu Sans', sans-serif", role: "img",
  }, ...children);
}

/** Return the whole matrix as vectors that look right in any program. */
function matrixSvg(view) {
  const cell = Math.min(Math.max(900 / Math.max(view.columns, 1), SMALLEST_CELL), LARGEST_CELL);
  const clip = (text) => ([...text].length > 24 ? `${[...text].slice(0, 23).join("")}…` : text);
  const widest = (labels) => Math.max(0, ...labels.map(({ text }) => [...clip(text)].length)) * 8;
  const left = widest(view.rowLabels) + 14;
  const top = widest(view.columnLabels) * Math.sin(HEADER_ANGLE) + 18;
  const squares = new Map();
  view.strengths.forEach((strength, index) => {
    const step = Math.round(strength * 50);
    if (step) squares.set(step, `${squares.get(step) ?? ""}M${index % view.columns} ${Math.floor(index / view.columns)}h.94v.94h-.94z`);
  });
  const cells = [...squares].map(([step, d]) => draw("path", { fill: step < 0 ? "#c24e00" : "#0b5cad", "fill-opacity": Math.abs(step) / 50, d }));
  const name = ({ special }) => ({ fill: special ? "#6a727c" : "#1c2024" });
  const rows = view.rowLabels.map((label, row) => draw("text", { ...name(label), x: left - 7, y: top + (row + 0.5) * cell, dy: ".35em", "text-anchor": "end" }, clip(label.text)));
  const columns = view.columnLabels.map((label, column) => draw("text", {
    ...name(label), transform: `translate(${(left + (column + 0.5) * cell).toFixed(1)} ${(top - 6).toFixed(1)}) rotate(-55)`,
  }, clip(label.text)));
  const [width, height] = [left + view.columns * cell + widest(view.columnLabels) * Math.cos(HEADER_ANGLE) + 10, top + view.rows * cell + 6];
  return svgRoot(width, height,
    draw("rect", { x: left, y: top, width: view.columns * cell, height: view.rows * cell, fill: "#f3f5f7" }),
    draw("g", { class: "cells", transform: `translate(${left} ${top}) scale(${cell})` }, ...cells),
    draw("g", { "font-size": 13 }, ...rows, ...columns));
}

const serialize = (drawing) => new XMLSerializer().serializeToString(drawing);

async function png(drawing) {
  const [width, height] = [Number(drawing.getAttribute("width")), Number(drawing.getAttribute("height"))];
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(serialize(drawing))}`;
  await image.decode();
  const canvas = make("canvas", { width: width * 2, height: height * 2 });
  const context = canvas.getContext("2d");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

// Where it is used

/** Draw the figures that a saved page or a notebook's output holds, with the data beside them. */
export function mountAll(place = document) {
  for (const figure of place.querySelectorAll("figure.sightline:not(.live)")) {
    const data = figure.querySelector("script[type='application/json']");
    if (data) mount(figure, JSON.parse(data.textContent));
  }
}

/** What anywidget calls in a notebook. */
function render({ model, el }) {
  const place = el.appendChild(make("figure", {}));
  const { update, destroy } = mount(place, model.get("picture"));
  model.on("change:picture", () => update(model.get("picture")));
  return destroy;
}

export default { render };

if (typeof document !== "undefined") mountAll();
