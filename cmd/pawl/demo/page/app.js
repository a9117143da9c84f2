import {ask, upload} from "./upload.js";

const page = 12; // files shown at a time
const byId = (id) => document.getElementById(id);
const shown = new Map(); // the elements of the files, by ID

// The service stores no names: this browser stores the names of the files that it uploaded.
const names = {
  of: (file) => localStorage.getItem(`name ${file.fileId}`) || `Picture ${file.fileId.slice(-6)}`,
  keep: (file, name) => localStorage.setItem(`name ${file.fileId}`, name),
};

// session is a token and its entity.
let session = null;

async function begin() {
  if (!session || session.until < Date.now()) {
    const answer = await fetch("/token", {method: "POST"});
    if (!answer.ok) throw new Error("the demo issued no token: reload the page");
    session = {...await answer.json(), until: Date.now() + 5 * 60_000};
  }
  return session;
}

async function call(method, path) {
  const {token} = await begin();
  return ask(token, method, path);
}

// say shows a message. undo, if any, reverts the action.
function say(text, {bad = false, undo = null} = {}) {
  byId("text").textContent = text;
  byId("notice").classList.toggle("bad", bad);
  byId("undo").hidden = !undo;
  byId("undo").onclick = undo;
  if (undo) byId("undo").focus();
}

// attempt runs act, and shows its error.
async function attempt(what, act) {
  try {
    await act();
  } catch (error) {
    say(`${what}: ${error.message}`, {bad: true});
  }
}

function element(tag, attributes, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children); // as text, never as HTML
  return made;
}

const size = (bytes) => bytes < 1024 ? `${bytes} B` : bytes < 1 << 20 ? `${(bytes / 1024).toFixed(0)} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`;

// card returns the list element of a file.
function card(file) {
  const name = names.of(file);
  const link = element("a", {href: file.downloadUrl, target: "_blank", rel: "noopener"});
  if (file.contentType.startsWith("image/")) {
    link.append(element("img", {src: file.downloadUrl, alt: name}));
  } else {
    link.className = "plain";
    link.append(file.contentType);
  }
  const remove = element("button", {type: "button", ariaLabel: `Delete ${name}`, onclick: () => hide(file)}, "Delete");
  return element("li", {}, link,
    element("span", {className: "name", title: name}, name),
    element("span", {className: "about"}, size(file.size), remove));
}

function show(file, list, first = false) {
  if (shown.has(file.fileId)) return;
  const made = card(file);
  made.dataset.id = file.fileId;
  shown.set(file.fileId, made);
  list.closest("section").hidden = false;
  first ? list.prepend(made) : list.append(made);
}

const fresh = document.querySelector("#new .files");
const album = document.querySelector("#album .files");

function hide(file) {
  const name = names.of(file);
  return attempt(`Cannot delete ${name}`, async () => {
    await call("DELETE", `/v1/files/${file.fileId}`);
    const old = shown.get(file.fileId);
    const list = old.parentElement, next = old.nextElementSibling;
    old.remove();
    shown.delete(file.fileId);
    list.closest("section").hidden = list === fresh && !list.children.length;
    say(`${name} is deleted.`, {undo: () => bringBack(file, list, next)});
  });
}

function bringBack(file, list, next) {
  const name = names.of(file);
  return attempt(`Cannot undelete ${name}`, async () => {
    const back = await call("POST", `/v1/files/${file.fileId}/undelete`);
    show(back, list);
    const made = shown.get(back.fileId);
    if (next?.isConnected) list.insertBefore(made, next);
    say(`${name} is undeleted.`);
    made.querySelector("button").focus();
  });
}

function send(file) {
  const bar = element("progress", {max: 1, value: 0, ariaLabel: `Upload of ${file.name}`});
  const line = element("li", {}, element("span", {}, file.name), bar);
  byId("sending").append(line);
  return attempt(`Cannot upload ${file.name}`, async () => {
    try {
      const {token, entity} = await begin();
      const done = await upload(token, entity, file, (part) => { bar.value = part; });
      if (done.state !== "indexed") throw new Error(`it is ${done.state}`);
      names.keep(done, file.name);
      show(done, fresh, true);
      say(`${file.name} is uploaded.`);
    } finally {
      line.remove();
    }
  });
}

// sendAll uploads one file after the other.
async function sendAll(files) {
  for (const file of [...files]) await send(file);
}

let cursor = "";

function more() {
  return attempt("Cannot load the album", async () => {
    const {entity} = await begin();
    const found = await call("GET", `/v1/entities/${entity}/files?limit=${page}&after=${encodeURIComponent(cursor)}`);
    for (const file of found.files) show(file, album);
    cursor = found.next || "";
    byId("more").hidden = !cursor;
  });
}

byId("more").onclick = more;
byId("pick").onchange = (e) => sendAll(e.target.files).finally(() => { e.target.value = ""; });
for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (e) => {
    e.preventDefault(); // by default, the browser replaces the page by the file
    byId("drop").classList.toggle("over", kind === "dragenter" || kind === "dragover");
  });
}
document.addEventListener("drop", (e) => sendAll(e.dataTransfer.files));
more();
