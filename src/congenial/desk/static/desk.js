// The desk's own script: forms answer in place, a plan's text is checked while it is typed, sliders
// are followed, jobs too. Without it every form still works.
"use strict";

const csrf = () => document.querySelector('meta[name="csrf"]').content;
const FIELDS = "main a, main button, main input, main select, main summary, main textarea";

async function ask(address, fields) {
  const answer = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": csrf() },
    body: JSON.stringify(fields),
  });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

// ---- forms that answer in place ------------------------------------------------------------------

let latestForm = 0;

async function sendForm(form, button) {
  const fields = new URLSearchParams(new FormData(form, button));
  const post = form.method === "post";
  const address = new URL(form.getAttribute("action") || location.pathname, location.href);
  if (!post) for (const [name, value] of fields) address.searchParams.set(name, value);
  const mine = ++latestForm;
  document.documentElement.classList.add("busy");
  let answer, html;
  try {
    answer = await fetch(address, post ? { method: "POST", headers: { "x-csrf-token": csrf() }, body: fields } : {});
    html = await answer.text();
  } catch (error) {
    say("The desk does not answer. Is it still running?");
    return;
  } finally {
    document.documentElement.classList.remove("busy");
  }
  if (mine !== latestForm) return;
  if (!(answer.headers.get("content-type") || "").startsWith("text/html")) return say(html);
  show(html, answer.redirected || !post ? answer.url : "");
}

function say(words) {
  const box = document.createElement("p");
  box.className = "notice problem";
  box.setAttribute("role", "alert");
  box.textContent = words;
  document.querySelector("main").prepend(box);
}

// Replace the page's content, and keep the place of whoever is in it.
function show(html, address) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  const active = document.activeElement;
  const at = [...document.querySelectorAll(FIELDS)].indexOf(active);
  const same = (one) => one.tagName === active.tagName && one.name === active.name
    && (one.ariaLabel || one.innerText) === (active.ariaLabel || active.innerText);
  const tops = [...document.querySelectorAll("main, main section, main aside")].map((one) => one.scrollTop);
  const unfolded = [...document.querySelectorAll("main details[open] > summary")].map((one) => one.textContent);
  for (const part of ["nav", "main"]) {
    const [old, made] = [document.querySelector(part), fresh.querySelector(part)];
    if (old && made) old.replaceWith(made);
  }
  document.title = fresh.title;
  if (address && address !== location.href) history.pushState(null, "", address);
  for (const one of document.querySelectorAll("main details > summary")) {
    if (unfolded.includes(one.textContent)) one.parentElement.open = true;
  }
  start();
  [...document.querySelectorAll("main, main section, main aside")].forEach((one, place) => { one.scrollTop = tops[place] || 0; });
  const wrong = document.querySelector("main .beside");
  const fields = [...document.querySelectorAll(FIELDS)];
  const next = wrong ? wrong.parentElement.querySelector("input:not([type=hidden]), select, button")
    : fields.find(same) || fields[Math.max(0, Math.min(at, fields.length - 1))];
  if (next && at >= 0) next.focus();
}

document.addEventListener("submit", (event) => {
  if (event.target.matches("#toml")) leaving = true;
  if (!event.target.matches("form[data-live]")) return;
  event.preventDefault();
  sendForm(event.target, event.submitter);
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-auto]")) event.target.form.requestSubmit();
});
window.addEventListener("popstate", () => location.reload());
document.documentElement.classList.add("scripted");

// ---- the plan's text -----------------------------------------------------------------------------

let leaving = false;

function startText(text) {
  const check = document.getElementById("check");
  const unsaved = document.getElementById("unsaved");
  const saved = text.defaultValue;  // the value may be one that the browser kept
  let timer = 0;
  let latest = 0;
  leaving = false;

  async function checkText() {
    const mine = ++latest;
    let answer;
    try {
      answer = await ask(check.dataset.address, { text: text.value });
    } catch (error) {
      answer = { state: "problem", words: "The desk does not answer. Is it still running?" };
    }
    if (mine !== latest) return;
    check.className = "notice " + (answer.state === "fine" ? "fine" : "problem");
    check.textContent = answer.words;
  }

  function changed() {
    if (unsaved) unsaved.hidden = text.value === saved;
    clearTimeout(timer);
    timer = setTimeout(checkText, 300);
  }
  text.addEventListener("input", changed);
  text.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      text.form.requestSubmit();
    }
  });
  if (text.value !== saved) changed();
  startKeys(text, document.getElementById("keys"));
}

window.addEventListener("beforeunload", (event) => {
  const text = document.getElementById("text");
  if (text && text.value !== text.defaultValue && !leaving) event.preventDefault();
});

