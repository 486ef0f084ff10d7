"use strict";
// examples, programs by their names, stands before this text; fusecAnalyse comes with the compiler.
const text = document.getElementById("text"), errors = document.getElementById("errors"), shown = document.getElementById("shown");
const state = document.getElementById("state"), tabs = document.getElementById("tabs"), choice = document.getElementById("examples");
const parts = { kernels: "Kernels", picture: "Picture", plan: "Plan", cuda: "CUDA", results: "Results" };
let part = "kernels", answer = { graphs: [] }, ready = false, waiting = 0, compiled = 0;

for (const name of Object.keys(parts)) {
    const b = document.createElement("button");
    b.type = "button";
    b.role = "tab";
    b.textContent = parts[name];
    b.dataset.part = name;
    b.addEventListener("click", () => { part = name; if (name === "results") analyse(true); else draw(); });
    tabs.append(b);
}
for (const name of Object.keys(examples)) choice.add(new Option(name, name));
choice.addEventListener("change", () => { if (choice.value) { text.value = examples[choice.value]; changed(); } });

function draw() {
    for (const b of tabs.children) b.setAttribute("aria-selected", String(b.dataset.part === part));
    errors.textContent = answer.errors || "";
    if (part === "picture") { // of the compiler, which escapes what it takes from the program
        shown.innerHTML = answer.graphs.map((g) => g.picture).join("");
        return;
    }
    const pre = document.createElement("pre");
    pre.id = "output";
    pre.textContent = part === "results" ? answer.results || "" : answer.graphs.map((g) => g[part]).join("\n\n");
    shown.replaceChildren(pre);
}

function analyse(run) {
    if (!ready) return;
    const begin = performance.now();
    answer = JSON.parse(fusecAnalyse(text.value, run));
    document.documentElement.dataset.compiled = ++compiled; // for tests
    state.textContent = `${run ? "compiled and run" : "compiled"} in ${Math.round(performance.now() - begin)} ms`;
    draw();
}

// The address holds the program, so that it can be sent.
function toFragment(s) {
    const bytes = new TextEncoder().encode(s);
    return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
function fromFragment(f) {
    const bytes = Uint8Array.from(atob(f.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
    return new TextDecoder().decode(bytes);
}
function changed() {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
        history.replaceState(null, "", "#" + toFragment(text.value));
        analyse(part === "results");
    }, 150);
}
text.addEventListener("input", changed);
text.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); run(); }
    if (e.key !== "Tab" || e.shiftKey) return;
    e.preventDefault();
    text.setRangeText("    ", text.selectionStart, text.selectionEnd, "end");
    changed();
});
function run() { part = "results"; analyse(true); }
document.getElementById("run").addEventListener("click", run);

function begin() {
    const query = new URLSearchParams(location.search);
    text.value = Object.values(examples)[0];
    try { if (location.hash.length > 1) text.value = fromFragment(location.hash.slice(1)); } catch { state.textContent = "the address holds no program"; }
    if (query.get("show") in parts) part = query.get("show");
}
begin();
draw();

globalThis.fusecReady = () => {
    ready = true;
    analyse(part === "results");
    if (new URLSearchParams(location.search).has("type")) { // what a test types
        text.value = new URLSearchParams(location.search).get("type");
        text.dispatchEvent(new Event("input"));
    }
};
const go = new Go();
fetch("fusec.wasm").then((r) => r.arrayBuffer()).then((bytes) => WebAssembly.instantiate(bytes, go.importObject))
    .then((m) => go.run(m.instance)).catch((e) => { state.textContent = "the compiler cannot be loaded: " + e; });
