"use strict";
// The extension runs "fusec lsp" and hands what it says to the editor.

const vscode = require("vscode");
const { Client } = require("./client.js");

const selector = { language: "fuse" };
let client, output, diagnostics;
let subscriptions = [];
const refreshLenses = new vscode.EventEmitter();
const refreshHints = new vscode.EventEmitter();

const range = (r) => new vscode.Range(r.start.line, r.start.character, r.end.line, r.end.character);
const place = (document, position) => ({
    textDocument: { uri: document.uri.toString() },
    position: position && { line: position.line, character: position.character },
});
const location = (l) => new vscode.Location(vscode.Uri.parse(l.uri), range(l.range));
const markdown = (m) => (m ? new vscode.MarkdownString(m.value) : undefined);

function edit(changes) {
    const out = new vscode.WorkspaceEdit();
    for (const [uri, edits] of Object.entries((changes && changes.changes) || {})) {
        for (const e of edits) out.replace(vscode.Uri.parse(uri), range(e.range), e.newText);
    }
    return out;
}

// ask sends a request about a document; what goes wrong is logged, and answers nothing.
async function ask(method, params, token) {
    try {
        return await client.request("textDocument/" + method, params, token);
    } catch (e) {
        output.appendLine(method + ": " + e.message);
        return null;
    }
}

function providers(legend) {
    const l = vscode.languages;
    return [
        l.registerHoverProvider(selector, {
            async provideHover(document, position, token) {
                const h = await ask("hover", place(document, position), token);
                return h && new vscode.Hover(markdown(h.contents), range(h.range));
            },
        }),
        l.registerDefinitionProvider(selector, {
            async provideDefinition(document, position, token) {
                return ((await ask("definition", place(document, position), token)) || []).map(location);
            },
        }),
        l.registerReferenceProvider(selector, {
            async provideReferences(document, position, context, token) {
                return ((await ask("references", { ...place(document, position), context }, token)) || []).map(location);
            },
        }),
        l.registerDocumentHighlightProvider(selector, {
            async provideDocumentHighlights(document, position, token) {
                const found = (await ask("documentHighlight", place(document, position), token)) || [];
                return found.map((h) => new vscode.DocumentHighlight(range(h.range), h.kind - 1));
            },
        }),
        l.registerRenameProvider(selector, {
            async prepareRename(document, position, token) {
                const r = await client.request("textDocument/prepareRename", place(document, position), token);
                return { range: range(r.range), placeholder: r.placeholder };
            },
            async provideRenameEdits(document, position, newName, token) {
                return edit(await client.request("textDocument/rename", { ...place(document, position), newName }, token));
            },
        }),
        l.registerCompletionItemProvider(selector, {
            async provideCompletionItems(document, position, token) {
                const list = await ask("completion", place(document, position), token);
                return ((list && list.items) || []).map((i) => {
                    const item = new vscode.CompletionItem(i.label, i.kind - 1);
                    item.detail = i.detail;
                    item.documentation = markdown(i.documentation);
                    item.sortText = i.sortText;
                    return item;
                });
            },
        }, "@", "(", "["),
        l.registerSignatureHelpProvider(selector, {
            async provideSignatureHelp(document, position, token) {
                const found = await ask("signatureHelp", place(document, position), token);
                if (!found) return null;
                const help = new vscode.SignatureHelp();
                help.activeSignature = found.activeSignature;
                help.activeParameter = found.activeParameter;
                help.signatures = found.signatures.map((s) => {
                    const signature = new vscode.SignatureInformation(s.label, markdown(s.documentation));
                    signature.parameters = s.parameters.map((p) => new vscode.ParameterInformation(p.label));
                    return signature;
                });
                return help;
            },
        }, "(", ","),
        l.registerInlayHintsProvider(selector, {
            onDidChangeInlayHints: refreshHints.event,
            async provideInlayHints(document, at, token) {
                const params = { ...place(document), range: { start: at.start, end: at.end } };
                return ((await ask("inlayHint", params, token)) || []).map((h) => {
                    const hint = new vscode.InlayHint(new vscode.Position(h.position.line, h.position.character), h.label, h.kind);
                    hint.tooltip = h.tooltip;
                    hint.paddingLeft = h.paddingLeft;
                    return hint;
                });
            },
        }),
        l.registerDocumentSemanticTokensProvider(selector, {
            async provideDocumentSemanticTokens(document, token) {
                const found = await ask("semanticTokens/full", place(document), token);
                return found && new vscode.SemanticTokens(new Uint32Array(found.data));
            },
        }, new vscode.SemanticTokensLegend(legend.tokenTypes, legend.tokenModifiers)),
        l.registerDocumentFormattingEditProvider(selector, {
            async provideDocumentFormattingEdits(document, options, token) {
                const edits = (await ask("formatting", place(document), token)) || [];
                return edits.map((e) => new vscode.TextEdit(range(e.range), e.newText));
            },
        }),
        l.registerCodeActionsProvider(selector, {
            async provideCodeActions(document, at, context, token) {
                const params = { ...place(document), range: { start: at.start, end: at.end }, context: { diagnostics: [] } };
                return ((await ask("codeAction", params, token)) || []).map((a) => {
                    const kind = a.kind === "quickfix" ? vscode.CodeActionKind.QuickFix : vscode.CodeActionKind.RefactorRewrite;
                    const action = new vscode.CodeAction(a.title, kind);
                    action.edit = edit(a.edit);
                    action.isPreferred = a.isPreferred;
                    return action;
                });
            },
        }),
        l.registerDocumentSymbolProvider(selector, {
            async provideDocumentSymbols(document, token) {
                const symbol = (s) => {
                    const out = new vscode.DocumentSymbol(s.name, s.detail || "", s.kind - 1, range(s.range), range(s.selectionRange));
                    out.children = (s.children || []).map(symbol);
                    return out;
                };
                return ((await ask("documentSymbol", place(document), token)) || []).map(symbol);
            },
        }),
        l.registerCodeLensProvider(selector, {
            onDidChangeCodeLenses: refreshLenses.event,
            async provideCodeLenses(document, token) {
                return ((await ask("codeLens", place(document), token)) || []).map((c) => new vscode.CodeLens(range(c.range), {
                    title: c.command.title,
                    command: c.command.command ? "fusec.openView" : "",
                    arguments: c.command.arguments,
                }));
            },
        }),
        l.registerFoldingRangeProvider(selector, {
            async provideFoldingRanges(document, context, token) {
                const found = (await ask("foldingRange", place(document), token)) || [];
                return found.map((f) => new vscode.FoldingRange(f.startLine, f.endLine));
            },
        }),
    ];
}

