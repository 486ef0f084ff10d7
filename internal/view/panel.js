// The panel beside the drawing: all kernels, or one of them.

// element makes an element; children are elements and texts.
function element(name, attributes, ...children) {
    const space = name === "svg" || element.svg ? "http://www.w3.org/2000/svg" : null;
    const e = space ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, v] of Object.entries(attributes || {})) {
        if (key.startsWith("on")) e.addEventListener(key.slice(2), v);
        else if (v !== null && v !== undefined && v !== false) e.setAttribute(key, v === true ? "" : v);
    }
    e.append(...children.filter((c) => c !== null && c !== undefined));
    return e;
}

const cell = (text, number) => element("td", number ? { class: "number" } : null, text);

function tableOf(head, rows) {
    const line = element("tr", null, ...head.map(([text, number]) => element("th", number ? { class: "number" } : null, text)));
    return element("div", { class: "scroll" }, element("table", null, element("thead", null, line), element("tbody", null, ...rows)));
}

function renderPanel() {
    const panel = $("panel");
    panel.replaceChildren(...(view.kernel >= 0 ? kernelPanel(view.kernel) : overview()));
}

function overview() {
    const g = view.graph, all = view.measured, u = g.unfused, p = profiled(g, view.sizes);
    const sum = (f) => all.reduce((t, m) => t + f(m), 0);
    const launches = g.kernels.filter((k) => !k.after).length;
    const rows = [["as planned", launches, sum((m) => m.read), sum((m) => m.written), p ? p.median : all.total]];
    if (u.read !== null && atDefaults()) rows.push(["unfused", u.kernels, u.read, u.written, p ? null : u.seconds]);
    const out = [
        element("h2", null, g.name),
        element("p", { class: "faint" }, summary(launches)),
        tableOf([["" ], ["kernels", 1], ["read", 1], ["written", 1], [p ? "measured" : "estimated", 1]], rows.map((r) => element("tr", null,
            cell(r[0]), cell(String(r[1]), 1), cell(bytesText(r[2]), 1), cell(bytesText(r[3]), 1), cell(r[4] === null ? "" : timeText(r[4]), 1)))),
    ];
    if (g.symbols.length) out.push(element("h3", null, "Sizes"), sliders());
    out.push(...timeline(), element("h3", null, "Kernels"), kernelTable());
    out.push(element("h3", null, "Roofline"), roofline(), element("p", { class: "faint" },
        "Each kernel at the operations it does for each byte it moves; its height is what " +
        (p ? "was measured" : "the estimate comes to") + ". On a roof, no kernel can be faster."));
    const refused = g.refused.map((r, i) => i);
    if (refused.length) out.push(element("h3", null, "Merges that were refused, costliest first"), refusals(refused));
    return out;
}

const atDefaults = () => view.graph.symbols.every((s) => view.sizes[s.name] === s.default);

// What sizes decide is drawn again as they move; the sliders stay.
function sliders() {
    const box = element("div", { class: "sliders" });
    for (const s of view.graph.symbols) {
        const text = element("input", { type: "number", min: 1, value: view.sizes[s.name], "aria-label": s.name });
        const range = element("input", { type: "range", min: 0, max: 24, step: 0.25, value: Math.log2(view.sizes[s.name]), "aria-label": s.name + ", powers of two" });
        const set = (n) => {
            view.sizes[s.name] = Math.max(1, Math.round(n) || 1);
            remeasure();
        };
        range.addEventListener("input", () => {
            set(2 ** range.value);
            text.value = view.sizes[s.name];
        });
        text.addEventListener("change", () => {
            set(+text.value);
            range.value = Math.log2(view.sizes[s.name]);
        });
        range.addEventListener("change", renderPanel);
        text.addEventListener("change", renderPanel);
        box.append(element("label", null, s.name), range, text);
    }
    const live = element("div", { id: "classes" });
    return element("div", null, box, live, atDefaults() ? null : element("p", null, element("button", { type: "button", onclick: () => {
        for (const s of view.graph.symbols) view.sizes[s.name] = s.default;
        remeasure();
        renderPanel();
    } }, view.graph.profile ? "sizes of the profile" : "sizes of @bench")));
}

