"use strict";
// headings, the list of all, stands before this text.
const root = document.body.dataset.root;
const search = document.getElementById("search"), found = document.getElementById("found");

function recall() { try { return localStorage.getItem("theme"); } catch { return null; } } // files may have no storage
function keep(theme) { try { localStorage.setItem("theme", theme); } catch { /* lasts for this page */ } }
function show(theme) { if (theme) document.documentElement.dataset.theme = theme; }
show(recall());
document.getElementById("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    show(next);
    keep(next);
});

// On narrow screens the list of pages is shown when it is asked for.
document.getElementById("menu").addEventListener("click", (e) => {
    e.currentTarget.setAttribute("aria-expanded", String(document.body.classList.toggle("menu")));
});

// matches are headings that have every word, those that begin with the first ahead.
function matches(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return headings.map((h) => [h, h.t.toLowerCase()])
        .filter(([h, t]) => words.every((w) => t.includes(w) || h.p.includes(w)))
        .sort((a, b) => b[1].startsWith(words[0]) - a[1].startsWith(words[0]) || a[0].l - b[0].l)
        .slice(0, 30).map(([h]) => h);
}

function list() {
    found.replaceChildren(...matches(search.value).map((h) => {
        const a = document.createElement("a"), where = document.createElement("small"), li = document.createElement("li");
        a.href = root + h.p + "#" + h.i;
        a.textContent = h.t;
        where.textContent = h.p.replace(".html", "");
        a.append(where);
        li.append(a);
        return li;
    }));
    found.hidden = !found.children.length;
}
search.addEventListener("input", list);
search.addEventListener("keydown", (e) => {
    const links = found.querySelectorAll("a");
    if (e.key === "Enter" && links.length) location.href = links[0].href;
    if (e.key === "Escape") { search.value = ""; list(); search.blur(); }
});
found.addEventListener("click", () => { found.hidden = true; });
document.addEventListener("keydown", (e) => {
    if (e.key !== "/" || document.activeElement === search) return;
    e.preventDefault();
    search.focus();
});

// Programs are coloured: comments, words of the language, types and numbers.
const parts = /(#.*)|\b(graph|fn|for|if|else|return|import|const|require|error|grad|where|at|in)\b|\b((?:f|bf|i|u)(?:8e4m3|8e5m2|8|16|32|64)|bool|int|float|ints|string|edges)\b|\b(\d[\d_.]*(?:e-?\d+)?)\b/g;
for (const code of document.querySelectorAll("code.language-fuse")) {
    const text = code.textContent, nodes = [];
    let end = 0;
    for (const m of text.matchAll(parts)) {
        nodes.push(text.slice(end, m.index));
        const span = document.createElement("span");
        span.className = m[1] ? "note" : m[2] ? "word" : m[3] ? "type" : "figure";
        span.textContent = m[0];
        nodes.push(span);
        end = m.index + m[0].length;
    }
    code.replaceChildren(...nodes, text.slice(end));
}
const asked = new URLSearchParams(location.search).get("q");
if (asked) { search.value = asked; list(); }
