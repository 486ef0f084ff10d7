// The model: what the data says for given sizes. Estimates are those of the compiler.

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

const operations = {
    add: (a, b) => a + b, sub: (a, b) => a - b, mul: (a, b) => a * b, floordiv: (a, b) => (b ? Math.floor(a / b) : 0),
    mod: (a, b) => (b ? a - b * Math.floor(a / b) : 0), pow: (a, b) => a ** b, min: Math.min, max: Math.max,
    lt: (a, b) => +(a < b), le: (a, b) => +(a <= b), gt: (a, b) => +(a > b), ge: (a, b) => +(a >= b), eq: (a, b) => +(a === b),
    ne: (a, b) => +(a !== b), and: (a, b) => +(a && b), or: (a, b) => +(a || b),
    bitand: (a, b) => Number(BigInt(a) & BigInt(b)), bitor: (a, b) => Number(BigInt(a) | BigInt(b)),
    bitxor: (a, b) => Number(BigInt(a) ^ BigInt(b)), shl: (a, b) => a * 2 ** b, shr: (a, b) => Math.floor(a / 2 ** b),
};
const unary = { neg: (a) => -a, abs: Math.abs, sign: Math.sign, not: (a) => +!a, bitnot: (a) => -a - 1 };

// value evaluates a size; without a size, null.
function value(at, sizes) {
    if (at < 0) return null;
    const stack = [];
    for (const step of data.exprs[at]) {
        if (typeof step === "number") stack.push(step);
        else if (step[0] === "$") stack.push(sizes[step.slice(1)]);
        else if (unary[step]) stack.push(unary[step](stack.pop()));
        else if (step === "where") {
            const c = stack.pop(), b = stack.pop(), a = stack.pop();
            stack.push(a ? b : c);
        } else {
            const b = stack.pop(), a = stack.pop();
            stack.push(operations[step] ? operations[step](a, b) : NaN);
        }
    }
    return stack[0];
}

// measure says what a kernel moves, computes and takes at the given sizes, and what bounds it.
function measure(kernel, sizes) {
    const d = data.device;
    const sum = (list) => list.reduce((total, t) => total + value(t.bytes, sizes), 0);
    const m = { read: sum(kernel.reads), written: sum(kernel.writes), flops: 0, special: 0, products: 0 };
    for (const w of kernel.work) {
        const points = value(w.p, sizes);
        m.flops += w.f * points;
        m.special += w.s * points;
        m.products += w.m * points;
    }
    const bytes = m.read + m.written;
    const rate = kernel.rate || d.f32;
    const work = Math.max(bytes ? (bytes + d.half) / d.bandwidth : 0, m.flops / d.f32, m.special / d.special, m.products / rate);
    m.seconds = d.launch + work;
    // what the estimate is bound by: what would take longest by itself
    const roofs = { memory: bytes / d.bandwidth, arithmetic: m.flops / d.f32, "special functions": m.special / d.special,
        products: m.products / rate, launch: d.launch };
    const most = Math.max(...Object.values(roofs));
    m.bound = Object.keys(roofs).find((k) => roofs[k] === most);
    m.roof = Math.min(1, most / m.seconds);
    m.bytes = bytes;
    m.work = m.flops + m.products;
    m.class = kernel.classes.findIndex((c) => c.when < 0 || value(c.when, sizes));
    return m;
}

function measureAll(graph, sizes) {
    const all = graph.kernels.map((k) => measure(k, sizes)), p = profiled(graph, sizes);
    if (p) takeMeasured(all, p);
    all.total = all.reduce((t, m) => t + m.seconds, 0);
    return all;
}

// Words for numbers.

function bytesText(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let i = 0;
    while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
    return (i ? n.toFixed(1) : n) + " " + units[i];
}

function timeText(s) {
    if (s >= 1) return s.toPrecision(3) + " s";
    return s >= 1e-3 ? (s * 1e3).toPrecision(3) + " ms" : (s * 1e6).toPrecision(3) + " µs";
}

