// The state of the page, and what the user does to it.

const view = { graph: null, which: "after", kernel: -1, tab: "lines", sizes: {}, measured: [], drawing: null, matches: null, at: -1, lit: null };

function showGraph(n) {
    view.graph = data.graphs[n];
    view.sizes = Object.fromEntries(view.graph.symbols.map((s) => [s.name, s.default]));
    view.kernel = -1;
    view.more = false;
    $("graph").value = n;
    view.measured = measureAll(view.graph, view.sizes);
    showDrawing();
    renderPanel();
}

function showDrawing() {
    view.drawing = prepare(view.graph[view.which], view.sizes);
    $("before").setAttribute("aria-pressed", String(view.which === "before"));
    $("after").setAttribute("aria-pressed", String(view.which === "after"));
    search($("search").value);
    fit();
}

function show(which) {
    view.which = which;
    view.lit = null;
    showDrawing();
    remember();
}

function remeasure() {
    view.measured = measureAll(view.graph, view.sizes);
    view.drawing = prepare(view.graph[view.which], view.sizes);
    const live = $("classes");
    if (live) {
        const list = view.graph.kernels.slice(0, 40).map((k, i) => `${k.name}: class ${view.measured[i].class + 1}, ${timeText(view.measured[i].seconds)}`);
        live.className = "faint";
        live.replaceChildren(...list.slice(0, 6).map((t) => element("div", null, t)));
    }
    redraw();
}

// choose shows a kernel, or all with -1.
function choose(k, still) {
    view.kernel = k;
    renderPanel();
    $("panel").scrollTop = 0;
    const box = k >= 0 && view.drawing.boxes.find((b) => b.k === k);
    if (box && !still) {
        const [left, top] = toDrawing(0, 0), [right, bottom] = toDrawing(stage.width, stage.height);
        const seen = box.x >= left && box.y >= top && box.x + box.w <= right && box.y + box.h <= bottom && stage.zoom > 0.3;
        if (!seen) fit(box);
    }
    redraw();
    remember();
}

// remember keeps the state in the address, so that it can be linked to.
function remember() {
    const p = new URLSearchParams();
    if (data.graphs.length > 1) p.set("graph", view.graph.name);
    if (view.which !== "after") p.set("view", view.which);
    if (view.kernel >= 0) p.set("kernel", view.graph.kernels[view.kernel].name);
    if (view.kernel >= 0 && view.tab !== "lines") p.set("tab", view.tab);
    if (!atDefaults()) p.set("size", view.graph.symbols.map((s) => s.name + ":" + view.sizes[s.name]).join(","));
    if (given.get("theme")) p.set("theme", given.get("theme"));
    history.replaceState(null, "", "#" + p);
}

function search(text) {
    const words = text.trim().toLowerCase(), found = $("found");
    view.at = -1;
    view.matches = null;
    found.hidden = !words;
    if (words) {
        view.matches = new Set();
        view.drawing.nodes.forEach((n, i) => {
            if (`${n.n} ${n.o} ${n.t}`.toLowerCase().includes(words)) view.matches.add(i);
        });
        const kernels = view.graph.kernels.filter((k) => k.name.toLowerCase().includes(words)).length;
        found.textContent = count(view.matches.size, "operation") + (kernels ? ", " + count(kernels, "kernel") : "");
    }
    redraw();
}

function nextMatch() {
    if (!view.matches || !view.matches.size) {
        const words = $("search").value.trim().toLowerCase();
        const k = view.graph.kernels.findIndex((kernel) => words && kernel.name.toLowerCase().includes(words));
        if (k >= 0) choose(k);
        return;
    }
    const list = [...view.matches];
    view.at = list.find((i) => i > view.at) ?? list[0];
    const n = view.drawing.nodes[view.at];
    stage.zoom = Math.max(stage.zoom, 0.8);
    stage.moved = true;
    stage.x = stage.width / 2 - (n.x + n.w / 2) * stage.zoom;
    stage.y = stage.height / 2 - (n.y + nodeHeight / 2) * stage.zoom;
    if (n.in && n.in.length) choose(n.in[0], true);
    redraw();
}

function setTheme(name) {
    document.documentElement.dataset.theme = name;
    readTheme();
    if (view.graph) renderPanel();
    redraw();
}

