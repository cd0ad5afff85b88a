// The trace processor of Perfetto's UI as a program: reads requests of its RPC from standard input, and writes the answers to standard
// output. Usage: node trace_processor.js FOLDER, which has the UI's engine_bundle.js and trace_processor*.wasm.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const folder = process.argv[2];

// The bundle is made for a web worker, and asks for no more of one than this.
delete globalThis.process;
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = {href: 'http://localhost/'};
globalThis.XMLHttpRequest = class {
  open(_method, url) {
    this.response = fs.readFileSync(path.join(folder, path.basename(url)));
  }
  send() {}
};
console.log = console.error;
vm.runInThisContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'));

const port = {postMessage: (bytes) => fs.writeSync(1, bytes)};
self.onmessage({data: port});
setTimeout(() => port.onmessage({data: new Uint8Array(fs.readFileSync(0))}), 0);
