/** Environment variables, as Node gives and takes them. */
export type Environment = Readonly<Record<string, string | undefined>>

/** What an agent inherits from its node, which it finds by A2A_NODE_HOME; everything else must be named by its file. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'A2A_NODE_HOME'] as const

/** The environment of an agent's process: PATH, HOME, LANG, TMPDIR and A2A_NODE_HOME of the node, and what the agent file names. */
export function agentEnvironment(own: Environment, named: Readonly<Record<string, string>>): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of INHERITED) {
    const value = own[name]
    if (value !== undefined) kept[name] = value
  }
  return { ...kept, ...named }
}