function toggleTheme() {
    const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    given.set("theme", name);
    try { localStorage.setItem("fusec-theme", name); } catch (e) { /* a page from a file may have no storage */ }
    setTheme(name);
    remember();
}

function tooltip(x, y, hit) {
    const tip = $("tip");
    tip.hidden = !hit.node && hit.kernel === undefined;
    if (tip.hidden) return;
    const lines = [];
    if (hit.node) {
        const n = hit.node, kernels = (n.in || []).map((k) => view.graph.kernels[k].name);
        lines.push(element("b", null, n.n), element("div", null, n.t + ", " + bytesText(value(n.b, view.sizes))), element("div", { class: "faint" }, n.o));
        if (n.l) lines.push(element("div", { class: "faint" }, data.files[n.f].name + ":" + n.l));
        if (n.k !== "input" && view.which === "before") lines.push(element("div", null, kernels.length ? "in " + kernels.slice(0, 4).join(", ") : "needs no kernel of its own"));
    } else {
        const k = view.graph.kernels[hit.kernel], m = view.measured[hit.kernel];
        lines.push(element("b", null, k.name), element("div", null, `${timeText(m.seconds)}, bound by ${m.bound}`), element("div", { class: "faint" }, k.space));
    }
    tip.replaceChildren(...lines);
    tip.style.left = Math.max(4, Math.min(x + 14, stage.width - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(y + 16, stage.height - tip.offsetHeight - 8)) + "px";
}

function pointers() {
    const down = new Map();
    let moved = false, distance = 0;
    const at = (e) => { const b = canvas.getBoundingClientRect(); return [e.clientX - b.left, e.clientY - b.top]; };
    canvas.addEventListener("pointerdown", (e) => {
        canvas.setPointerCapture(e.pointerId);
        down.set(e.pointerId, at(e));
        moved = false;
        distance = 0;
        canvas.classList.add("dragging");
    });
    canvas.addEventListener("pointermove", (e) => {
        const [x, y] = at(e), old = down.get(e.pointerId);
        if (!old) {
            const hit = under(...toDrawing(x, y));
            if (view.lit !== (hit.node || null)) { view.lit = hit.node || null; redraw(); }
            tooltip(x, y, hit);
            return;
        }
        $("tip").hidden = true;
        if (down.size === 1) {
            if (Math.hypot(x - old[0], y - old[1]) < 3 && !moved) return;
            moved = stage.moved = true;
            stage.x += x - old[0];
            stage.y += y - old[1];
        } else if (down.size === 2) {
            moved = true;
            down.set(e.pointerId, [x, y]);
            const [a, b] = [...down.values()], now = Math.hypot(a[0] - b[0], a[1] - b[1]);
            if (distance) zoomAt((a[0] + b[0]) / 2, (a[1] + b[1]) / 2, now / distance);
            distance = now;
        }
        down.set(e.pointerId, [x, y]);
        redraw();
    });
    const up = (e) => {
        down.delete(e.pointerId);
        distance = 0;
        canvas.classList.remove("dragging");
        if (moved || e.type === "pointercancel") return;
        const hit = under(...toDrawing(...at(e)));
        if (hit.kernel !== undefined) choose(hit.kernel, true);
        else if (hit.node && hit.node.in && hit.node.in.length) choose(hit.node.in[0], true);
        else choose(-1, true);
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => { $("tip").hidden = true; });
    canvas.addEventListener("wheel", (e) => {
        e.preventDefault();
        const [x, y] = at(e);
        zoomAt(x, y, Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0016)));
    }, { passive: false });
    canvas.addEventListener("dblclick", (e) => zoomAt(...at(e), 1.8));
}

function step(by) {
    const n = view.graph.kernels.length;
    if (n) choose((view.kernel + by + (view.kernel < 0 && by < 0 ? n + 1 : n)) % n);
}

const keys = {
    "+": () => zoomAt(stage.width / 2, stage.height / 2, 1.3), "=": () => zoomAt(stage.width / 2, stage.height / 2, 1.3),
    "-": () => zoomAt(stage.width / 2, stage.height / 2, 1 / 1.3), "0": () => fit(), b: () => show(view.which === "before" ? "after" : "before"),
    n: () => step(1), p: () => step(-1), t: toggleTheme, "?": () => $("keys").showModal(), "/": () => $("search").focus(),
    Escape: () => choose(-1, true), ArrowLeft: () => pan(60, 0), ArrowRight: () => pan(-60, 0), ArrowUp: () => pan(0, 60), ArrowDown: () => pan(0, -60),
};

