import test from 'brittle'
import { faultyPackage } from '../../src/cli/package-errors.js'

function failed(error: Error, ...frames: readonly string[]): Error {
  error.stack = ['Error: x', ...frames.map((frame) => `    at ${frame}`)].join('\n')
  return error
}

const ENGINE = 'async Writer.update (/usr/lib/node_modules/a2a-node/node_modules/autobase/lib/writer.js:223:13)'
const NODE = 'process.processTicksAndRejections (node:internal/process/task_queues:95:5)'

test('a mistake that packages alone made is theirs', (t) => {
  t.is(faultyPackage(failed(new RangeError('x'), ENGINE, NODE)), 'autobase')
  t.is(
    faultyPackage(failed(new TypeError('x'), 'f (/p/node_modules/@hyperswarm/secret-stream/index.js:1:1)', ENGINE)),
    '@hyperswarm/secret-stream'
  )
  t.is(faultyPackage(failed(Object.assign(new Error('x'), { name: 'AssertionError' }), ENGINE)), 'autobase')
})

test('mistakes of this program, and errors that are no mistake of a program, are not attributed to packages', (t) => {
  for (const own of [
    '/usr/lib/node_modules/a2a-node/dist/node/work.js:1:1',
    'file:///home/me/project/dist/node/work.js:1:1'
  ]) {
    t.is(faultyPackage(failed(new TypeError('x'), `run (${own})`, NODE)), null)
    t.is(faultyPackage(failed(new TypeError('x'), ENGINE, `async run (${own})`)), null, 'it called the package')
  }
  t.is(faultyPackage(failed(new Error('no space left on device'), ENGINE)), null)
  t.is(faultyPackage(failed(new TypeError('x'), NODE)), null)
  t.is(faultyPackage('text'), null)
})