// Keys of the section in which the text cursor stands, from the plan's JSON Schema.
async function startKeys(text, box) {
  let sections;
  try {
    sections = await (await fetch(box.dataset.address)).json();
  } catch (error) {
    return;
  }

  function show() {
    const lines = text.value.split("\n");
    const here = text.value.slice(0, text.selectionStart).split("\n").length - 1;
    const header = (line) => (/^\s*\[\[?\s*([A-Za-z]+)\s*\]\]?\s*(#.*)?$/.exec(line) || [])[1];
    let start = here;
    while (start >= 0 && !header(lines[start])) start -= 1;
    const name = start < 0 ? "" : header(lines[start]);
    box.hidden = !name;
    if (!name) return;
    const section = sections[name];
    if (!section) {
      box.textContent = "A plan has no section [" + name + "]. It has " + Object.keys(sections).join(", ") + ".";
      return;
    }
    const keys = Object.entries(section.keys).map(([key, type]) => key + " (" + type + ")").join(", ");
    const unknown = [];
    for (let at = start + 1; at < lines.length && !/^\s*\[/.test(lines[at]); at += 1) {
      const key = (/^\s*([A-Za-z_]+)\s*=/.exec(lines[at]) || [])[1];
      if (key && !section.free && !(key in section.keys)) unknown.push(key);
    }
    const first = unknown.length ? "[" + name + "] has no key " + unknown.join(", ") + ". " : "";
    box.textContent = first + (section.free ? "Each entry of [" : "Keys of [") + name + "]: " + keys + ".";
  }

  for (const event of ["input", "keyup", "click", "focus"]) text.addEventListener(event, show);
  if (document.activeElement === text) show();  // somebody types already
}

// ---- sliders -------------------------------------------------------------------------------------

// A slider goes from a thousandth of the most to the most, in equal ratios; the desk works out what
// each value means, and only the latest answer is shown.
function startSlider(box) {
  const range = box.querySelector("input[type=range]");
  const field = box.querySelector("input[name=value]");
  const most = Number(box.dataset.most);
  const steps = Number(range.max);
  const place = (value) => Math.round(steps * (1 + Math.log10(value / most) / 3));
  const value = (at) => Number((most * 10 ** (3 * (at / steps - 1))).toPrecision(2));
  let running = false;
  let waiting = false;

  async function move() {
    if (running) { waiting = true; return; }
    running = true;
    do {
      waiting = false;
      try {
        paint(await ask(box.dataset.move, { release: box.dataset.release, value: field.value }));
      } catch (error) {
        paint({ problem: "The desk does not answer. Is it still running?" });
      }
    } while (waiting);
    running = false;
  }

  function paint(answer) {
    const words = document.getElementById("moved");
    words.className = "notice " + (answer.problem || !answer.allowed ? "problem" : "fine");
    words.textContent = answer.problem || answer.budget;
    if (answer.problem) return;
    const rows = document.querySelectorAll("tr[data-what]");
    const mine = [...rows].filter((row) => row.dataset.release === answer.release);
    for (const row of mine) {
      const now = answer.rows.find((one) => one.what === row.dataset.what);
      const cell = row.querySelector('[data-at="0"]');
      if (!now || !cell) continue;
      cell.querySelector(".words").textContent = now.words;
      cell.querySelector("meter").setAttribute("value", now.width);
    }
    const meters = [...document.querySelectorAll("tr[data-what] meter")];
    const widest = Math.max(...meters.map((one) => Number(one.getAttribute("value"))));
    for (const one of meters) if (widest > one.max) one.max = widest;
    box.dataset.shown = field.value;
  }

  if (Number(field.value) > 0) range.value = place(Number(field.value));
  range.setAttribute("aria-valuetext", field.value);
  range.addEventListener("input", () => {
    field.value = value(Number(range.value));
    range.setAttribute("aria-valuetext", field.value);
    move();
  });
  field.addEventListener("change", () => {
    if (Number(field.value) > 0) range.value = place(Number(field.value));
    move();
  });
}

function followJob(job) {
  async function look() {
    let now;
    try {
      now = await (await fetch(job.dataset.address)).json();
    } catch (error) {
      setTimeout(look, 2000);
      return;
    }
    const share = document.getElementById("share");
    if (now.share === null) share.removeAttribute("value"); else share.value = now.share;
    const words = now.state === "running" ? "Running: " + now.stage : now.state === "done" ? "Done." : "Not done.";
    const stage = document.getElementById("stage");
    if (stage.textContent !== words) stage.textContent = words;
    document.getElementById("seconds").textContent = now.seconds;
    document.getElementById("left").textContent =
      now.left === null ? "" : ", about " + now.left + " s left in this step";
    if (now.state === "running") {
      setTimeout(look, 500);
    } else if (now.state === "done") {
      location.assign(now.then);
    } else {
      const error = document.getElementById("error");
      error.textContent = now.error;
      error.hidden = false;
      share.value = 0;
    }
  }
  if (job.dataset.state !== "failed") look();
}

function start() {
  const text = document.getElementById("text");
  if (text) startText(text);
  document.querySelectorAll(".slider").forEach(startSlider);
  const job = document.getElementById("job");
  if (job) followJob(job);
}

start();
