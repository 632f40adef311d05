import { spawnSync } from 'node:child_process'
import test, { type Assert } from 'brittle'
import { completionValues, valueKind } from '../../../src/cli/completion/values.js'
import { type CommandRow, COMMANDS } from '../../../src/cli/terminal/table.js'
import { NodeError } from '../../../src/kit/errors.js'
import type { NodeApi } from '../../../src/ports/node-api.js'
import type { SwarmInfo } from '../../../src/ports/swarm-api.js'
import { fakeHome, run } from '../command-line.js'

test('every shell gets a script that knows every command', async (t: Assert) => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await run(['completion', shell])
    t.is(code, 0)
    for (const { name } of COMMANDS) t.ok(stdout.includes(name), `${shell} ${name}`)
    t.absent(stdout.includes('report-ready'))
  }
  t.is((await run(['completion', 'powershell'])).code, 2)
})

test('the script of bash completes commands, subcommands, flags and choices', async (t: Assert) => {
  const { stdout: script } = await run(['completion', 'bash'])
  const complete = (...words: string[]): string[] => {
    const list = words.map((word) => `'${word}'`).join(' ')
    const shell = `${script}\nCOMP_WORDS=(a2a-node ${list}); COMP_CWORD=${words.length}; _a2a_node; printf '%s\\n' "\${COMPREPLY[@]}"`
    const ran = spawnSync('bash', ['--norc', '-c', shell], { encoding: 'utf8' })
    t.is(ran.stderr, '')
    return ran.stdout.trim().split('\n')
  }
  t.alike(complete('pe'), ['peers'])
  t.alike(complete('peers', 're'), ['rename', 'remove', 'revoke'])
  t.alike(complete('swarm', 'run', '--ma'), ['--max-parallel', '--max-failures', '--max-rounds'])
  t.alike(complete('start', '--network', 'p'), ['public', 'private'])
  t.alike(complete('swarm', 'run', '--strategy', ''), ['each', 'map', 'race', 'vote', 'pipeline', 'plan'])
})

test('an option that takes ids of the running node completes them in every shell', async (t: Assert) => {
  const script = async (shell: string): Promise<string> => (await run(['completion', shell])).stdout
  t.ok((await script('bash')).includes('--context) COMPREPLY=($(compgen -W "$(_a2a_node_values contexts)" -- "$cur"))'))
  t.ok((await script('zsh')).includes(':value: _a2a_node_values contexts'))
  t.ok((await script('fish')).includes("-l context -x -a '(__a2a_node_values contexts)'"))
  const context = { id: 'ctx_abcd', updatedAt: '2026-01-01T00:00:00.000Z' }
  const { run: at } = await fakeHome(t, { calls: { 'context.list': () => ({ contexts: [context] }) } })
  t.is((await at(['completion', 'values', 'contexts'])).stdout, 'ctx_abcd\n')
})

test('completion values are those of the running node, and nothing that a shell would run', async (t: Assert) => {
  const swarm = { id: 'swarm_abcd' } as SwarmInfo
  const { run: at, home } = await fakeHome(t, { swarms: [swarm] })
  t.alike(await at(['completion', 'values', 'swarms']), { code: 0, stdout: 'swarm_abcd\n', stderr: '' })
  for (const kind of ['agents', 'documents', 'swarms', 'tasks', 'approvals', 'nothing']) {
    const { code, stdout, stderr } = await at(['completion', 'values', kind])
    t.alike([code, stderr], [0, ''], kind)
    t.ok(
      stdout.split('\n').every((line) => /^[\w.@:-]*$/.test(line)),
      kind
    )
  }
  const json = JSON.parse((await at(['completion', 'values', 'peers', '--json'])).stdout) as { schema: string }
  t.is(json.schema, 'a2a-node/completion-values@1')
  const none = await run(['completion', 'values', 'peers'], { home: `${home}-none` })
  t.alike([none.code, none.stdout, none.stderr], [0, '', ''], 'silent when no node runs')
})

test('names that shells expand and values after the time are left out of a completion', async (t: Assert) => {
  const names = ['$(touch x)', '`x`', 'a b', '-flag', 'fine', 'gpu.box', '*']
  const api = (call: () => Promise<unknown>) => () => ({ call }) as unknown as NodeApi
  const list = api(() => Promise.resolve({ peers: names.map((name) => ({ name })) }))
  t.alike(await completionValues('peers', list), ['fine', 'gpu.box'])
  const late = api(() => Promise.reject(new NodeError('TIMEOUT', 'late')))
  t.alike(await completionValues('peers', late), [])
})

test('every command that takes a peer, an agent, a document, a swarm or a task first completes it', (t: Assert) => {
  const rows = (all: readonly CommandRow[], path = ''): (CommandRow & { readonly path: string })[] =>
    all.flatMap((row) => {
      const own = path === '' ? row.name : `${path} ${row.name}`
      return [{ ...row, path: own }, ...rows(row.sub ?? [], own)]
    })
  const kinds = new Set<string | null>()
  for (const { path, args } of rows(COMMANDS)) {
    if (!/^<(peer|agent|doc|id)>/.test(args ?? '') || /^(a2a|invite)\b/.test(path)) continue
    const kind = valueKind(path, args)
    t.not(kind, null, path)
    kinds.add(kind)
  }
  t.alike([...kinds].map(String).sort(), ['agents', 'approvals', 'documents', 'peers', 'swarms', 'tasks'])
})