function rateText(n, unit) {
    const steps = ["", "k", "M", "G", "T", "P"];
    let i = 0;
    while (n >= 1000 && i < steps.length - 1) { n /= 1000; i++; }
    return n.toPrecision(3) + " " + steps[i] + unit;
}

const count = (n, what) => n + " " + what + (n === 1 ? "" : "s");

// Colours. A kernel has a hue of its own; neighbours in order differ.

let theme = {};

function readTheme() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["paper", "ground", "ink", "faint", "line", "accent", "edge", "input", "node", "mark", "light", "tone", "deep"]) {
        theme[name] = style.getPropertyValue("--" + name).trim();
    }
}

const hue = (k) => Math.round((k * 137.508 + 215) % 360);
const boxColor = (k) => `hsl(${hue(k)} 60% ${theme.light})`;
const nodeColor = (k) => `hsl(${hue(k)} 55% ${theme.tone})`;
const strongColor = (k) => `hsl(${hue(k)} 55% ${theme.deep})`;

// The drawing: what is in sight, with as much as can be read at the zoom.

const nodeHeight = 44;
const stage = { x: 0, y: 0, zoom: 1, width: 0, height: 0, dirty: false, moved: false };
const canvas = $("canvas");
const pen = canvas.getContext("2d");

// resize follows the room there is; until the user has moved the drawing, all of it is shown.
function resize() {
    const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
    const width = Math.max(1, Math.round(box.width * ratio)), height = Math.max(1, Math.round(box.height * ratio));
    if (width === canvas.width && height === canvas.height) return;
    stage.width = box.width;
    stage.height = box.height;
    canvas.width = width;
    canvas.height = height;
    if (!view.drawing) return;
    if (!stage.moved) fit();
    paint(); // at once: the canvas is empty now
}

function redraw() {
    if (stage.dirty) return;
    stage.dirty = true;
    requestAnimationFrame(() => { stage.dirty = false; paint(); });
}

function fit(box) {
    const d = view.drawing, b = box || { x: 0, y: 0, w: d.w, h: d.h }, margin = 28;
    stage.moved = !!box;
    const room = { w: Math.max(60, stage.width - 2 * margin), h: Math.max(60, stage.height - 2 * margin) };
    stage.zoom = Math.min(room.w / Math.max(1, b.w), room.h / Math.max(1, b.h), box ? 1.1 : 1.35);
    stage.x = stage.width / 2 - (b.x + b.w / 2) * stage.zoom;
    stage.y = stage.height / 2 - (b.y + b.h / 2) * stage.zoom;
    redraw();
}

function zoomAt(x, y, factor) {
    const zoom = Math.min(4, Math.max(0.004, stage.zoom * factor));
    stage.x = x - ((x - stage.x) * zoom) / stage.zoom;
    stage.y = y - ((y - stage.y) * zoom) / stage.zoom;
    stage.zoom = zoom;
    stage.moved = true;
    redraw();
}

const toDrawing = (x, y) => [(x - stage.x) / stage.zoom, (y - stage.y) / stage.zoom];

// firstNode is the place of the first node at or below y: nodes are in that order.
function firstNode(nodes, y) {
    let low = 0, high = nodes.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (nodes[middle].y < y) low = middle + 1;
        else high = middle;
    }
    return low;
}

function paint() {
    const ratio = window.devicePixelRatio || 1, d = view.drawing;
    if (!d) return;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = theme.ground;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.setTransform(stage.zoom * ratio, 0, 0, stage.zoom * ratio, stage.x * ratio, stage.y * ratio);
    const [left, top] = toDrawing(0, 0), [right, bottom] = toDrawing(stage.width, stage.height);
    const sight = { left, top, right, bottom };
    paintBoxes(d, sight);
    paintEdges(d, sight);
    paintNodes(d, sight);
}

