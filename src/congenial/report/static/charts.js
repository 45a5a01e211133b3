// Charts of report and desk: SVG elements, made node by node, so that no label can become markup.
// Charts.draw(spec, width, dark) draws; Charts.svg, .png and .csv are the files of a chart.
//
// spec: { kind: "dots" | "lines" | "pyramid" | "map", title, words (for who cannot see it), across (what labels are),
//         unit, labels: [text], at (the label that is marked), series: [{ name, points: [{ value, low, high, exact }] }],
//         for maps: shapes: { width, height, paths: { level: d } }, levels: [level of each label], shade: "value" | "margin" }
// Scales are linear; bars and dots begin at 0. Letters are 12 pixels.
"use strict";
const Charts = (() => {
  const LETTER = 6.8, ROW = 22, FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
  const LIGHT = { ink: "#1c2530", soft: "#4d5864", line: "#dfe4e9", paper: "#ffffff", mark: "#fdf0d2",
    hues: ["#0072b2", "#c04e00", "#007a5a", "#a2478b", "#6b5d00"],
    steps: ["#e3eef7", "#b3d0e8", "#74abd6", "#3a7fb8", "#0b4a80"], warm: ["#ffffff", "#fdeedd", "#fbd0a2", "#f29f55", "#b8560f"], none: "#c9ced4" };
  const DARK = { ink: "#e6eaee", soft: "#a7b1bc", line: "#333d47", paper: "#12171c", mark: "#3d3413",
    hues: ["#6cb8ea", "#f0944d", "#3fc79a", "#dd9fce", "#d9c94f"],
    steps: ["#16324a", "#1f4f78", "#2f74a8", "#5ba3d4", "#a9d4f2"], warm: ["#12171c", "#4a3420", "#7a5025", "#b8742f", "#f2a65a"], none: "#3a444f" };

  const text = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });
  const short = (said, pixels) => {
    const most = Math.max(2, Math.floor(pixels / LETTER));
    return said.length <= most ? said : said.slice(0, most - 1) + "…";
  };

  function node(parent, name, attributes, said) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes || {}))
      made.setAttribute(key, typeof value === "number" ? Math.round(value * 10) / 10 : value);
    if (said !== undefined) made.textContent = said;
    if (parent) parent.append(made);
    return made;
  }

  // Round numbers from below the least to above the largest, about `many` of them.
  function ticks(low, high, many) {
    if (!(high > low)) { const pad = Math.max(1, Math.abs(high) * 1e-6); [low, high] = [low - (low > 0 ? 0 : pad), high + pad]; }
    const raw = (high - low) / many, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((size) => size >= raw * (1 - 1e-9));
    const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
    return Array.from({ length: last - first + 1 }, (_, k) => Number(((first + k) * step).toPrecision(12)));
  }

  const ends = (point) => [point.value, point.low ?? point.value, point.high ?? point.value];
  const all = (spec) => spec.series.flatMap((one) => one.points.flatMap(ends));
  const caption = (label, point) => `${label}: ${text(point.value)}` + (point.exact ? ", exact"
    : point.low === undefined ? "" : `, ${text(point.low)} to ${text(point.high)}`);

  function start(spec, width, height, ink) {
    const svg = node(null, "svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${Math.ceil(height)}`, width,
      height: Math.ceil(height), role: "img", "font-family": FONT, "font-size": 12, fill: ink.ink });
    svg.setAttribute("aria-label", spec.words);
    node(svg, "rect", { width, height, fill: ink.paper });
    node(svg, "text", { x: 0, y: 15, "font-weight": 600, "font-size": 13 }, short(spec.title, width * 0.95));
    return svg;
  }

  function legend(svg, entries, y, ink) {
    let x = 0;
    for (const [colour, said] of entries) {
      const room = 24 + said.length * LETTER + 14, most = svg.viewBox.baseVal.width;
      if (x > 0 && x + room > most) { x = 0; y += 18; }
      node(svg, "rect", { x, y: y - 9, width: 14, height: 10, fill: colour });
      node(svg, "text", { x: x + 20, y, fill: ink.soft }, short(said, most - 24));
      x += room;
    }
    return y;
  }

  // A vertical grid from `left` to `right` with numbers below; returns where a value lies.
  function across(svg, marks, left, right, top, bottom, ink, flipped) {
    const first = marks[0], span = marks[marks.length - 1] - first;
    const place = (value) => flipped ? right - (value - first) / span * (right - left) : left + (value - first) / span * (right - left);
    const every = Math.ceil((Math.max(...marks.map((one) => text(one).length)) + 1.5) * LETTER / ((right - left) / (marks.length - 1)));
    marks.forEach((value, k) => {
      node(svg, "path", { d: `M${place(value).toFixed(1)} ${top}V${bottom}`, stroke: ink.line });
      if (k % every === 0) node(svg, "text", { x: place(value), y: bottom + 15, "text-anchor": "middle", fill: ink.soft }, text(value));
    });
    return place;
  }

  function dots(spec, width, ink) {
    const many = spec.labels.length, points = spec.series[0].points, top = 26, bottom = top + ROW * many;
    const left = Math.min(width * 0.42, 14 + LETTER * Math.max(...spec.labels.map((one) => one.length)));
    const svg = start(spec, width, bottom + 38, ink), values = all(spec);
    const marks = ticks(Math.min(0, ...values), Math.max(...values), width < 480 ? 3 : 6);
    const edge = text(marks[marks.length - 1]).length * LETTER / 2 + 2;
    const place = across(svg, marks, left, width - edge, top, bottom, ink);
    points.forEach((point, k) => {
      const y = top + ROW * k + ROW / 2, group = node(svg, "g", { class: "point", "data-at": k });
      node(group, "title", {}, caption(spec.labels[k], point));
      if (k === spec.at) node(group, "rect", { x: 0, y: y - ROW / 2, width, height: ROW, fill: ink.mark });
      node(group, "text", { x: left - 8, y: y + 4, "text-anchor": "end" }, short(spec.labels[k], left - 10));
      if (point.low !== undefined && !point.exact) {
        const [low, high] = [place(point.low).toFixed(1), place(point.high).toFixed(1)];
        node(group, "path", { d: `M${low} ${y}H${high}M${low} ${y - 4}v8M${high} ${y - 4}v8`, stroke: ink.hues[0], "stroke-width": 1.6, class: "interval" });
      }
      if (point.exact) node(group, "path", { d: `M${(place(point.value) - 5).toFixed(1)} ${y}l5 -5l5 5l-5 5z`, fill: ink.paper, stroke: ink.ink });
      else node(group, "circle", { cx: place(point.value), cy: y, r: 3.6, fill: ink.hues[0] });
    });
    node(svg, "text", { x: width - edge, y: bottom + 31, "text-anchor": "end", fill: ink.soft }, spec.unit);
    return svg;
  }

  function lines(spec, width, ink) {
    const many = spec.labels.length, top = 44, tall = 240, values = all(spec);
    const marks = ticks(Math.min(0, ...values), Math.max(...values), 5), first = marks[0], span = marks[marks.length - 1] - first;
    const left = 10 + LETTER * Math.max(...marks.map((one) => text(one).length)), right = width - 14, bottom = top + tall;
    const longest = Math.max(...spec.labels.map((one) => one.length)), gap = (right - left) / Math.max(1, many - 1);
    const slanted = longest * LETTER > gap * 3, every = Math.max(1, Math.ceil((slanted ? 16 : (longest + 1.5) * LETTER) / gap));
    const foot = slanted ? Math.min(90, longest * LETTER * 0.72 + 14) : 20, named = spec.series.length > 1;
    const svg = start(spec, width, bottom + foot + 20 + (named ? 20 : 0), ink);
    const x = (k) => left + gap * k, y = (value) => bottom - (value - first) / span * tall;
    node(svg, "text", { x: 0, y: top - 12, fill: ink.soft }, spec.unit);
    for (const value of marks) {
      node(svg, "path", { d: `M${left} ${y(value).toFixed(1)}H${right}`, stroke: ink.line });
      node(svg, "text", { x: left - 6, y: y(value) + 4, "text-anchor": "end", fill: ink.soft }, text(value));
    }
    spec.labels.forEach((label, k) => {
      if (k % every) return;
      const place = { x: x(k), y: bottom + 16, "text-anchor": slanted ? "end" : "middle", fill: ink.soft };
      if (slanted) place.transform = `rotate(-45 ${x(k).toFixed(1)} ${bottom + 12})`;
      node(svg, "text", place, short(label, 110));
    });
    if (spec.at !== undefined) node(svg, "path", { d: `M${x(spec.at).toFixed(1)} ${top}V${bottom}`, stroke: ink.soft, "stroke-dasharray": "3 3" });
    spec.series.forEach((one, at) => {
      const hue = ink.hues[at % ink.hues.length], path = (key, back) => one.points.map((point, k) =>
        `${x(k).toFixed(1)} ${y(point[key] ?? point.value).toFixed(1)}`)[back ? "reverse" : "slice"]().join("L");
      node(svg, "path", { d: `M${path("high")}L${path("low", true)}Z`, fill: hue, "fill-opacity": 0.22, class: "band" });
      node(svg, "path", { d: `M${path("value")}`, fill: "none", stroke: hue, "stroke-width": 2, class: "line" });
      one.points.forEach((point, k) => {
        const circle = node(svg, "circle", { cx: x(k), cy: y(point.value), r: k === spec.at ? 4.5 : 3, fill: point.exact ? ink.paper : hue, stroke: hue, class: "point" });
        node(circle, "title", {}, caption(`${named ? one.name + ", " : ""}${spec.labels[k]}`, point));
      });
    });
    if (named) legend(svg, spec.series.map((one, at) => [ink.hues[at % ink.hues.length], one.name]), bottom + foot + 24, ink);
    node(svg, "text", { x: right, y: top - 12, "text-anchor": "end", fill: ink.soft }, spec.across);
    return svg;
  }

  function pyramid(spec, width, ink) {
    const many = spec.labels.length, row = 16, top = 48, bottom = top + row * many, [one, other] = spec.series;
    const middle = 18 + LETTER * Math.min(16, Math.max(...spec.labels.map((label) => label.length)));
    const svg = start(spec, width, bottom + 40, ink), values = all(spec);
    const marks = ticks(0, Math.max(1, ...values), width < 480 ? 2 : 4);
    const edge = text(marks[marks.length - 1]).length * LETTER / 2 + 2, half = (width - middle) / 2;
    const sides = [across(svg, marks, edge, half, top, bottom, ink, true), across(svg, marks, half + middle, width - edge, top, bottom, ink)];
    [[one, half, "end"], [other, half + middle, "start"]].forEach(([side, x, anchor], s) =>
      node(svg, "text", { x, y: top - 8, "text-anchor": anchor, "font-weight": 600, fill: ink.hues[s] }, short(side.name, half - 4)));
    spec.labels.forEach((label, k) => {
      const y = bottom - row * (k + 1);  // the youngest at the bottom
      if (k === spec.at) node(svg, "rect", { x: 0, y, width, height: row, fill: ink.mark });
      node(svg, "text", { x: half + middle / 2, y: y + 12, "text-anchor": "middle", fill: ink.soft }, short(label, middle - 4));
      [one, other].forEach((side, s) => {
        const point = side.points[k], zero = sides[s](0), end = sides[s](Math.max(0, point.value));
        const bar = node(svg, "rect", { x: Math.min(zero, end), y: y + 2, width: Math.abs(end - zero), height: row - 4, fill: ink.hues[s], class: `bar side-${s}` });
        node(bar, "title", {}, caption(`${side.name}, ${label}`, point));
        if (point.low === undefined || point.exact) return;
        const [low, high] = [sides[s](Math.max(0, point.low)).toFixed(1), sides[s](point.high).toFixed(1)], mid = y + row / 2;
        node(svg, "path", { d: `M${low} ${mid}H${high}M${low} ${mid - 3}v6M${high} ${mid - 3}v6`, stroke: ink.ink, "stroke-width": 1.2, class: "interval" });
      });
    });
    node(svg, "text", { x: width - edge, y: bottom + 32, "text-anchor": "end", fill: ink.soft }, spec.unit);
    return svg;
  }

  // Areas in at most five classes, each with about as many areas.
  function map(spec, width, ink) {
    const points = spec.series[0].points, at = new Map(spec.levels.map((level, k) => [level, k])), margins = spec.shade === "margin";
    const share = ({ value, low, high, exact }) => exact ? 0 : Math.max(high - value, value - low) / Math.max(value, 1e-9);
    const there = spec.levels.map((level, k) => k).filter((k) => spec.levels[k] in spec.shapes.paths);
    const ordered = there.map((k) => points[k].value).sort((a, b) => a - b);
    const cuts = margins ? [0, 0.05, 0.1, 0.3, Infinity] : [...new Set([1, 2, 3, 4, 5].map((part) => ordered[Math.ceil(ordered.length * part / 5) - 1]))];
    const hue = (c) => margins ? ink.warm[c] : ink.steps[cuts.length === 1 ? 2 : Math.round(c * 4 / (cuts.length - 1))];
    const grade = (point) => cuts.findIndex((cut) => (margins ? share(point) : point.value) <= cut);
    const said = (c) => margins ? ["exact", "off by up to 5%", "up to 10%", "up to 30%", "more than 30%"][c]
      : c ? `more than ${text(cuts[c - 1])}, up to ${text(cuts[c])}` : `up to ${text(cuts[c])}`;
    const side = Math.min(width, 520), scale = side / spec.shapes.width, top = 26, bottom = top + spec.shapes.height * scale;
    const svg = start(spec, width, bottom + 20 * cuts.length + 20, ink);
    const drawn = node(svg, "g", { transform: `translate(0 ${top}) scale(${scale.toFixed(5)})`, "stroke-linejoin": "round", "fill-rule": "evenodd" });
    const order = Object.keys(spec.shapes.paths).sort((a, b) => (at.get(a) === spec.at) - (at.get(b) === spec.at));
    for (const level of order) {
      const k = at.get(level), chosen = k !== undefined && k === spec.at;
      const area = node(drawn, "path", { d: spec.shapes.paths[level], fill: k === undefined ? ink.none : hue(grade(points[k])),
        stroke: chosen ? ink.hues[1] : ink.soft, class: "area", "data-level": level });
      area.setAttribute("stroke-width", ((chosen ? 2.4 : 0.7) / scale).toFixed(2));
      node(area, "title", {}, k === undefined ? level : caption(spec.labels[k], points[k]));
    }
    cuts.forEach((_, c) => legend(svg, [[hue(c), said(c)]], bottom + 20 + 20 * c, ink));
    return svg;
  }

  const KINDS = { dots, lines, pyramid, map };
  const draw = (spec, width, dark) => KINDS[spec.kind](spec, Math.round(width), dark ? DARK : LIGHT);

  // ---- files of a chart: drawn again for white paper ----------------------------------------------------------------------

  function save(name, content) {
    const link = document.createElement("a");
    link.download = name;
    link.href = URL.createObjectURL(content);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  const svgText = (spec) => new XMLSerializer().serializeToString(draw(spec, 720, false));
  const svg = (spec, name) => save(`${name}.svg`, new Blob([svgText(spec)], { type: "image/svg+xml" }));
  function png(spec, name) {
    const image = new Image(), code = btoa(bytesOf(svgText(spec)));
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(`${name}.png`, blob));
    };
    image.src = `data:image/svg+xml;base64,${code}`;
  }
  function bytesOf(said) {
    let bytes = "";
    for (const byte of new TextEncoder().encode(said)) bytes += String.fromCharCode(byte);
    return bytes;
  }

  // Spreadsheets take a text that begins so for a formula: an apostrophe before it.
  const field = (value) => typeof value === "number" ? String(value) : `"${String(value ?? "").replace(/^('*[=+\-@\t\r])/, "'$1").replaceAll('"', '""')}"`;
  const table = (heads, rows, name) => save(`${name}.csv`,
    new Blob([[heads, ...rows].map((row) => row.map(field).join(",")).join("\n") + "\n"], { type: "text/csv" }));
  const csv = (spec, name) => table(["series", spec.across, "value", "low", "high", "exact"], spec.series.flatMap((one) =>
    one.points.map((point, k) => [one.name, spec.labels[k], point.value, point.low, point.high, point.exact ? "yes" : "no"])), name);

  return { draw, svg, png, csv, table, ticks, text };
})();
