import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import { tempDir } from '../support/tmp.js'
import { fakeHome } from './command-line.js'

/** `é` as ISO 8859-1 writes it, on the second line. */
const LATIN = Buffer.from('one\ncaf\u00e9\n', 'latin1')

test('standard input that is no UTF-8 is refused with its line, and nothing is asked of the node', async (t: Assert) => {
  const { run, fake } = await fakeHome(t)
  const commands = [
    ['doc', 'set', 'notes', '-'],
    ['send', 'text@b', '-'],
    ['call', '-', 'text.stats', '-']
  ]
  for (const args of commands) {
    const { code, stderr, stdout } = await run(args, { stdin: LATIN })
    t.is(code, 2, args.join(' '))
    t.is(stdout, '')
    t.ok(stderr.startsWith('error: standard input is no UTF-8 from line 2 on (byte 8 of 9)  [USAGE]\n'), stderr)
    t.ok(stderr.includes(`  try: iconv -f '<its encoding>' -t UTF-8 '<file>' | a2a-node ${args.join(' ')}\n`), stderr)
  }
  const cut = await run(['doc', 'set', 'notes', '-'], { stdin: Buffer.from('é').subarray(0, 1) })
  t.is(cut.code, 2, 'a character that was cut off is none')
  t.is(fake.seen.length, 0)
})

test('a file of items or of settings that is no UTF-8 is refused', async (t: Assert) => {
  const { run, fake } = await fakeHome(t)
  const file = path.join(await tempDir(t), 'latin')
  await writeFile(file, LATIN)
  const items = await run(['swarm', 'run', 'x', '--capability', 'c', '--items', file])
  const settings = await run(['mesh', 'set', file])
  for (const { code, stderr } of [items, settings]) {
    t.is(code, 2)
    t.ok(stderr.includes(`${file} is no UTF-8 from line 2 on`), stderr)
  }
  t.is(fake.seen.length, 0)
})

test('a file of settings that cannot be read is refused without a text of the system', async (t: Assert) => {
  const { run } = await fakeHome(t)
  const dir = await tempDir(t)
  await writeFile(path.join(dir, 'file'), '{')
  const cases = [
    [dir, 'cannot be read: it is a directory'],
    [path.join(dir, 'none'), 'cannot be read: there is no such file'],
    [path.join(dir, 'file', 'below'), 'cannot be read: there is no such file'],
    [path.join(dir, 'file'), 'not JSON']
  ] as const
  for (const [file, reason] of cases) {
    const { code, stderr } = await run(['mesh', 'set', file])
    t.is(code, 2)
    t.ok(stderr.startsWith(`error: "${file}": ${reason}  [USAGE]`), stderr)
  }
})
