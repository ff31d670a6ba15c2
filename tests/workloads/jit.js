// SPDX-License-Identifier: Apache-2.0
// Code that the JIT names in /tmp/perf-PID.map (run with --perf-basic-prof). Prints `function NAME`
// and `ready` once the function has been compiled, then runs for argv[2] seconds.
'use strict';

function fathomHotLoop(x) {
	for (let i = 0; i < 200000; i++) {
		x = (Math.imul(x, 1103515245) + 12345 + i) | 0;
	}
	return x;
}

let x = 1;
for (let i = 0; i < 200; i++) {
	x = fathomHotLoop(x);
}
console.log('function fathomHotLoop');
console.log('ready');

const end = Date.now() + 1000 * Number(process.argv[2] || 60);
while (Date.now() < end) {
	x = fathomHotLoop(x);
}
process.exitCode = x === 0.5 ? 1 : 0;
