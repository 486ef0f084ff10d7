"use strict";
// Runs the extension with a stand-in for the editor: it opens a program, changes it, and
// asks what an editor asks. What comes back is printed as JSON.
//
//	node play.js FUSEC FILE

const Module = require("module");
const path = require("path");
const fs = require("fs");

const [fusec, file] = process.argv.slice(2);
const providers = {}, commands = {}, events = {}, shown = { diagnostics: [], opened: [], errors: [] };
const disposable = () => ({ dispose() {} });
const listen = (name) => (f) => { (events[name] = events[name] || []).push(f); return disposable(); };

class Position { constructor(line, character) { Object.assign(this, { line, character }); } }
class Range {
    constructor(a, b, c, d) { this.start = new Position(a, b); this.end = new Position(c, d); }
}
const record = (...names) => class { constructor(...values) { names.forEach((n, i) => { this[n] = values[i]; }); } };

const languages = new Proxy({}, {
    get: (_, name) => {
        if (name === "createDiagnosticCollection") return () => ({ set: (uri, list) => { shown.diagnostics = list; }, dispose() {} });
        return (selector, provider) => { providers[name.replace(/^register/, "").replace(/Provider$/, "")] = provider; return disposable(); };
    },
});

const document = {
    languageId: "fuse", version: 1, text: fs.readFileSync(file, "utf8"),
    uri: { toString: () => "file://" + path.resolve(file) }, getText() { return this.text; },
};

const vscode = {
    languages, Position, Range,
    Uri: { parse: (text) => ({ toString: () => text, text }) },
    EventEmitter: class { constructor() { this.event = () => disposable(); } fire() { shown.refreshed = true; } dispose() {} },
    Hover: record("contents", "range"), Location: record("uri", "range"), MarkdownString: record("value"),
    DocumentHighlight: record("range", "kind"), CompletionItem: record("label", "kind"), SignatureHelp: record(),
    SignatureInformation: record("label", "documentation"), ParameterInformation: record("label"), InlayHint: record("position", "label", "kind"),
    SemanticTokens: record("data"), SemanticTokensLegend: record("types", "modifiers"), TextEdit: record("range", "newText"),
    CodeAction: record("title", "kind"), CodeActionKind: { QuickFix: "quickfix", RefactorRewrite: "rewrite" },
    DocumentSymbol: record("name", "detail", "kind", "range", "selectionRange"), CodeLens: record("range", "command"),
    FoldingRange: record("start", "end"), Diagnostic: record("range", "message", "severity"), DiagnosticRelatedInformation: record("location", "message"),
    WorkspaceEdit: class { constructor() { this.edits = []; } replace(uri, range, text) { this.edits.push({ range, text }); } },
    commands: { registerCommand: (name, f) => { commands[name] = f; return disposable(); } },
    env: { openExternal: async (uri) => { shown.opened.push(uri.text); return true; } },
    window: {
        createOutputChannel: () => ({ append() {}, appendLine() {}, dispose() {} }), showErrorMessage: (text) => shown.errors.push(text),
        activeTextEditor: { document },
    },
    workspace: {
        textDocuments: [document], workspaceFolders: [], getConfiguration: () => ({ get: (name) => (name === "path" ? fusec : "H200") }),
        onDidOpenTextDocument: listen("open"), onDidCloseTextDocument: listen("close"), onDidChangeTextDocument: listen("change"),
    },
};

const load = Module._load;
Module._load = (request, ...rest) => (request === "vscode" ? vscode : load(request, ...rest));
const extension = require("../vscode/extension.js");

const until = async (holds) => {
    for (let i = 0; i < 600 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 50));
};

const find = (text) => {
    const before = document.text.slice(0, document.text.indexOf(text)).split("\n");
    return new Position(before.length - 1, before[before.length - 1].length);
};

// replace changes the text as an editor does.
function replace(from, to) {
    const start = find(from), end = new Position(start.line, start.character + from.length);
    document.text = document.text.replace(from, to);
    document.version++;
    for (const f of events.change) f({ document, contentChanges: [{ range: { start, end }, text: to }] });
}

async function main() {
    await extension.activate({ subscriptions: [] });
    const whole = new Range(0, 0, 1000, 0), out = {};
    await until(() => shown.refreshed);
    out.lenses = (await providers.CodeLens.provideCodeLenses(document)).map((l) => l.command.title);
    out.hints = (await providers.InlayHints.provideInlayHints(document, whole)).map((h) => h.label);
    out.hover = (await providers.Hover.provideHover(document, find("exp("))).contents.value;
    out.symbols = (await providers.DocumentSymbol.provideDocumentSymbols(document)).map((s) => s.name);
    out.tokens = (await providers.DocumentSemanticTokens.provideDocumentSemanticTokens(document)).data.length;
    out.definition = (await providers.Definition.provideDefinition(document, find("e / sum")))[0].range.start;
    out.rename = (await providers.Rename.provideRenameEdits(document, find("e / sum"), "weights")).edits.length;
    replace("exp(", "epx(");
    await until(() => shown.diagnostics.length);
    out.diagnostics = shown.diagnostics.map((d) => d.message);
    const actions = await providers.CodeActions.provideCodeActions(document, { start: find("epx("), end: find("epx(") });
    out.actions = actions.map((a) => [a.title, a.edit.edits[0].text]);
    replace("epx(", "exp(");
    await until(() => !shown.diagnostics.length);
    replace("    y = ", "    y =   ");
    out.edits = (await providers.DocumentFormattingEdit.provideDocumentFormattingEdits(document)).map((e) => e.newText);
    out.completion = (await providers.CompletionItem.provideCompletionItems(document, find("e / sum"))).length;
    await commands["fusec.showKernels"]();
    out.opened = shown.opened;
    out.errors = shown.errors;
    await extension.deactivate();
    console.log(JSON.stringify(out));
}

main().catch((e) => {
    console.error(e);
    process.exit(1);
});
