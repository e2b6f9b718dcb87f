// A server of the newest TypeScript SDK, which speaks both eras: `node typescript.mjs stdio`, or `http PORT`.
import http from 'node:http';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

function make() {
    const server = new McpServer({ name: 'typescript', version: '1' }, { instructions: 'Say please.' });
    server.registerTool('add', { description: 'Add.', inputSchema: z.object({ a: z.number(), b: z.number() }) }, async ({ a, b }) => ({
        content: [{ type: 'text', text: String(a + b) }]
    }));
    server.registerResource('note', 'note://one', {}, async uri => ({ contents: [{ uri: uri.href, text: 'a note' }] }));
    return server;
}

if (process.argv[2] === 'stdio') {
    serveStdio(make);
} else {
    const { toNodeHandler } = await import('@modelcontextprotocol/node');
    http.createServer(toNodeHandler(createMcpHandler(make))).listen(Number(process.argv[3]), '127.0.0.1', () => console.error('running on'));
}
