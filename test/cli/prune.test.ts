import test, { type Assert } from 'brittle'
import { run } from './command-line.js'

test('prune --dry-run lists the unused parts of the own installation, and removes nothing', async (t: Assert) => {
  const dry = await run(['prune', '--dry-run', '--json'])
  t.is(dry.code, 0, dry.stderr)
  const { schema, root, removed } = JSON.parse(dry.stdout) as Record<string, unknown>
  t.alike([schema, removed], ['a2a-node/prune@1', false])
  t.is((await run(['prune', '--dry-run', '--json'])).stdout, dry.stdout, 'all of it is still there')
  const text = await run(['prune', '--dry-run'])
  t.ok(text.code === 0 && !/^removed/m.test(text.stdout), String(root))
})