function kernelTable() {
    const order = view.graph.kernels.map((k, i) => i).sort((a, b) => view.measured[b].seconds - view.measured[a].seconds);
    const most = view.more ? order.length : 100;
    const rows = order.slice(0, most).map((i) => {
        const k = view.graph.kernels[i], m = view.measured[i], share = m.seconds / view.measured.total, c = k.classes[m.class];
        return element("tr", { class: "pick", tabindex: 0, onclick: () => choose(i), onkeydown: (e) => { if (e.key === "Enter") choose(i); } },
            element("td", null, element("span", { class: "swatch", style: "background:" + strongColor(i) }), `${i + 1}  ${k.name}`,
                element("div", { class: "faint" }, c ? `${c.strategy}, class ${m.class + 1} of ${k.classes.length}` : "")),
            cell(timeText(m.seconds), 1), element("td", null, element("div", { class: "bar", title: Math.round(share * 100) + " % of the time" },
                element("i", { style: `width:${Math.max(1, share * 100)}%` }))), cell(bytesText(m.bytes), 1), cell(m.bound));
    });
    const table = tableOf([["kernel"], ["time", 1], ["share"], ["bytes", 1], ["bound by"]], rows);
    if (order.length <= most) return table;
    return element("div", null, table, element("p", null, element("button", { type: "button", onclick: () => { view.more = true; renderPanel(); } },
        `all ${order.length} kernels`)));
}

function refusals(list) {
    const g = view.graph;
    const saved = (r) => (r.saved < 0 ? 0 : value(r.saved, view.sizes));
    const rows = list.map((i) => g.refused[i]).sort((a, b) => saved(b) - saved(a)).map((r) => {
        const seconds = saved(r) / data.device.bandwidth;
        return element("tr", null,
            element("td", null, element("b", null, r.producer + " → " + r.consumer), element("div", null, r.detail),
                element("div", { class: "faint" }, r.reason + (r.l ? `, ${data.files[r.f].name}:${r.l}` : ""))),
            element("td", { class: "number" }, saved(r) ? bytesText(saved(r)) : "", element("div", { class: "faint" }, saved(r) ? timeText(seconds) : "")));
    });
    return tableOf([["merge"], ["would save", 1]], rows);
}

function roofline() {
    const p = profiled(view.graph, view.sizes);
    const d = p && p.copy_rate ? { bandwidth: p.copy_rate, f32: 0, tensor: 0 } : data.device; // of the CPU engine only a copy is known
    const width = 560, height = 300, left = 52, right = 14, top = 12, bottom = 34;
    const points = view.graph.kernels.map((k, i) => ({ i, m: view.measured[i] })).filter((p) => p.m.work > 0 && p.m.bytes > 0);
    const xs = points.map((p) => p.m.work / p.m.bytes), ys = points.map((p) => p.m.work / p.m.seconds);
    const roof = Math.max(d.tensor, d.f32) || Math.max(1e11, ...ys);
    const x0 = Math.floor(Math.log10(Math.min(0.1, ...xs))), x1 = Math.ceil(Math.log10(Math.max(1000, ...xs)));
    const y0 = Math.floor(Math.log10(Math.min(1e10, ...ys))), y1 = Math.ceil(Math.log10(roof * 1.2));
    const X = (v) => left + ((Math.log10(v) - x0) / (x1 - x0)) * (width - left - right);
    const Y = (v) => height - bottom - ((Math.log10(v) - y0) / (y1 - y0)) * (height - top - bottom);
    element.svg = true;
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "roofline of all kernels" });
    for (let e = x0; e <= x1; e++) {
        svg.append(element("line", { class: "grid", x1: X(10 ** e), x2: X(10 ** e), y1: top, y2: height - bottom }),
            element("text", { x: X(10 ** e), y: height - bottom + 14, "text-anchor": "middle" }, String(+(10 ** e).toPrecision(1))));
    }
    for (let e = y0; e <= y1; e++) {
        svg.append(element("line", { class: "grid", x1: left, x2: width - right, y1: Y(10 ** e), y2: Y(10 ** e) }),
            element("text", { x: left - 6, y: Y(10 ** e) + 4, "text-anchor": "end" }, rateText(10 ** e, "").replace(/\.0+ /, " ")));
    }
    svg.append(element("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "operations a byte"),
        element("text", { x: left + 4, y: top + 10 }, "operations a second"));
    for (const [rate, name] of d.f32 ? [[d.f32, "f32"], [d.tensor, "tensor cores"]] : [[10 ** y1, ""]]) {
        const knee = rate / d.bandwidth, from = 10 ** x0;
        svg.append(element("path", { class: "roof", d: `M${X(from)},${Y(Math.max(10 ** y0, from * d.bandwidth))}L${X(knee)},${Y(rate)}` + (d.f32 ? `L${width - right},${Y(rate)}` : "") }),
            element("text", { x: width - right - 2, y: Y(rate) - 4, "text-anchor": "end" }, name));
    }
    for (const p of points.slice(0, 3000)) {
        const radius = 4 + 7 * Math.sqrt(p.m.seconds / view.measured.total);
        const dot = element("circle", { class: "dot" + (p.i === view.kernel ? " chosen" : ""), cx: X(p.m.work / p.m.bytes), cy: Y(p.m.work / p.m.seconds), r: radius,
            fill: strongColor(p.i), tabindex: 0, onclick: () => choose(p.i) });
        dot.append(element("title", null, `${view.graph.kernels[p.i].name}: ${perByte(p.m)} operations a byte, ${rateText(p.m.work / p.m.seconds, "op/s")}`));
        svg.append(dot);
    }
    element.svg = false;
    return svg;
}

