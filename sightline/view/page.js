// What a reader can do with a picture: point at tokens and cells, choose layers and heads, save vector graphics.
// Texts of tokens are only ever set as text content, never as markup.
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const LISTED = 5; // scores that are named for a token
  const LEAST_SHARE_POINTED = 0.01; // a token that is pointed at shows weaker links too

  const draw = (name, attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  const write = (name, className, text) => {
    const element = document.createElement(name);
    element.className = className;
    element.textContent = text;
    return element;
  };

  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }

  function start(root) {
    const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    const rows = data.rows.length;
    const columns = data.columns.length;
    const heat = root.querySelector("svg.heat-map");
    const links = root.querySelector("svg.link-view");
    const readout = root.querySelector(".readout");
    const selects = [...root.querySelectorAll("select")];
    const left = Number(heat.dataset.left);
    const top = Number(heat.dataset.top);
    const cell = Number(heat.dataset.cell);
    const sign = (value) => (value < 0 ? "negative" : "positive");

    // The scores, read when they are first needed.

    let stored = null;
    let shown = null;

    async function load() {
      stored ??= Promise.all([inflate(data.tops), inflate(data.values)]).then(([tops, values]) => ({
        tops: new Float32Array(tops),
        values: data.limit > 127 ? new Int16Array(values) : new Int8Array(values),
      }));
      const { tops, values } = await stored;
      shown ??= matrix(tops, values);
      return shown;
    }

    function chosenMatrices() {
      let indices = [0];
      data.axes.forEach((axis, place) => {
        const choice = selects[place].value;
        const positions = choice === "" ? [...Array(axis.size).keys()] : [Number(choice)];
        indices = indices.flatMap((index) => positions.map((position) => index * axis.size + position));
      });
      return indices;
    }

    function matrix(tops, values) {
      const scores = new Float32Array(rows * columns);
      const chosen = chosenMatrices();
      for (const index of chosen) {
        for (let row = 0; row < rows; row++) {
          const unit = tops[index * rows + row] / data.limit / chosen.length;
          const start = (index * rows + row) * columns;
          for (let column = 0; column < columns; column++) {
            scores[row * columns + column] += values[start + column] * unit;
          }
        }
      }
      const strengths = new Float32Array(scores.length);
      const shares = new Float32Array(scores.length);
      const decimals = [];
      for (let row = 0; row < rows; row++) {
        const magnitudes = scores.subarray(row * columns, (row + 1) * columns).map(Math.abs);
        const largest = magnitudes.reduce((a, b) => Math.max(a, b), 0) || 1;
        const sum = magnitudes.reduce((a, b) => a + b, 0) || 1;
        decimals.push(Math.min(Math.max(Math.floor(Math.log10(data.limit / largest)), 0), 20)); // those that are stored
        for (let i = row * columns; i < (row + 1) * columns; i++) {
          strengths[i] = scores[i] / largest;
          shares[i] = scores[i] / sum;
        }
      }
      const largestShare = shares.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
      return { scores, strengths, shares, largestShare, decimals };
    }

    function strongest(values, indices, count) {
      return indices.sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]) || a - b).slice(0, count);
    }
    const rowIndices = (row) => Array.from({ length: columns }, (_, column) => row * columns + column);
    const columnIndices = (column) => Array.from({ length: rows }, (_, row) => row * columns + column);

    // Painting.

    function cellPaths(strengths) {
      const squares = new Map();
      strengths.forEach((strength, index) => {
        const step = Math.round(strength * data.opacitySteps);
        if (step === 0) return;
        const square = `M${index % columns} ${Math.floor(index / columns)}h${data.cellSide}v${data.cellSide}h-${data.cellSide}z`;
        squares.set(step, (squares.get(step) ?? "") + square);
      });
      return [...squares].map(([step, d]) =>
        draw("path", { class: sign(step), fill: data[sign(step)], "fill-opacity": Math.abs(step) / data.opacitySteps, d }));
    }

    function cellImage(strengths) {
      const canvas = Object.assign(document.createElement("canvas"), { width: columns, height: rows });
      const context = canvas.getContext("2d");
      const image = context.createImageData(columns, rows);
      const parts = (colour) => [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
      const colours = { positive: parts(data.positive), negative: parts(data.negative) };
      strengths.forEach((strength, index) => {
        image.data.set(colours[sign(strength)], index * 4);
        image.data[index * 4 + 3] = Math.round(Math.abs(strength) * 255);
      });
      context.putImageData(image, 0, 0);
      return [draw("image", {
        width: columns, height: rows, preserveAspectRatio: "none", style: "image-rendering:pixelated", href: canvas.toDataURL(),
      })];
    }

    const places = (side) =>
      [...(links?.querySelectorAll(`.token[data-${side}] text`) ?? [])].map((text) => Number(text.getAttribute("x")));
    const sourcePlaces = places("column");
    const targetPlaces = places("row");

    function curve(index) {
      const { shares, largestShare } = shown;
      const [source, target] = [sourcePlaces[index % columns], targetPlaces[Math.floor(index / columns)]];
      const [above, below] = [Number(links.dataset.above), Number(links.dataset.below)];
      const middle = (above + below) / 2;
      return draw("path", {
        class: sign(shares[index]), stroke: data[sign(shares[index])],
        "stroke-opacity": Math.abs(shares[index]) / largestShare,
        d: `M${source} ${above}C${source} ${middle} ${target} ${middle} ${target} ${below}`,
      });
    }

    function repaint() {
      const { strengths, shares } = shown;
      heat.querySelector(".cells").replaceChildren(...(data.asImage ? cellImage : cellPaths)(strengths));
      if (links) {
        const indices = [...Array(rows).keys()]
          .flatMap((row) => strongest(shares, rowIndices(row), data.linksPerRow))
          .filter((index) => Math.abs(shares[index]) >= data.leastShare);
        links.querySelector(".curves").replaceChildren(...indices.map(curve));
      } else {
        tint("column", strengths);
      }
    }

    // Pointing: at a row, at a column, or at the cell where they meet.

    const bands = [draw("rect", { class: "band", visibility: "hidden" }), draw("rect", { class: "band", visibility: "hidden" })];
    heat.append(...bands);
    const focusCurves = draw("g", { class: "curves", fill: "none", "stroke-width": 2.5 });
    links?.querySelector(".curves").after(focusCurves);
    const hint = () => write("span", "hint", "Point at a token or a cell to see its scores.");
    readout.replaceChildren(hint());

    function tint(side, strengths) {
      for (const token of root.querySelectorAll(`.view:not(.heat) .token[data-${side}]`)) {
        const strength = strengths?.[Number(token.dataset[side])] ?? 0;
        token.style.setProperty("--strength", Math.abs(strength).toFixed(2));
        token.classList.toggle("negative", strength < 0);
        token.classList.toggle("positive", strength >= 0);
      }
    }

    function outline(band, x, y, width, height) {
      for (const [key, value] of Object.entries({ x, y, width, height })) band.setAttribute(key, value);
      band.setAttribute("visibility", "visible");
    }

    function scoreText(index) {
      const stored = shown.scores[index].toFixed(shown.decimals[Math.floor(index / columns)]);
      return write("span", "score", String(Number(stored)));
    }

    function describe(row, column) {
      const token = (labels, position) => write("bdi", "", labels[position]);
      if (row !== null && column !== null) {
        const index = row * columns + column;
        const share = Math.abs(shown.shares[index] * 100).toFixed(1);
        return [token(data.rows, row), " ← ", token(data.columns, column), " ", scoreText(index),
          write("span", "hint", `${share} % of the row's total`)];
      }
      const indices = row !== null ? rowIndices(row) : columnIndices(column);
      const best = strongest(shown.scores, indices, LISTED);
      const others = best.flatMap((index) => [
        row !== null ? token(data.columns, index % columns) : token(data.rows, Math.floor(index / columns)), " ", scoreText(index),
      ]);
      return row !== null ? [token(data.rows, row), " ← ", ...others] : [token(data.columns, column), " → ", ...others];
    }

    let pointed = "";

    async function point(row, column) {
      const asked = `${row} ${column}`;
      if (asked === pointed) return;
      pointed = asked;
      root.querySelectorAll(".focused").forEach((element) => element.classList.remove("focused"));
      bands.forEach((band) => band.setAttribute("visibility", "hidden"));
      focusCurves.replaceChildren();
      if (row === null && column === null) {
        links?.querySelector(".curves").removeAttribute("visibility");
        readout.replaceChildren(hint());
        if (links) { tint("row", null); tint("column", null); }
        return;
      }
      await load();
      if (asked !== pointed) return;
      for (const [side, position] of [["row", row], ["column", column]]) {
        if (position === null) continue;
        root.querySelectorAll(`[data-${side}="${position}"]`).forEach((element) => element.classList.add("focused"));
      }
      if (row !== null) outline(bands[0], left, top + row * cell, columns * cell, cell);
      if (column !== null) outline(bands[1], left + column * cell, top, cell, rows * cell);
      readout.replaceChildren(...describe(row, column));
      if (links) {
        const indices = row !== null ? rowIndices(row) : columnIndices(column);
        const strengths = indices.map((index) => shown.strengths[index]);
        tint("column", row !== null ? strengths : null);
        tint("row", row !== null ? null : strengths);
        links.querySelector(".curves").setAttribute("visibility", "hidden");
        focusCurves.replaceChildren(...indices.filter((index) => Math.abs(shown.shares[index]) >= LEAST_SHARE_POINTED).map(curve));
      }
    }

    function cellAt(event) {
      const box = heat.getBoundingClientRect();
      const ratio = heat.viewBox.baseVal.width / box.width;
      const column = Math.floor(((event.clientX - box.left) * ratio - left) / cell);
      const row = Math.floor(((event.clientY - box.top) * ratio - top) / cell);
      return row >= 0 && row < rows && column >= 0 && column < columns ? [row, column] : [null, null];
    }

    const number = (text) => (text === undefined ? null : Number(text));
    root.addEventListener("pointermove", (event) => {
      const token = event.target.closest("[data-row], [data-column]");
      if (token) point(number(token.dataset.row), number(token.dataset.column));
      else if (event.target.closest("svg.heat-map") && !event.target.matches(".backing")) point(...cellAt(event));
      else point(null, null);
    });
    root.addEventListener("pointerleave", () => point(null, null));

    const heatScroll = heat.parentElement;
    const cursor = [0, 0];
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    heatScroll.addEventListener("keydown", (event) => {
      const move = moves[event.key];
      if (!move || rows * columns === 0) return;
      event.preventDefault();
      if (pointed !== "" && pointed !== "null null") {
        cursor[0] = Math.min(Math.max(cursor[0] + move[0], 0), rows - 1);
        cursor[1] = Math.min(Math.max(cursor[1] + move[1], 0), columns - 1);
      }
      point(...cursor);
      bands[1].scrollIntoView({ block: "nearest", inline: "nearest" });
    });
    heatScroll.addEventListener("blur", () => point(null, null));

    // Labels stay in sight while a large matrix scrolls below them.

    const rowLabels = heat.querySelector(".row-labels");
    const columnLabels = heat.querySelector(".column-labels");
    const { width, height } = heat.viewBox.baseVal;
    rowLabels.prepend(draw("rect", { class: "backing", width: left - 2, height, visibility: "hidden" }));
    columnLabels.prepend(draw("rect", { class: "backing", width, height: top - 2, visibility: "hidden" }));
    heat.append(rowLabels, columnLabels);
    heatScroll.addEventListener("scroll", () => {
      const { scrollLeft, scrollTop } = heatScroll;
      rowLabels.setAttribute("transform", `translate(${scrollLeft} 0)`);
      columnLabels.setAttribute("transform", `translate(0 ${scrollTop})`);
      rowLabels.firstChild.setAttribute("visibility", scrollLeft ? "visible" : "hidden");
      columnLabels.firstChild.setAttribute("visibility", scrollTop ? "visible" : "hidden");
    });

    // Choosing and saving.

    const selection = root.querySelector(".selection");
    selects.forEach((select) => select.addEventListener("change", async () => {
      shown = null;
      await load();
      repaint();
      pointed = "";
      point(null, null);
      selection.textContent = data.axes
        .map((axis, index) => (selects[index].value === "" ? `mean over ${axis.name}` : `${axis.name} ${selects[index].value}`))
        .join(", ");
    }));

    async function save(kind) {
      const drawing = root.querySelector(`svg.${kind}`).cloneNode(true);
      drawing.querySelectorAll(".band, .backing").forEach((element) => element.remove());
      drawing.querySelectorAll(".row-labels, .column-labels").forEach((group) => group.removeAttribute("transform"));
      if (kind === "heat-map" && data.asImage) {
        drawing.querySelector(".cells").replaceChildren(...cellPaths((await load()).strengths));
      }
      const file = new Blob([new XMLSerializer().serializeToString(drawing)], { type: "image/svg+xml" });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(file);
      link.download = `${kind}.svg`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }
    for (const button of root.querySelectorAll("[data-save]")) {
      button.addEventListener("click", () => save(button.dataset.save));
      button.hidden = root.querySelector(`svg.${button.dataset.save}`) === null;
    }

    root.classList.add("live");
  }

  document.querySelectorAll("figure.sightline:not(.live)").forEach(start);
})();
