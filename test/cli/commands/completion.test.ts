import { spawnSync } from 'node:child_process'
import test, { type Assert } from 'brittle'
import { COMMANDS } from '../../../src/cli/terminal/table.js'
import { run } from '../command-line.js'

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
  t.alike(complete('peers', 're'), ['rename', 'revoke'])
  t.alike(complete('swarm', 'run', '--ma'), ['--max-parallel', '--max-failures', '--max-rounds'])
  t.alike(complete('start', '--network', 'p'), ['public', 'private'])
  t.alike(complete('swarm', 'run', '--strategy', ''), ['each', 'map', 'race', 'vote', 'pipeline', 'plan'])
})
