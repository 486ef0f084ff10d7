// What a profile has measured: the times of kernels, and a timeline with the memory that is in use.

// profiled is the profile of the graph, where it is of the sizes that are shown.
function profiled(graph, sizes) {
    const p = graph.profile;
    return p && graph.symbols.every((s) => p.sizes[s.name] === sizes[s.name]) ? p : null;
}

// takeMeasured puts what was measured in place of estimates. A kernel that was not launched by itself took no time.
function takeMeasured(all, p) {
    for (const m of all) Object.assign(m, { estimate: m.seconds, seconds: 0, bound: "", roof: 0 });
    for (const k of p.kernels) {
        if (k.k >= 0) Object.assign(all[k.k], { seconds: k.median, least: k.min, bound: k.roof, roof: k.of, counted: k.counted });
    }
}

// summary is the line below the name of the graph.
function summary(launches) {
    const g = view.graph, p = profiled(g, view.sizes), kernels = `${count(launches, "kernel")} instead of ${g.unfused.kernels}, `;
    if (!p) return kernels + `about ${timeText(view.measured.total)} on ${data.device.name}`;
    return kernels + `${timeText(p.median)} measured on ${p.device}, at least ${timeText(p.min)} in ${count(p.count, "run")}`;
}

// kernelTime says how long a kernel takes.
function kernelTime(m) {
    const share = `${Math.round((m.seconds / view.measured.total) * 100)} % of the graph`;
    const bound = m.bound ? `; bound by ${m.bound}, ${Math.round(m.roof * 100)} % of that roof` : "";
    if (m.estimate === undefined) return `${timeText(m.seconds)}, ${share}${bound}`;
    if (m.least === undefined) return "not launched by itself";
    const estimate = view.graph.profile.copy_rate ? "" : `; estimated ${timeText(m.estimate)}`;
    return `${timeText(m.seconds)} measured, at least ${timeText(m.least)}, ${share}${bound}${estimate}`;
}

// timeline shows one run: kernels one behind the other, what lies between them dealt out evenly, and memory.
function timeline() {
    const p = view.graph.profile;
    if (!p) return [];
    if (!profiled(view.graph, view.sizes)) {
        const sizes = Object.entries(p.sizes || {}).map(([name, n]) => `${name}=${n}`).join(" ");
        return [element("h3", null, "Timeline"), element("p", { class: "faint" }, `The profile is of ${sizes}; the times of other sizes are estimates` +
            (p.copy_rate ? ` for ${data.device.name}.` : "."))];
    }
    const gap = Math.max(0, p.gaps) / Math.max(1, p.kernels.length), steps = [];
    let at = 0;
    for (const k of p.kernels) {
        at += gap;
        steps.push({ k, from: at, to: at + k.median });
        at += k.median;
    }
    return [element("h3", null, "Timeline"), timelinePicture(p, steps, at), element("p", { class: "faint" }, timelineText(p, steps))];
}

function timelineText(p, steps) {
    const gaps = p.gaps < 0 ? `kernels overlap by ${timeText(-p.gaps)}` : `${timeText(p.gaps)} between kernels`;
    const most = Math.max(p.fixed, ...steps.map((s) => s.k.live));
    const host = p.host > 0 ? ` Beside it a call takes ${timeText(p.host)} on the host.` : "";
    return `One run: ${gaps}.${host} The inputs take ${timeText(p.upload)} to upload. ` +
        `Tensors take at most ${bytesText(most)}, of which ${bytesText(p.fixed)} are inputs and outputs.`;
}

function timelinePicture(p, steps, end) {
    const width = 560, left = 64, right = 14, bar = 30, memory = 64, top = 8, bottom = 22, height = top + bar + 14 + memory + bottom;
    const X = (t) => left + (t / Math.max(end, 1e-12)) * (width - left - right);
    const most = Math.max(1, p.fixed, ...steps.map((s) => s.k.live)), floor = height - bottom;
    const Y = (bytes) => floor - (bytes / most) * memory;
    element.svg = true;
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "timeline of the kernels, and memory" });
    const label = (y, text) => svg.append(element("text", { x: left - 6, y, "text-anchor": "end" }, text));
    label(top + bar / 2 + 4, "kernels");
    label(floor - memory + 8, bytesText(most));
    label(floor, "0 B");
    let way = `M${left},${floor}L${left},${Y(p.fixed)}`;
    for (const s of steps) {
        way += `L${X(s.from)},${Y(p.fixed)}L${X(s.from)},${Y(s.k.live)}L${X(s.to)},${Y(s.k.live)}L${X(s.to)},${Y(p.fixed)}`;
        const known = s.k.k >= 0;
        const box = element("rect", { class: "dot" + (known && s.k.k === view.kernel ? " chosen" : ""), x: X(s.from), y: top, height: bar,
            width: Math.max(0.5, X(s.to) - X(s.from)), fill: known ? strongColor(s.k.k) : theme.edge, tabindex: known ? 0 : null,
            onclick: () => known && choose(s.k.k), onkeydown: (e) => { if (known && e.key === "Enter") choose(s.k.k); } });
        box.append(element("title", null, `${s.k.name}: ${timeText(s.k.median)}, ${bytesText(s.k.live)} in use`));
        svg.append(box);
    }
    svg.append(element("path", { class: "memory", d: `${way}L${X(end)},${floor}Z` }));
    for (let i = 0; i <= 4; i++) {
        const t = (end * i) / 4, anchor = i === 4 ? "end" : i ? "middle" : "start";
        svg.append(element("line", { class: "grid", x1: X(t), x2: X(t), y1: top + bar, y2: floor }),
            element("text", { x: X(t), y: height - 6, "text-anchor": anchor }, i ? timeText(t) : "0"));
    }
    element.svg = false;
    return svg;
}