function show(params) {
    diagnostics.set(vscode.Uri.parse(params.uri), params.diagnostics.map((d) => {
        const out = new vscode.Diagnostic(range(d.range), d.message, d.severity - 1);
        out.source = d.source;
        out.relatedInformation = (d.relatedInformation || []).map(
            (r) => new vscode.DiagnosticRelatedInformation(location(r.location), r.message));
        return out;
    }));
}

function documents() {
    const opened = (d) => {
        if (d.languageId !== "fuse") return;
        const textDocument = { uri: d.uri.toString(), languageId: "fuse", version: d.version, text: d.getText() };
        client.notify("textDocument/didOpen", { textDocument });
    };
    vscode.workspace.textDocuments.forEach(opened);
    return [
        vscode.workspace.onDidOpenTextDocument(opened),
        vscode.workspace.onDidCloseTextDocument((d) => {
            if (d.languageId === "fuse") client.notify("textDocument/didClose", place(d));
        }),
        vscode.workspace.onDidChangeTextDocument((e) => {
            if (e.document.languageId !== "fuse" || !e.contentChanges.length) return;
            client.notify("textDocument/didChange", {
                textDocument: { uri: e.document.uri.toString(), version: e.document.version },
                contentChanges: e.contentChanges.map((c) => ({ range: { start: c.range.start, end: c.range.end }, text: c.text })),
            });
        }),
    ];
}

async function start() {
    const settings = vscode.workspace.getConfiguration("fusec");
    const command = settings.get("path") || "fusec";
    client = new Client(command, ["lsp", "--device-figures", settings.get("device") || "H200"], (text) => output.append(text));
    const running = client;
    client.exited.then((e) => {
        if (e && client === running) {
            vscode.window.showErrorMessage("fusec: " + command + " lsp does not run: " + e.message + ". Set fusec.path to the program.");
        }
    });
    client.on("textDocument/publishDiagnostics", show);
    client.on("window/logMessage", (p) => output.appendLine(p.message));
    client.on("workspace/codeLens/refresh", () => refreshLenses.fire());
    client.on("workspace/inlayHint/refresh", () => refreshHints.fire());
    client.on("window/showDocument", async (p) => ({ success: await vscode.env.openExternal(vscode.Uri.parse(p.uri)) }));
    const folders = (vscode.workspace.workspaceFolders || []).map((f) => ({ uri: f.uri.toString(), name: f.name }));
    const refresh = { refreshSupport: true };
    const greeting = await client.request("initialize", {
        processId: process.pid,
        workspaceFolders: folders,
        capabilities: { general: { positionEncodings: ["utf-16"] }, workspace: { codeLens: refresh, inlayHint: refresh } },
    });
    client.notify("initialized", {});
    subscriptions = [...providers(greeting.capabilities.semanticTokensProvider.legend), ...documents()];
}

async function stop() {
    subscriptions.forEach((s) => s.dispose());
    subscriptions = [];
    if (client) await client.stop();
}

async function openView(uri, graph) {
    try {
        await client.request("workspace/executeCommand", { command: "fusec.view", arguments: graph ? [uri, graph] : [uri] });
    } catch (e) {
        vscode.window.showErrorMessage("fusec: " + e.message);
    }
}

async function activate(context) {
    output = vscode.window.createOutputChannel("fusec");
    diagnostics = vscode.languages.createDiagnosticCollection("fusec");
    const register = vscode.commands.registerCommand;
    context.subscriptions.push(output, diagnostics, refreshLenses, refreshHints,
        register("fusec.openView", openView),
        register("fusec.showKernels", () => {
            const editor = vscode.window.activeTextEditor;
            return editor && openView(editor.document.uri.toString());
        }),
        register("fusec.restart", async () => {
            await stop();
            await start();
        }));
    try {
        await start();
    } catch (e) {
        output.appendLine(e.message);
    }
}

module.exports = { activate, deactivate: stop };