const tabs = [["lines", "lines"], ["plan", "plan"], ["classes", "classes"], ["cuda", "CUDA"], ["ptx", "PTX"], ["sass", "SASS"], ["refused", "refused"]];

// shownTab tells whether there is something to show.
function shownTab(id, k, c) {
    if (id === "cuda") return !data.cpu;
    if (id === "ptx" || id === "sass") return c[id];
    return id !== "refused" || k.refused.length;
}

function kernelPanel(i) {
    const k = view.graph.kernels[i], m = view.measured[i], c = k.classes[m.class] || k.classes[0];
    const list = element("div", { role: "tablist" }, ...tabs.filter(([id]) => shownTab(id, k, c)).map(([id, name]) =>
        element("button", { role: "tab", type: "button", "aria-selected": String(view.tab === id), onclick: () => { view.tab = id; renderPanel(); remember(); } },
            id === "refused" ? `${name} ${k.refused.length}` : id === "classes" ? `${name} ${k.classes.length}` : name)));
    const body = { lines: linesTab, plan: planTab, classes: classesTab, cuda: cudaTab, ptx: textTab("ptx"), sass: textTab("sass"), refused: () => [refusals(k.refused)] }[view.tab] || linesTab;
    return [
        element("p", null, element("button", { type: "button", onclick: () => choose(-1) }, "← all kernels")),
        element("h2", null, element("span", { class: "swatch", style: "background:" + strongColor(i) }), `${i + 1}  ${k.name}`),
        element("p", { class: "faint" }, `${k.template} template · ${k.space}`),
        element("dl", null, ...terms([
            ["time", kernelTime(m)],
            ["moves", `reads ${bytesText(m.read)}, writes ${bytesText(m.written)}`],
            ["counted", m.counted ? m.counted.join(", ") : null],
            ["computes", m.work ? `${rateText(m.work, "op")}, ${perByte(m)} a byte` : null],
            ["strategy", c.strategy + ": " + c.doc],
            ["class", `${m.class + 1} of ${k.classes.length}${c.terms.length ? ": " + c.terms.join(", ") : ": any size"}`],
            ["schedule", c.schedule.join(", ")],
            ["occupancy", data.cpu ? null : occupancy(c)],
            ["runs", k.after ? "in the last blocks of " + k.after : null],
            ["no wgmma", data.cpu ? null : k.slower || null],
        ])),
        list, ...body(k, i, c),
    ];
}

function perByte(m) {
    const n = m.work / Math.max(1, m.bytes);
    return n >= 100 ? String(Math.round(n)) : n.toPrecision(2);
}

const terms = (list) => list.filter(([, text]) => text).flatMap(([name, text]) => [element("dt", null, name), element("dd", null, text)]);

// occupancy is what threads, blocks, shared memory and, of a kernel that is compiled, registers allow.
function occupancy(c) {
    if (!c.threads) return null;
    const d = data.device, limits = [["threads", Math.floor(d.threads / c.threads)], ["blocks", d.blocks]];
    if (c.shared) limits.push(["shared memory", Math.max(1, Math.floor((d.shared + 1024) / (c.shared + 1024)))]);
    if (c.registers) {
        const warps = Math.floor(65536 / (Math.ceil(c.registers / 8) * 8 * 32)); // registers are given to warps, eight a thread at a time
        limits.push(["registers", Math.max(1, Math.floor(warps / Math.ceil(c.threads / 32)))]);
    }
    const [why, blocks] = limits.reduce((a, b) => (b[1] < a[1] ? b : a));
    const share = Math.min(100, Math.round((blocks * c.threads * 100) / d.threads));
    return `at most ${count(blocks, "block")} of ${c.threads} threads on a multiprocessor, ${share} % of its threads, limited by ${why}` +
        (c.shared ? `; ${bytesText(c.shared)} of shared memory a block` : "") +
        (c.registers ? `; ${c.registers} registers a thread` + (c.spills ? `, ${bytesText(c.spills)} of them spill` : "") : "; registers not counted");
}

function transferRows(k) {
    const row = (what) => (t) => element("tr", null, cell(what), element("td", null, t.name), element("td", { class: "faint" }, t.type),
        cell(bytesText(value(t.bytes, view.sizes)), 1), cell(t.kind === "temporary" ? "temporary" : ""));
    return [...k.reads.map(row("reads")), ...k.writes.map(row("writes"))];
}

