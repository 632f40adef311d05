import test, { type Assert } from 'brittle'
import { type CommandRow, COMMANDS, GLOBAL_OPTIONS } from '../../src/cli/terminal/table.js'
import { ERROR_CODES } from '../../src/kit/errors.js'
import { WAITING_TEXT } from '../../src/cli/words.js'

/** Words of the implementation, which say nothing to a user. */
const PRIVATE = /\b(leases?|leased|epochs?|given back|seats?|courses?)\b/i

test('no help, heading or next step of any command has a word of the implementation', (t: Assert) => {
  const texts = (row: CommandRow): string[] => [
    row.about,
    row.args ?? '',
    ...(row.more ?? []),
    ...(row.options ?? []).flatMap(({ flags, about }) => [flags, about]),
    ...(row.sub ?? []).flatMap(texts)
  ]
  const all = [
    ...COMMANDS.flatMap(texts),
    ...GLOBAL_OPTIONS.map(({ about }) => about),
    ...Object.values(ERROR_CODES).flatMap(({ next }) => next),
    ...Object.values(WAITING_TEXT)
  ]
  t.ok(all.length > 300)
  t.alike(
    all.filter((text) => PRIVATE.test(text)),
    []
  )
})
