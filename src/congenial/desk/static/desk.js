// The desk's own script: checks a plan while it is typed, applies edits of the form, follows a job.
"use strict";

const csrf = document.querySelector('meta[name="csrf"]').content;

async function ask(address, fields) {
  const answer = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": csrf },
    body: JSON.stringify(fields),
  });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer.json();
}

function startEditor(editor) {
  const text = document.getElementById("text");
  const check = document.getElementById("check");
  const form = document.getElementById("form");
  const unsaved = document.getElementById("unsaved");
  const saved = text.defaultValue;  // the value may be one that the browser kept, or typed before this runs
  let timer = 0;
  let latest = 0;

  function tell(state, words) {
    check.className = "notice " + (state === "fine" ? "fine" : "problem");
    check.textContent = words;
  }

  let shown = "";

  // Replace the form if it changed, and keep the place of whoever is in it.
  function showForm(html) {
    if (html === shown) return;
    shown = html;
    const active = document.activeElement;
    const inside = form.contains(active) ? [...form.querySelectorAll("input, button, select, summary")].indexOf(active) : -1;
    form.innerHTML = html;
    const fields = form.querySelectorAll("input, button, select, summary");
    if (inside >= 0 && fields.length) fields[Math.min(inside, fields.length - 1)].focus();
  }

  function mark() {
    if (unsaved) unsaved.hidden = text.value === saved;
  }

  async function send(address, fields) {
    const mine = ++latest;
    try {
      const answer = await ask(address, fields);
      return mine === latest ? answer : null;
    } catch (error) {
      tell("problem", "The desk does not answer. Is it still running?");
      return null;
    }
  }

  async function checkText() {
    const answer = await send(editor.dataset.check, { text: text.value });
    if (!answer) return;
    tell(answer.state, answer.words);
    showForm(answer.form);
    mark();
  }

  // A refused edit is explained at the top of the page and beside the field that it came from.
  async function edit(fields, place) {
    const answer = await send(editor.dataset.edit, { text: text.value, ...fields });
    if (!answer) return;
    tell(answer.state, answer.words);
    for (const earlier of form.querySelectorAll(".beside")) earlier.remove();
    if (answer.text === null) {
      const words = document.createElement("p");
      words.className = "notice problem beside";
      words.textContent = answer.words;
      place.append(words);
      return;
    }
    text.value = answer.text;
    showForm(answer.form);
    mark();
  }

  text.addEventListener("input", () => {
    mark();
    clearTimeout(timer);
    timer = setTimeout(checkText, 300);
  });
  form.addEventListener("change", (event) => {
    const field = event.target.closest("input[data-edit]");
    if (field) edit({ ...field.dataset, value: field.value }, field.closest("label"));
  });
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.edit) {
      edit({ ...button.dataset }, button.closest("li, .group"));
    } else if ("do" in button.dataset) {
      const group = button.closest("[data-edit]");
      const fields = { ...group.dataset };
      for (const field of group.querySelectorAll("[data-name]")) fields[field.dataset.name] = field.value;
      edit(fields, group);
    }
  });
  window.addEventListener("beforeunload", (event) => {
    if (text.value !== saved && !editor.dataset.leaving) event.preventDefault();
  });
  form.inert = false;  // from here on its buttons do something
  if (text.value !== saved) {
    mark();
    checkText();
  }
  text.form.addEventListener("submit", () => { editor.dataset.leaving = "yes"; });
}

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

const editor = document.getElementById("editor");
if (editor) {
  startEditor(editor);
  startKeys(document.getElementById("text"), document.getElementById("keys"));
}
const job = document.getElementById("job");
if (job) followJob(job);