function paintBoxes(d, s) {
    const far = stage.zoom < 0.12;
    for (const b of d.boxes) {
        if (b.x > s.right || b.x + b.w < s.left || b.y > s.bottom || b.y + b.h < s.top) continue;
        const chosen = b.k === view.kernel;
        pen.fillStyle = boxColor(b.k);
        pen.strokeStyle = strongColor(b.k);
        pen.lineWidth = chosen ? 4 : 1.5;
        if (far) {
            pen.fillRect(b.x, b.y, b.w, b.h);
            if (chosen) pen.strokeRect(b.x, b.y, b.w, b.h);
            continue;
        }
        pen.beginPath();
        pen.roundRect(b.x, b.y, b.w, b.h, 12);
        pen.fill();
        pen.stroke();
        if (stage.zoom < 0.3) continue;
        const m = view.measured[b.k], k = view.graph.kernels[b.k];
        pen.textBaseline = "alphabetic";
        pen.fillStyle = strongColor(b.k);
        pen.font = "600 13px system-ui, sans-serif";
        pen.fillText(fitted(b.k + 1 + "  " + k.name, b.w - 28), b.x + 14, b.y + 20);
        pen.fillStyle = theme.faint;
        pen.font = "11.5px system-ui, sans-serif";
        pen.fillText(fitted(`${timeText(m.seconds)} · ${bytesText(m.bytes)} · ${m.bound}`, b.w - 28), b.x + 14, b.y + 36);
    }
}

const fits = new Map();

// fitted shortens a text to a width, in the font that is set.
function fitted(text, width) {
    const key = pen.font + "|" + Math.round(width) + "|" + text;
    let out = fits.get(key);
    if (out !== undefined) return out;
    out = text;
    if (pen.measureText(text).width > width) {
        let low = 0, high = text.length;
        while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (pen.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
            else high = middle - 1;
        }
        out = text.slice(0, low) + "…";
    }
    if (fits.size > 20000) fits.clear();
    fits.set(key, out);
    return out;
}

// Edges of one width and colour are one path: thousands are drawn at once.
function paintEdges(d, s) {
    const near = stage.zoom > 0.22, buckets = new Map();
    for (const e of d.edges) {
        if (e.top > s.bottom || e.bottom < s.top || e.left > s.right || e.right < s.left) continue;
        if (e.inner && stage.zoom < 0.1) continue;
        const lit = view.lit && (view.lit === e.from || view.lit === e.to);
        const key = lit ? "lit" + e.width : e.width + (e.inner ? 100 : 0);
        if (!buckets.has(key)) buckets.set(key, { width: e.width, inner: e.inner, lit, list: [] });
        buckets.get(key).list.push(e);
    }
    for (const b of buckets.values()) {
        pen.beginPath();
        for (const e of b.list) trace(e.way, near);
        pen.strokeStyle = pen.fillStyle = b.lit ? theme.accent : theme.edge;
        pen.globalAlpha = b.lit ? 1 : b.inner ? 0.6 : 0.8;
        pen.lineWidth = Math.max(b.width, 0.7 / stage.zoom);
        pen.stroke();
        if (stage.zoom > 0.3) {
            pen.beginPath();
            for (const e of b.list) {
                const h = 5 + e.width, x = e.way[e.way.length - 2], y = e.way[e.way.length - 1];
                pen.moveTo(x, y + 1);
                pen.lineTo(x - h / 2, y - h);
                pen.lineTo(x + h / 2, y - h);
            }
            pen.fill();
        }
    }
    pen.globalAlpha = 1;
}

// trace follows the points of an edge, in curves that are upright at each.
function trace(way, near) {
    pen.moveTo(way[0], way[1]);
    for (let i = 2; i < way.length; i += 2) {
        const x0 = way[i - 2], y0 = way[i - 1], x = way[i], y = way[i + 1], bend = (y - y0) / 2;
        if (near && x !== x0) pen.bezierCurveTo(x0, y0 + bend, x, y - bend, x, y);
        else pen.lineTo(x, y);
    }
}

function nodeFill(n) {
    if (n.k === "input") return theme.input;
    if (!n.in || !n.in.length) return theme.node;
    return view.which === "before" ? nodeColor(n.in[0]) : theme.node;
}

