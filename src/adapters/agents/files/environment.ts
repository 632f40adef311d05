/** Environment variables, as Node gives and takes them. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Variables that an agent inherits from its node; A2A_NODE_HOME locates the node. Its file must name all others. */
const INHERITED = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'A2A_NODE_HOME'] as const

/** The environment of an agent's process: the inherited variables of the node and the variables of the agent file. */
export function agentEnvironment(own: Environment, named: Readonly<Record<string, string>>): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of INHERITED) {
    const value = own[name]
    if (value !== undefined) kept[name] = value
  }
  return { ...kept, ...named }
}
