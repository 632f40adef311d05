import fs from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import test from 'brittle'
import type { Assert } from 'brittle'
import { tempDir } from '../support/tmp.js'

async function brokenBy(t: Assert, files: Readonly<Record<string, string>>): Promise<string[]> {
  const root = await tempDir(t)
  for (const [name, text] of Object.entries(files)) {
    await fs.mkdir(path.join(root, path.dirname(name)), { recursive: true })
    await fs.writeFile(path.join(root, name), text)
  }
  const { check } = (await import(pathToFileURL(path.resolve('scripts/check-layers.mjs')).href)) as {
    check(root: string): string[]
  }
  return check(root).map((line) => line.slice(root.length + 1))
}

test('imports within the table are clean', async (t) => {
  const broken = await brokenBy(t, {
    'kit/ids.ts': "import z32 from 'z32'\nexport const id = z32\n",
    'domain/card/card.ts':
      "import type { Id } from '../../kit/ids.js'\nimport { z } from 'zod'\nexport const card = z\n",
    'ports/mesh.ts': "import type { Card } from '../domain/card/card.js'\nexport interface Mesh { card: Card }\n",
    'adapters/mesh/log.ts':
      "import fs from 'node:fs'\nimport Autobase from 'autobase'\nimport { x } from './other.js'\n",
    'cli/commands/start.ts': "export const start = async () => (await import('../../compose/compose.js')).compose()\n",
    'node/tables.ts': "import { lanes } from './reliable/lanes.js'\n",
    'node/reliable/lanes.ts': "import { scan } from '../ledger/scan.js'\nimport type { Tables } from '../tables.js'\n",
    'compose/compose.ts': "import { log } from '../adapters/mesh/log.js'\nimport { inbox } from '../node/inbox.js'\n"
  })
  t.alike(broken, [])
})

test('each rule can be broken', async (t) => {
  const table: readonly (readonly [string, string, string])[] = [
    ['kit/a.ts', "import { card } from '../domain/card/card.js'", 'kit must not import domain'],
    ['kit/a.ts', "import fs from 'node:fs'", 'must not touch node:fs'],
    ['domain/card/a.ts', "import ajv from 'ajv'", 'must not use package ajv'],
    ['domain/card/a.ts', "import * as Y from 'yjs'", 'must not use package yjs'],
    ['domain/card/a.ts', 'export const now = () => Date.now()', 'a pure layer reaches for Date.now'],
    ['node/a.ts', 'export const later = (f) => setTimeout(f, 1)', 'a pure layer reaches for setTimeout'],
    ['node/a.ts', "export const env = process.env['X']", 'a pure layer reaches for process.'],
    ['node/a.ts', "export { log } from '../adapters/mesh/log.js'", 'node must not import adapters/mesh'],
    [
      'node/peers/a.ts',
      "import { lanes } from '../reliable/lanes.js'",
      'node/peers must not import values of node/reliable'
    ],
    ['node/peers/a.ts', "import { tables } from '../tables.js'", 'node/peers must not import values of node ('],
    [
      'node/gateway/push/a.ts',
      "import { swarms } from '../../swarms/swarms.js'",
      'node/gateway must not import values of node/swarms'
    ],
    ['node/cellar/a.ts', "import { peers } from '../peers/peers.js'", 'node/cellar is no feature'],
    ['ports/a.ts', "import { card } from '../domain/card/card.js'", 'ports hold types only, imports'],
    ['ports/a.ts', 'export const port = 1', 'ports hold types only, exports a value'],
    [
      'adapters/mesh/a.ts',
      "import { store } from '../storage/store.js'",
      'adapters/mesh must not import adapters/storage'
    ],
    ['adapters/mesh/a.ts', "import { inbox } from '../../node/inbox.js'", 'adapters/mesh must not import node'],
    ['cli/a.ts', "import { card } from '../domain/card/card.js'", 'cli must not import domain'],
    ['cli/commands/peers.ts', "const compose = import('../../compose/compose.js')", 'cli must not import compose'],
    ['cli/commands/start.ts', "import { compose } from '../../compose/compose.js'", 'cli must not import compose'],
    ['cellar/a.ts', 'export const a = 1', 'lies in no layer'],
    ['kit/a.ts', '// line\n'.repeat(501), 'longer than 500 lines']
  ]
  for (const [file, text, expected] of table) {
    const broken = await brokenBy(t, { [file]: `${text}\n` })
    t.ok(broken.length === 1 && broken[0]?.includes(expected), `${expected}: ${broken.join('; ')}`)
  }
})

test('comments may say what they like', async (t) => {
  const text =
    "// Never Date.now() or process.env here.\n/* import fs from 'node:fs'\nimport os from 'node:os' */\nexport const a = 1\n"
  t.alike(await brokenBy(t, { 'domain/card/a.ts': text }), [])
})

test('no sources at all is not clean', async (t) => {
  t.is((await brokenBy(t, {})).length, 1)
})