// sourceLines shows the lines of the program that a kernel computes, with their operations.
function sourceLines(k, onPick) {
    const byLine = new Map();
    for (const op of k.ops) {
        const key = op.f + ":" + op.l;
        if (!byLine.has(key)) byLine.set(key, { f: op.f, l: op.l, ops: [] });
        byLine.get(key).ops.push(op);
    }
    const groups = [...byLine.values()].sort((a, b) => a.f - b.f || a.l - b.l);
    const box = element("div", { class: "lines code source" });
    let file = -1;
    for (const g of groups) {
        if (g.f !== file && (data.files.length > 1 || g.f > 0)) box.append(element("div", null, element("span", { class: "no" }), element("span", { class: "what" }, data.files[g.f].name)));
        file = g.f;
        const text = [...(data.files[g.f].text.split("\n")[g.l - 1] || "")];
        const inside = new Set();
        for (const op of g.ops) for (let c = op.a; c < op.z; c++) inside.add(c);
        const parts = [];
        for (let c = 0; c < text.length;) {
            const start = c, on = inside.has(c);
            while (c < text.length && inside.has(c) === on) c++;
            const piece = text.slice(start, c).join("");
            parts.push(on ? element("mark", null, piece) : piece);
        }
        const names = g.ops.map((o) => o.n + (o.c > 1 ? " ×" + o.c : "") + (o.call ? " in " + o.call : "")).join(", ");
        const line = element("div", { "data-at": `${data.files[g.f].name}:${g.l}`, title: names }, element("span", { class: "no" }, String(g.l)),
            element("span", { class: "text" }, ...parts), element("span", { class: "what" }, [...new Set(g.ops.map((o) => o.n))].join(" ")));
        if (onPick) line.addEventListener("click", () => onPick(line.dataset.at));
        box.append(line);
    }
    return box;
}

function linesTab(k) {
    return [sourceLines(k), tableOf([[""], ["tensor"], ["type"], ["bytes", 1], [""]], transferRows(k))];
}

function planTab(k) {
    return [element("pre", null, k.plan)];
}

const textTab = (id) => (k, i, c) => (c[id] ? [element("pre", { class: "cuda" }, data.sources[c[id] - 1])] : linesTab(k));

function classesTab(k, i) {
    const chosen = view.measured[i].class;
    const rows = k.classes.map((c, n) => element("tr", n === chosen ? { class: "chosen" } : null, cell(String(n + 1), 1),
        element("td", null, c.strategy, element("div", { class: "faint" }, c.schedule.join(", "))), element("td", null, c.terms.join(", ") || "any size")));
    return [sliders(), element("p", { class: "faint" }, "The first class whose condition holds runs. Marked: the one that the sizes choose."),
        tableOf([["", 1], ["body"], ["where"]], rows)];
}

// cudaTab shows the program's lines and the CUDA text, each of which points into the other.
function cudaTab(k, i, c) {
    if (c.source < 0) {
        return [element("p", { class: "faint" }, k.after ? "Its text is in the kernel " + k.after + "." : "The page has no text of this kernel.")];
    }
    const text = c.defines + data.sources[c.source], lines = text.split("\n");
    const box = element("div", { class: "lines code cuda" });
    const at = (line) => { const m = /\/\/ (\S+:\d+):\d+\s*$/.exec(line); return m && m[1]; };
    const light = (place, scroll) => {
        for (const part of document.querySelectorAll("#panel .lines")) {
            const all = [...part.querySelectorAll("[data-at]")];
            all.forEach((l) => l.classList.toggle("lit", l.dataset.at === place));
            const first = all.find((l) => l.dataset.at === place);
            if (first && part !== scroll) part.scrollTop = first.offsetTop - part.offsetTop - part.clientHeight / 3;
        }
    };
    lines.forEach((line, n) => {
        const place = at(line);
        const row = element("div", place ? { "data-at": place } : null, element("span", { class: "no" }, String(n + 1)), element("span", { class: "text" }, line));
        if (place) row.addEventListener("click", () => light(place, box));
        box.append(row);
    });
    const out = [element("p", { class: "faint" }, "A line of the program shows the text that it became, and the other way round."),
        sourceLines(k, (place) => light(place, null)), box];
    if (c.prelude >= 0 && data.sources[c.prelude]) {
        const rest = element("details", null, element("summary", null, `the prelude, ${data.sources[c.prelude].split("\n").length} lines`));
        rest.addEventListener("toggle", () => { if (rest.open && rest.children.length === 1) rest.append(element("pre", null, data.sources[c.prelude])); });
        out.push(rest);
    }
    return out;
}
