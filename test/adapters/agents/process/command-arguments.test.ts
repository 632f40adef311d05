import test from 'brittle'
import fc from 'fast-check'
import { fillArguments, hasPlaceholder } from '../../../../src/adapters/agents/process/command-arguments.js'
import { holds } from '../../../support/holds.js'

test('values of the input take the place of their placeholders', (t) => {
  const input = { file: 'a b.txt', deep: { list: ['zero', 'one'], n: 4, yes: true, map: { k: 1 } } }
  t.alike(
    fillArguments(
      ['run', '{input.file}', '--n={input.deep.n}', '{input.deep.list.1}{input.deep.yes}', '{input.deep.map}'],
      input
    ),
    {
      ok: true,
      command: ['run', 'a b.txt', '--n=4', 'onetrue', '{"k":1}']
    }
  )
})

test('every other brace is literal', (t) => {
  const command = ['{}', '{input}', '{ input.a }', '{inputs.a}', '${input}', '{input.}', '{input.a b}', '{{a}}']
  t.alike(fillArguments(command, { a: 1 }), { ok: true, command })
  t.absent(command.some(hasPlaceholder))
  t.ok(hasPlaceholder('x{input.a}y'))
})

test('a missing value is refused by name, also one that every object inherits', (t) => {
  for (const path of ['none', 'file.none', 'constructor', '__proto__.x', 'list.length', 'nothing']) {
    const filled = fillArguments(['x', `{input.${path}}`], { file: 'a', list: [], nothing: null })
    t.ok(!filled.ok && filled.reason.includes(`input.${path}`), path)
  }
})

test('a NUL character is refused', (t) => {
  t.absent(fillArguments(['x', '{input.a}'], { a: 'b\0c' }).ok)
})

test('any value stays one argument and is not parsed again', async (t) => {
  const isOne = (value: string): boolean => {
    const filled = fillArguments(['x', '{input.a}', 'end'], { a: value, b: 'never' })
    return value.includes('\0') ? !filled.ok : filled.ok && filled.command.length === 3 && filled.command[1] === value
  }
  for (const value of ['{input.b}', '$& $1 $$', '; rm -rf /', '']) t.ok(isOne(value), value)
  await holds(t, fc.property(fc.string({ unit: 'binary' }), isOne), 500)
})
