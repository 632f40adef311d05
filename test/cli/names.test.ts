import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { agentText } from '../support/agents/agent-text.js'
import { localMesh } from '../support/nodes.js'
import { tempDir } from '../support/tmp.js'
import { run } from './command-line.js'

test('names such as -x, * and --json are refused wherever one is given, with the reason', async (t) => {
  const home = await tempDir(t)
  const refused = async (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<void> => {
    const { code, stdout, stderr } = await run(args, { home, env })
    t.ok(
      code !== 0 && /begins with a dash|neither a letter nor a digit/.test(stdout + stderr),
      `${args.join(' ')}: ${stdout}${stderr}`
    )
  }
  t.teardown(() => run(['stop'], { home }))
  for (const name of ['-x', '*']) await refused(['start', '--detach', '--network', 'local', `--name=${name}`])
  for (const name of ['-x', '*', '--json', '..', '-']) {
    await fs.writeFile(path.join(home, 'config.yaml'), `node: { name: ${JSON.stringify(name)} }\n`)
    await refused(['config', 'check'])
    await fs.rm(path.join(home, 'config.yaml'))
    await refused(['config', 'check'], { A2A_NODE_NODE_NAME: name })
  }
  for (const name of ['-x', '--json', '_._']) {
    await refused(['agents', 'new', '--', name])
    const file = path.join(home, 'agent.md')
    await fs.writeFile(file, agentText(JSON.stringify(name)))
    await refused(['agents', 'check', file])
  }
  const sandboxed = path.join(home, 'agent.md')
  await fs.writeFile(sandboxed, agentText('ant', ['  sandbox: --json']))
  t.ok((await run(['agents', 'check', sandboxed], { home })).stdout.includes('a letter or digit first'))
})

test('a node refuses such names for members, documents and sandboxes', async (t) => {
  const mesh = await localMesh(t)
  const [a] = await mesh.meshOf('b')
  if (a === undefined) throw new Error('no node')
  for (const args of [
    ['peers', 'rename', '--', 'b', '-x'],
    ['peers', 'rename', 'b', '*'],
    ['doc', 'set', '--', '--json', 'text'],
    ['doc', 'set', '*', 'text'],
    ['invite', '--sandbox=-x'],
    ['invite', '--sandbox=*']
  ]) {
    const { code, stderr } = await a.cli(args)
    t.ok(
      code === 2 && /begins with a dash|neither a letter nor a digit|a letter or digit first/.test(stderr),
      `${args.join(' ')}: ${stderr}`
    )
  }
})
