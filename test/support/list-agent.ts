import fs from 'node:fs'
import path from 'node:path'

/** Capabilities and module of an agent `list`. */
export interface ListAgent {
  readonly capabilities: readonly string[]
  readonly module: string
}

/** Gives a home the agent `list`, and a payload limit in bytes; null: the default. */
export function giveListAgent(home: string, agent: ListAgent, maxPayloadBytes: number | null): string {
  fs.mkdirSync(path.join(home, 'agents'))
  fs.writeFileSync(path.join(home, 'agents/list.md'), agentFile(agent.capabilities))
  fs.writeFileSync(path.join(home, 'agents/list.mjs'), agent.module)
  if (maxPayloadBytes !== null)
    fs.writeFileSync(path.join(home, 'config.yaml'), `tools: { maxPayloadBytes: ${maxPayloadBytes} }\n`)
  return home
}

function agentFile(capabilities: readonly string[]): string {
  return [
    '---',
    'name: list',
    'description: lists',
    'a2a:',
    '  version: 0.1.0',
    '  capabilities:',
    ...capabilities.map((id) => `    - { id: ${id}, description: d, sideEffect: none, idempotent: true }`),
    '  runtime: { type: module, path: ./list.mjs }',
    '---',
    ''
  ].join('\n')
}
