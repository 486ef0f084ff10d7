"use strict";
// A client of the Language Server Protocol, as small as one server needs: it runs the
// server and exchanges messages with it over its standard streams.

const { spawn } = require("child_process");

class Client {
    constructor(command, args, log) {
        this.log = log;
        this.next = 0;
        this.waiting = new Map();
        this.handlers = new Map();
        this.buffer = Buffer.alloc(0);
        this.process = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
        this.exited = new Promise((resolve) => {
            this.process.on("error", (e) => resolve(e));
            this.process.on("exit", (code) => resolve(code ? new Error("it ended with code " + code) : null));
        });
        this.exited.then((e) => {
            this.closed = true;
            for (const { reject } of this.waiting.values()) reject(e || new Error("the server ended"));
            this.waiting.clear();
        });
        this.process.stdin.on("error", () => {});
        this.process.stderr.on("data", (text) => log(String(text)));
        this.process.stdout.on("data", (bytes) => this.received(bytes));
    }

    on(method, handler) {
        this.handlers.set(method, handler);
    }

    send(message) {
        if (this.closed) return;
        const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
        this.process.stdin.write("Content-Length: " + body.length + "\r\n\r\n");
        this.process.stdin.write(body);
    }

    notify(method, params) {
        this.send({ method, params });
    }

    // request resolves to the server's result; token is of an editor that may lose interest.
    request(method, params, token) {
        if (this.closed) return Promise.reject(new Error("the server is not running"));
        const id = ++this.next;
        return new Promise((resolve, reject) => {
            this.waiting.set(id, { resolve, reject });
            this.send({ id, method, params });
            if (token) token.onCancellationRequested(() => this.notify("$/cancelRequest", { id }));
        });
    }

    received(bytes) {
        this.buffer = Buffer.concat([this.buffer, bytes]);
        for (;;) {
            const end = this.buffer.indexOf("\r\n\r\n");
            if (end < 0) return;
            const length = /content-length:\s*(\d+)/i.exec(this.buffer.toString("ascii", 0, end));
            const start = end + 4;
            const size = length ? Number(length[1]) : 0;
            if (this.buffer.length < start + size) return;
            const body = this.buffer.toString("utf8", start, start + size);
            this.buffer = this.buffer.subarray(start + size);
            try {
                this.dispatch(JSON.parse(body));
            } catch (e) {
                this.log(String(e && e.stack || e));
            }
        }
    }

    async dispatch(message) {
        if (message.method === undefined) {
            const waiting = this.waiting.get(message.id);
            this.waiting.delete(message.id);
            if (!waiting) return;
            if (message.error) waiting.reject(new Error(message.error.message));
            else waiting.resolve(message.result);
            return;
        }
        const handler = this.handlers.get(message.method);
        const result = handler ? await handler(message.params) : null;
        if (message.id !== undefined) this.send({ id: message.id, result: result === undefined ? null : result });
    }

    async stop() {
        if (this.closed) return;
        try {
            await this.request("shutdown", null);
        } catch (e) {
            // it ended before it answered
        }
        this.notify("exit", null);
        this.process.stdin.end();
    }
}

module.exports = { Client };