function paintNodes(d, s) {
    const detail = stage.zoom > 0.42, far = stage.zoom < 0.16;
    pen.textBaseline = "alphabetic";
    for (let i = firstNode(d.nodes, s.top - nodeHeight); i < d.nodes.length && d.nodes[i].y < s.bottom; i++) {
        const n = d.nodes[i];
        if (n.x > s.right || n.x + n.w < s.left) continue;
        const chosen = view.kernel >= 0 && n.in && n.in.includes(view.kernel);
        const matched = view.matches && view.matches.has(i);
        pen.globalAlpha = view.matches && !matched ? 0.35 : 1;
        pen.fillStyle = matched ? theme.mark : nodeFill(n);
        if (far) {
            pen.fillRect(n.x, n.y, n.w, nodeHeight);
            continue;
        }
        pen.strokeStyle = chosen || n.in && n.in.length ? strongColor(chosen ? view.kernel : n.in[0]) : theme.edge;
        pen.lineWidth = view.lit === n || matched && view.at === i ? 3 : chosen && view.which === "before" ? 2.5 : 1;
        pen.beginPath();
        pen.roundRect(n.x, n.y, n.w, nodeHeight, n.k === "input" ? nodeHeight / 2 : 7);
        pen.fill();
        pen.stroke();
        if (n.out) {
            pen.beginPath();
            pen.roundRect(n.x - 3, n.y - 3, n.w + 6, nodeHeight + 6, 10);
            pen.lineWidth = 1;
            pen.stroke();
        }
        if (!detail) {
            if (stage.zoom > 0.22) {
                pen.fillStyle = theme.ink;
                pen.font = "600 18px system-ui, sans-serif";
                pen.fillText(fitted(n.n, n.w - 16), n.x + 8, n.y + 28);
            }
            continue;
        }
        pen.fillStyle = theme.ink;
        pen.font = "600 12.5px system-ui, sans-serif";
        const round = n.k === "input", inset = round ? 16 : 10;
        pen.fillText(fitted(n.n, n.w - 2 * inset), n.x + inset, n.y + (round ? 19 : 15));
        pen.font = "11px system-ui, sans-serif";
        if (!round) pen.fillText(fitted(n.o, n.w - 20), n.x + 10, n.y + 27.5);
        pen.fillStyle = theme.faint;
        pen.fillText(fitted(n.t, n.w - 2 * inset), n.x + inset, n.y + (round ? 33 : 39.5));
    }
    pen.globalAlpha = 1;
}

// prepare gives each edge its nodes, its extent, and its weight at the sizes.
function prepare(drawing, sizes) {
    const bytes = drawing.nodes.map((n) => Math.max(1, value(n.b, sizes) || 1));
    const edges = drawing.edges.map((e) => {
        const out = { from: drawing.nodes[e.a], to: e.b < 0 ? null : drawing.nodes[e.b], inner: !!e.i, way: e.p, bytes: bytes[e.a],
            left: Infinity, right: -Infinity, top: e.p[1], bottom: e.p[e.p.length - 1] };
        out.width = out.inner ? 1.2 : Math.min(7, 1 + Math.round(Math.log2(out.bytes / 16384 + 1) * 0.4));
        for (let i = 0; i < e.p.length; i += 2) {
            out.left = Math.min(out.left, e.p[i]);
            out.right = Math.max(out.right, e.p[i]);
        }
        return out;
    });
    return { ...drawing, edges };
}

// under is the node, or else the kernel, at a place of the drawing.
function under(x, y) {
    const nodes = view.drawing.nodes;
    for (let i = firstNode(nodes, y - nodeHeight); i < nodes.length && nodes[i].y <= y; i++) {
        const n = nodes[i];
        if (x >= n.x && x <= n.x + n.w && y <= n.y + nodeHeight) return { node: n };
    }
    const box = view.drawing.boxes.find((b) => x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h);
    return box ? { kernel: box.k } : {};
}
