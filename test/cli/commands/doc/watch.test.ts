import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { shown } from '../../../../src/kit/text.js'
import { changeText } from '../../../../src/cli/commands/doc/watch.js'
import { holds } from '../../../support/holds.js'

test('a change of a document is a line with the removed and the added text, and the position', (t: Assert) => {
  const cases: [unknown, unknown, string][] = [
    ['hello world', 'hello big world', 'at 6  +"big "'],
    ['hello big world', 'hello world', 'at 6  -"big "'],
    ['abc', 'axc', 'at 1  -"b"  +"x"'],
    ['', '\u001b[31mred\n', 'at 0  +"\\u001b[31mred\\n"'],
    [[1, 2, 3], [1, 3], 'at 1  -2'],
    [[1], [1, { a: 'b' }], 'at 1  +{"a":"b"}'],
    [{ a: 1, b: 2 }, { b: 3, c: 4 }, '-a  b=3  c=4']
  ]
  for (const [before, value, line] of cases) t.is(changeText({ value: before }, { value }), line)
})

test('a line of a change is one line without control characters, for any text of others', async (t: Assert) => {
  const values = fc.oneof(
    fc.tuple(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })),
    fc.tuple(fc.array(fc.string({ unit: 'binary' })), fc.array(fc.string({ unit: 'binary' }))),
    fc.tuple(
      fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()),
      fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue())
    )
  )
  const isPlain = (line: string): boolean => shown(line, Number.POSITIVE_INFINITY) === line
  await holds(
    t,
    fc.property(values, ([before, value]) => isPlain(changeText({ value: before }, { value }))),
    300
  )
})
