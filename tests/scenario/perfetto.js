// SPDX-License-Identifier: Apache-2.0
// usage: node perfetto.js DIRECTORY TRACE SQL...
// Loads TRACE with Perfetto's trace processor (its WebAssembly form, engine_bundle.js and *.wasm in DIRECTORY) and
// prints the rows of each query as a line of JSON. The requests: protos/perfetto/trace_processor/trace_processor.proto
'use strict';
const fs = require('fs');
const path = require('path');
const [directory, trace, ...queries] = process.argv.slice(2);

const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorRpc.request
const CELL_NULL = 1, CELL_VARINT = 2, CELL_FLOAT = 3, CELL_STRING = 4, CELL_BLOB = 5;

function varint(value) {
  const bytes = [];
  for (value = BigInt(value); value > 127n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
  return Buffer.from([...bytes, Number(value)]);
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

function readVarint(data, at) {
  let value = 0n, shift = 0n;
  for (;; shift += 7n) {
    const byte = data[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [BigInt.asIntN(64, value), at];
  }
}

// Calls each(field, value): a BigInt, or the bytes of a field that has a length.
function fields(data, each) {
  for (let at = 0; at < data.length;) {
    let key, value;
    [key, at] = readVarint(data, at);
    const field = Number(key >> 3n), kind = Number(key & 7n);
    if (kind === 0) {
      [value, at] = readVarint(data, at);
    } else {
      let length = kind === 1 ? 8n : 4n;
      if (kind === 2) [length, at] = readVarint(data, at);
      value = data.subarray(at, at + Number(length));
      at += Number(length);
    }
    each(field, value);
  }
}

function packed(data) {
  const values = [];
  for (let at = 0; at < data.length;) {
    let value;
    [value, at] = readVarint(data, at);
    values.push(value);
  }
  return values;
}

class Result {
  constructor() {
    this.names = [];
    this.rows = [];
    this.row = [];
    this.last = false;
  }

  addBatch(data) {
    let cells = [], numbers = [], doubles = Buffer.alloc(0), strings = [];
    fields(data, (field, value) => {
      if (field === 1) cells = packed(value);
      else if (field === 2) numbers = packed(value);
      else if (field === 3) doubles = Buffer.from(value);
      else if (field === 5) strings = Buffer.from(value).toString().split('\0');
      else if (field === 6) this.last = value !== 0n;
    });
    let n = 0, d = 0, s = 0;
    for (const cell of cells.map(Number)) {
      let value = null;
      if (cell === CELL_VARINT) value = Number(numbers[n++]);
      else if (cell === CELL_FLOAT) value = doubles.readDoubleLE(8 * d++);
      else if (cell === CELL_STRING) value = strings[s++];
      else if (cell === CELL_BLOB) throw new Error('blobs are not read');
      else if (cell !== CELL_NULL) throw new Error('cell of kind ' + cell);
      this.row.push(value);
      if (this.row.length === this.names.length) this.rows.push(this.row.splice(0));
    }
  }

  add(data) {
    fields(data, (field, value) => {
      if (field === 1) this.names.push(Buffer.from(value).toString());
      else if (field === 2 && value.length) throw new Error(Buffer.from(value).toString());
      else if (field === 3) this.addBatch(value);
    });
  }
}

function fail(error) {
  console.error(String(error && error.message || error).slice(0, 2000));
  process.exit(1);
}

// The bundle is a worker's script: it expects a browser's globals, and a port to answer to.
process.type = 'renderer';
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = globalThis;
globalThis.importScripts = () => {};
globalThis.location = new URL('http://perfetto/engine_bundle.js');
globalThis.XMLHttpRequest = class {
  open(method, name) {
    this.response = fs.readFileSync(path.join(directory, path.basename(name)));
  }

  send() {}
};
console.warn = () => {};
console.log = (...text) => console.error(...text);
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);
(0, eval)(fs.readFileSync(path.join(directory, 'engine_bundle.js'), 'utf8'));

let sequence = 0, waiting = null;
const port = {
  postMessage(data) {
    fields(data, (stream, message) => {
      if (stream === 1) waiting(message);
    });
  },
};
self.onmessage({ data: port });

// Sends a request; TAKE gets each answer and returns true for the last one.
function ask(request, field, value, take) {
  return new Promise((resolve, reject) => {
    waiting = (answer) => {
      try {
        let done = false;
        fields(answer, (number, data) => {
          if (number === 5) throw new Error(Buffer.from(data).toString());
          if (number > 200 || number === 3) done = take(number, data) || done;
        });
        if (done) resolve();
      } catch (error) {
        reject(error);
      }
    };
    const message = Buffer.concat([number(1, sequence++), number(2, request), ...(field ? [bytes(field, value)] : [])]);
    port.onmessage({ data: new Uint8Array(bytes(1, message)) });
  });
}

function noError(field, data) {
  fields(data, (number, value) => {
    if (number === 2 && value.length) throw new Error(Buffer.from(value).toString());
  });
  return true;
}

async function main() {
  // Its own initialization is a promise that is settled by now.
  await new Promise((resolve) => setTimeout(resolve, 0));
  await ask(APPEND, 101, fs.readFileSync(trace), noError);
  await ask(FINALIZE, 0, null, () => true);
  let lines = '';
  for (const sql of queries) {
    const result = new Result();
    await ask(QUERY, 103, bytes(1, Buffer.from(sql)), (field, data) => {
      if (field === 203) result.add(data);
      return result.last;
    });
    lines += JSON.stringify(result.rows.map((row) => Object.fromEntries(
      result.names.map((name, i) => [name, row[i]])))) + '\n';
  }
  process.stdout.write(lines, () => process.exit(0));
}

main().catch(fail);
