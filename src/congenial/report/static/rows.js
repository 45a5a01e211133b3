// Rows of tables as a page carries them: unpacked, opened, put into words. Used by the script of a report and that of a site.
// It makes nodes, never markup.
"use strict";
const Rows = (() => {
  const { text } = Charts;
  const FLAGS = { e: "exact", g: "reliable", c: "use with care", p: "too uncertain" };

  async function unpacked(block) {
    const bytes = Uint8Array.from(atob(block.textContent), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  function make(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (key in made && typeof value !== "string") made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children.filter((one) => one !== null));
    return made;
  }

  function open(data, at) {
    const { axes, columns, flags } = data.tables[at], read = {};
    for (const [name, values] of Object.entries(columns))
      if (name !== "from") read[name] = columns.from.includes(name) ? values.map((one, k) => one + columns.base[k]) : values;
    const shape = axes.map((name) => data.axes[name].levels.length), strides = shape.map(() => 1);
    for (let k = shape.length - 2; k >= 0; k--) strides[k] = strides[k + 1] * shape[k + 1];
    return { ...data.tables[at], axes: axes.map((name) => ({ name, ...data.axes[name] })), read, shape, strides,
      size: read.base.length, flag: (cell) => FLAGS[flags[cell]] || "", ends: "low" in read };
  }
  const cellOf = (shown, at) => at.reduce((sum, place, k) => sum + place * shown.strides[k], 0);
  const placeOf = (shown, cell, k) => Math.floor(cell / shown.strides[k]) % shown.shape[k];
  const labelsOf = (shown, cell) => shown.axes.map((axis, k) => axis.levels[placeOf(shown, cell, k)]);
  function point(shown, cell) {
    const value = shown.read.base[cell];
    const flag = shown.flag(cell), whole = shown.whole;
    if (flag === "exact") return { value, low: value, high: value, exact: true, flag, whole };
    return shown.ends ? { value, low: shown.read.low[cell], high: shown.read.high[cell], exact: false, flag, whole } : { value, exact: false, flag, whole };
  }

  const sign = (said) => make("span", { class: `flag ${said.replaceAll(" ", "-")}` }, said);
  function between(one) {
    if (one.exact) return "exact";
    if (one.low === undefined) return "";
    if (one.value === 0 && one.low >= 0) return one.whole ? `probably fewer than ${text(one.high + 1)}` : `probably at most ${text(one.high)}`;
    return `${text(one.low)} to ${text(one.high)}`;
  }

  // The words of a text, as a reader looks for them.
  const plainly = (said) => said.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);

  const link = (shown, at) => "#find?" + new URLSearchParams([["of", shown.of], ["table", shown.axes.map((axis) => axis.name).join(",")],
    ...shown.axes.map((axis, k) => [axis.name, (axis.codes || axis.levels)[at[k]]])]);

  return { unpacked, make, open, cellOf, placeOf, labelsOf, point, between, sign, plainly, link };
})();
