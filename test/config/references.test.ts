import os from 'node:os'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { expandReferences, referenceFault } from '../../src/config/references.js'

const ENV = { KEY: 'k', EMPTY: '', lower_1: 'l' }
const textOf = (value: string): string | null => {
  const expanded = expandReferences(value, ENV)
  return expanded.ok ? expanded.text : null
}

test('a reference is resolved in every spelling, or refused, and is never passed on as it is written', (t: Assert) => {
  t.is(textOf('a ${KEY}-${env:lower_1} $KEY {KEY}'), 'a k-l $KEY {KEY}')
  t.is(textOf('${NONE:-d}${EMPTY:-e}${KEY:-f}${NONE:-}'), 'dek')
  t.is(textOf('${userHome}${/}x${pathSeparator}'), `${os.homedir()}${path.sep}x${path.sep}`)
  t.is(textOf('$${KEY} costs $$5'), '${KEY} costs $$5')
  t.is(textOf('${EMPTY}'), '')
  for (const value of [
    '${NONE}',
    '${env:NONE}',
    '${input:key}',
    '${workspaceFolder}',
    '${',
    '${A:-${KEY}}',
    '${KEY}${command:x}'
  ])
    t.is(textOf(value), null, value)
  t.alike([referenceFault('${NONE}'), referenceFault('$${input:x}')], [null, null])
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('${', '{', '}', 'KEY', 'env:', ':-', 'x', '${KEY}')).map((parts) => parts.join('')),
      (value) => {
        const text = textOf(value)
        return text === null || !text.includes('${')
      }
    )
  )
})
