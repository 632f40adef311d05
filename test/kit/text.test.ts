import v8 from 'node:v8'
import vm from 'node:vm'
import test from 'brittle'
import fc from 'fast-check'
import { nearest, SHOWN_MAX, shellWord, shown } from '../../src/kit/text.js'
import { holds } from '../support/holds.js'

test('control and direction characters never reach a terminal', async (t) => {
  t.is(shown('a\u001b[31mred\u001b[0m\r\nb\u0000\u009b2J'), 'a[31mred[0m b2J')
  t.is(shown('user\u202etxt.exe\u2066\u200f'), 'usertxt.exe')
  await holds(
    t,
    fc.property(
      fc.string({ unit: 'binary' }),
      (text) => !/[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(shown(text))
    ),
    1000
  )
})

test('lines and tabs become spaces, so that words stay apart', (t) => {
  t.is(shown('Error: no file\n    at run (x.js:1)\r\n\tat y\n'), 'Error: no file at run (x.js:1) at y')
  t.is(shown('\n name '), 'name ')
})

test('long texts are cut with a mark, short ones are left alone', async (t) => {
  t.is(shown('grün 🜁 日本'), 'grün 🜁 日本')
  t.is(shown('x'.repeat(256)).length, SHOWN_MAX)
  t.is(shown('x'.repeat(257)), `${'x'.repeat(255)}…`)
  t.is(shown('abcdef', 3), 'ab…')
  await holds(
    t,
    fc.property(fc.string({ unit: 'binary', maxLength: 600 }), (text) => shown(text).length <= SHOWN_MAX)
  )
})

test('a cut never leaves half a character', async (t) => {
  const text = `${'x'.repeat(254)}🜁 and more`
  t.is(shown(text), `${'x'.repeat(254)}…`)
})

test('a cut text does not keep the long one in memory', (t) => {
  v8.setFlagsFromString('--expose-gc')
  const collect = vm.runInNewContext('gc') as () => void
  collect()
  const before = process.memoryUsage().heapUsed
  const kept = Array.from({ length: 64 }, (_, at) => shown(`${at} ${'x'.repeat(1024 * 1024)}`))
  collect()
  const bytes = process.memoryUsage().heapUsed - before
  t.ok(bytes < 8 * 1024 * 1024, `${bytes} bytes for ${kept.length} texts of ${SHOWN_MAX} characters`)
})

test('a mistyped word finds its neighbours, best first', (t) => {
  const commands = ['start', 'status', 'stop', 'swarm', 'send', 'peers', 'ping']
  t.is(nearest('strat', commands)[0], 'start')
  t.is(nearest('peer', commands)[0], 'peers')
  t.is(nearest('stat', commands)[0], 'start')
  t.alike(nearest('zzzzzz', commands), [])
  t.ok(nearest('st', commands).length <= 3)
  const agents = ['io', 'sun', 'text', 'files']
  for (const far of ['hi', 'nobody', '*', 'L7', 'a']) t.alike(nearest(far, agents), [], far)
  t.alike([nearest('oi', agents), nearest('sum', agents), nearest('tset', agents)], [[], ['sun'], ['text']])
})

test('a word is its own nearest, and one typing error away from it', async (t) => {
  const property = fc.property(fc.stringMatching(/^[a-z]{4,12}$/), fc.nat(), (word, at) => {
    const missing = word.slice(0, at % word.length) + word.slice((at % word.length) + 1)
    return nearest(word, ['qqqqqqqqqqqqqqqqqqq', word])[0] === word && nearest(missing, [word])[0] === word
  })
  await holds(t, property)
})

test('a word for a shell is quoted where it must be, and only there', (t) => {
  t.alike(['text@gpu-box', '/a/b.md', 'my laptop', "it's", ''].map(shellWord), [
    'text@gpu-box',
    '/a/b.md',
    "'my laptop'",
    "'it'\\''s'",
    "''"
  ])
})
