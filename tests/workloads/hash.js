// SPDX-License-Identifier: Apache-2.0
// JavaScript that is mostly in C++ and C below it: prints `ready`, then hashes and parses for
// argv[2] seconds.
'use strict';

const crypto = require('crypto');

const block = Buffer.alloc(1 << 16, 'x');
const text = JSON.stringify(Array.from({ length: 2000 }, (_, i) => ({ i, name: `entry ${i}` })));
let size = 0;

console.log('ready');
const end = Date.now() + 1000 * Number(process.argv[2] || 60);
while (Date.now() < end) {
	size += crypto.createHash('sha256').update(block).digest().length;
	size += JSON.stringify(JSON.parse(text)).length;
}
process.exitCode = size ? 0 : 1;