function pan(x, y) {
    stage.x += x;
    stage.y += y;
    stage.moved = true;
    redraw();
}

function keyboard(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const field = e.target.closest && e.target.closest("input, select, textarea, dialog");
    if (field) {
        if (e.key === "Escape" && field.id === "search") { field.value = ""; search(""); canvas.focus(); }
        if (e.key === "Enter" && field.id === "search") nextMatch();
        return;
    }
    if (e.key.startsWith("Arrow") && e.target.closest && e.target.closest("#panel")) return; // it scrolls
    const act = keys[e.key];
    if (act) {
        e.preventDefault();
        act();
    }
}

function splitter() {
    const split = $("split");
    split.addEventListener("pointerdown", (e) => {
        split.setPointerCapture(e.pointerId);
        split.onpointermove = (m) => document.documentElement.style.setProperty("--panel", Math.max(240, Math.min(window.innerWidth - 220, window.innerWidth - m.clientX)) + "px");
    });
    split.addEventListener("pointerup", () => { split.onpointermove = null; });
}

// live loads the page again when its server has a newer one.
async function live() {
    let version = null;
    for (;;) {
        try {
            const now = await (await fetch("version" + (version ? "?after=" + version : ""))).text();
            if (version !== null && now !== version) return location.reload();
            version = now;
        } catch (e) {
            await new Promise((resolve) => setTimeout(resolve, 1000));
        }
    }
}

// smooth measures drawing while the view moves and zooms, for tests.
function smooth() {
    const took = [];
    fit();
    const whole = stage.zoom;
    for (let i = 0; i < 120; i++) {
        zoomAt(stage.width / 2, stage.height / 2, i < 60 ? 1.09 : 1 / 1.09);
        pan(i % 2 ? 9 : -9, -12);
        const begin = performance.now();
        paint();
        pen.getImageData(0, 0, 1, 1); // waits until it is drawn
        took.push(performance.now() - begin);
    }
    took.sort((a, b) => a - b);
    stage.zoom = whole;
    fit();
    return took[Math.floor(took.length * 0.95)];
}

addEventListener("error", (e) => { document.documentElement.dataset.error = e.message; });

const given = new URLSearchParams(location.hash.slice(1));

function begin() {
    let stored = null;
    try { stored = localStorage.getItem("fusec-theme"); } catch (e) { /* none */ }
    setTheme(given.get("theme") || stored || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
    $("title").textContent = data.title;
    data.graphs.forEach((g, i) => $("graph").append(element("option", { value: i }, g.name)));
    $("graph").hidden = data.graphs.length < 2;
    $("graph").addEventListener("change", () => { showGraph(+$("graph").value); remember(); });
    $("before").addEventListener("click", () => show("before"));
    $("after").addEventListener("click", () => show("after"));
    $("search").addEventListener("input", () => search($("search").value));
    $("fit").addEventListener("click", () => fit());
    $("theme").addEventListener("click", toggleTheme);
    $("help").addEventListener("click", () => $("keys").showModal());
    document.addEventListener("keydown", keyboard);
    pointers();
    splitter();
    if (given.get("view") === "before") view.which = "before";
    if (given.get("tab")) view.tab = given.get("tab");
    resize();
    showGraph(Math.max(0, data.graphs.findIndex((g) => g.name === given.get("graph"))));
    for (const pair of (given.get("size") || "").split(",").filter(Boolean)) {
        const [name, size] = pair.split(":");
        if (name in view.sizes && +size >= 1) view.sizes[name] = Math.round(+size);
    }
    remeasure();
    renderPanel();
    const k = view.graph.kernels.findIndex((kernel) => kernel.name === given.get("kernel"));
    if (k >= 0) choose(k);
    if (given.get("search")) { $("search").value = given.get("search"); search($("search").value); nextMatch(); }
    new ResizeObserver(() => { resize(); }).observe($("stage"));
    if (given.get("play")) play(given.get("play"));
    paint();
    const ready = performance.now();
    document.documentElement.dataset.ready = Math.round(ready);
    if (given.get("smooth")) document.documentElement.dataset.frame = smooth().toFixed(2);
    if (data.live) live();
}

// play presses keys, for tests: "n n b".
function play(text) {
    for (const key of text.split(" ")) document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}

begin();
